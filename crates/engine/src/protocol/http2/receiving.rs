//! What the server sends, and what it means for the streams.

use super::StreamEvent;
use super::error::Http2Error;
use super::frame::{
    self, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR, Header, Kind, NO_ERROR, PROTOCOL_ERROR,
    unpadded,
};
use super::framer::Piece;
use super::session::Session;

/// The longest header block, packed or unpacked: eight times what servers accept themselves.
pub const MAX_HEADER_BLOCK: usize = 64 * 1024;

/// Room for cut header blocks that is kept; what a large one took beyond it is given back.
const KEPT_ROOM: usize = 1024;

/// A header block that came in several frames.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The stream it is for; 0: no block is open.
    stream: u32,
    end: bool,
    bytes: Vec<u8>,
}

impl Session {
    /// Takes the next bytes of the connection. `on` gets what they mean, with the tag of the stream; answers to the
    /// server itself (acknowledgements, wider windows, resets) go to `out`.
    ///
    /// # Errors
    /// What the server did against the protocol; the connection cannot be used any more, and its streams get no
    /// event. Asked again, it says the same.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        mut on: impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // Its pieces borrow the framer while they are acted on.
        let mut framer = std::mem::take(&mut self.framer);
        let mut rest = bytes;
        let fed = loop {
            let acted = match framer.next(&mut rest) {
                Ok(None) => break Ok(()),
                Ok(Some(piece)) => self.act(piece, out, &mut on),
                Err(error) => Err(error),
            };
            if acted.is_err() {
                break acted;
            }
        };
        self.framer = framer;
        if let Err(error) = &fed {
            frame::goaway(out, error.code());
            self.failed = Some(error.clone());
        }
        fed
    }

    #[inline]
    fn act(
        &mut self,
        piece: Piece<'_>,
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let kind = match piece {
            Piece::Data { .. } => Kind::DATA,
            Piece::Unknown(kind) => kind,
            Piece::Frame { header, .. } => header.kind,
        };
        let continues = matches!(piece, Piece::Frame { header, .. }
            if header.kind == Kind::CONTINUATION && header.stream == self.block.stream);
        if self.block.stream != 0 && !continues {
            return Err(Http2Error::Interrupted { kind });
        }
        match piece {
            Piece::Data {
                stream,
                bytes,
                flow,
                end,
            } => self.data(stream, bytes, flow, end, out, on),
            Piece::Unknown(kind) => self.idle(kind),
            Piece::Frame { header, payload } => match header.kind {
                Kind::HEADERS => self.headers(&header, payload, out, on),
                Kind::CONTINUATION => self.continuation(&header, payload, out, on),
                _ => self.control(&header, payload, out, on),
            },
        }
    }

    #[inline]
    fn data(
        &mut self,
        id: u32,
        bytes: &[u8],
        flow: u32,
        end: bool,
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        if bytes.is_empty() && !end {
            // Padding counts as nothing too.
            self.idle(Kind::DATA)?;
        }
        self.received(flow, out);
        self.known(Kind::DATA, id)?;
        let limit = self.settings.stream_window;
        let Some((tag, stream)) = self.streams.find(id) else {
            return Ok(());
        };
        stream.received = stream.received.saturating_add(flow);
        if stream.received > limit {
            self.spoil(tag, FLOW_CONTROL_ERROR, "it overruns its window", out, on);
            return Ok(());
        }
        if !stream.answering {
            self.spoil(
                tag,
                PROTOCOL_ERROR,
                "its body comes before its head",
                out,
                on,
            );
            return Ok(());
        }
        if !end && stream.received > limit / 2 {
            frame::window_update(out, id, std::mem::take(&mut stream.received));
        }
        if end {
            self.finish(tag, out);
        }
        if end || !bytes.is_empty() {
            self.idle_frames = 0;
            on(tag, StreamEvent::Data { bytes, end });
        }
        Ok(())
    }

    /// Bytes against the window of the connection. It is widened as they come, before it could be overrun.
    #[inline]
    fn received(&mut self, flow: u32, out: &mut Vec<u8>) {
        self.received += flow;
        if self.received > self.settings.connection_window / 2 {
            frame::window_update(out, 0, std::mem::take(&mut self.received));
        }
    }

    #[inline]
    fn headers(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        self.known(Kind::HEADERS, header.stream)?;
        let block = unpadded(header, payload).ok_or(Http2Error::BadFrame {
            kind: Kind::HEADERS,
            why: "its padding is longer than its payload",
        })?;
        let end = header.has(END_STREAM);
        if header.has(END_HEADERS) {
            return self.block(header.stream, end, block, out, on);
        }
        self.block.stream = header.stream;
        self.block.end = end;
        self.block.bytes.extend_from_slice(block);
        Ok(())
    }

    fn continuation(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        if self.block.stream == 0 {
            return Err(Http2Error::BadFrame {
                kind: Kind::CONTINUATION,
                why: "there is no header block it could continue",
            });
        }
        if payload.is_empty() {
            self.idle(Kind::CONTINUATION)?;
        }
        if self.block.bytes.len() + payload.len() > MAX_HEADER_BLOCK {
            return Err(Http2Error::HeadersTooLarge {
                limit: MAX_HEADER_BLOCK,
            });
        }
        self.block.bytes.extend_from_slice(payload);
        if !header.has(END_HEADERS) {
            return Ok(());
        }
        let mut whole = std::mem::take(&mut self.block);
        let done = self.block(whole.stream, whole.end, &whole.bytes, out, on);
        whole.bytes.clear();
        whole.bytes.shrink_to(KEPT_ROOM);
        self.block.bytes = whole.bytes;
        done
    }

    /// A whole header block. It is read even where nobody waits for it: the tables of both sides must agree.
    #[inline]
    fn block(
        &mut self,
        id: u32,
        end: bool,
        block: &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let fields = &mut self.fields;
        fields.clear();
        self.decoder
            .decode(block, MAX_HEADER_BLOCK, |name, value| {
                fields.take(name, value);
            })?;
        let (status, fault) = (fields.status, fields.fault);
        let Some((tag, stream)) = self.streams.find(id) else {
            return self.idle(Kind::HEADERS);
        };
        if let Some(why) = fault.or_else(|| misplaced(stream.answering, status, end)) {
            self.spoil(tag, PROTOCOL_ERROR, why, out, on);
            return Ok(());
        }
        if let Some(100..=199) = status {
            return self.idle(Kind::HEADERS);
        }
        stream.answering = true;
        self.idle_frames = 0;
        if end {
            self.finish(tag, out);
        }
        let (length, grpc) = (self.fields.length, self.fields.trailer());
        on(
            tag,
            match status {
                Some(status) => StreamEvent::Head {
                    status,
                    length,
                    grpc,
                    end,
                },
                None => StreamEvent::Trailers { grpc },
            },
        );
        Ok(())
    }

    /// The answer is complete. A request that is not out whole is stopped: nobody reads the rest of it.
    #[inline]
    fn finish(&mut self, tag: u32, out: &mut Vec<u8>) {
        self.active();
        let sent = self.is_sent(tag);
        if let Some(id) = self.streams.end(tag)
            && !sent
        {
            frame::rst_stream(out, id, NO_ERROR);
        }
    }

    /// The answer is faulty, the connection is not.
    #[cold]
    pub(super) fn spoil(
        &mut self,
        tag: u32,
        code: u32,
        why: &'static str,
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) {
        if let Some(id) = self.streams.end(tag) {
            frame::rst_stream(out, id, code);
            on(tag, StreamEvent::Malformed { why });
        }
    }
}

/// What is wrong with a block at its place in an answer (RFC 9113, section 8.1).
#[inline]
fn misplaced(answering: bool, status: Option<u16>, end: bool) -> Option<&'static str> {
    match (answering, status) {
        (false, None) => Some("its head has no :status"),
        (false, Some(101)) => Some("its status is 101, which HTTP/2 has not"),
        (false, Some(100..=199)) if end => Some("it ends with an interim head"),
        (true, Some(_)) => Some("it has :status after its head"),
        (true, None) if !end => Some("its trailers do not end it"),
        _ => None,
    }
}
