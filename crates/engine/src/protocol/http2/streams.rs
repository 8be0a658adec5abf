//! The streams in flight: by the caller's tag, and by their number on the wire.

use crate::protocol::http2::frame::{
    END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR, Header, Kind, NO_ERROR, PROTOCOL_ERROR, Piece,
    unpadded,
};
use crate::protocol::http2::session::Session;
use crate::protocol::http2::{Http2Error, NotTaken, StreamEvent, frame};
/// One request and its answer.
#[derive(Debug, Default)]
pub struct Stream {
    /// Its number; 0: none is in flight.
    pub id: u32,
    /// What the server lets this stream send.
    pub window: i64,
    /// Bytes received since its window was last widened.
    pub received: u32,
    /// The final head of the answer has come.
    pub answering: bool,
    /// The caller has given the end of the request.
    pub closing: bool,
    /// The end of the request was written.
    pub sent: bool,
    /// What the windows hold back, from `written` on.
    pub waiting: Vec<u8>,
    pub written: usize,
}

/// Room for held back bytes that a stream keeps for the next one with its tag.
const KEPT_ROOM: usize = 64 * 1024;

impl Stream {
    /// How many bytes are held back.
    pub fn waits(&self) -> usize {
        self.waiting.len() - self.written
    }

    /// Holds back bytes. What was written is dropped first where it is the larger part: each byte moves a bounded
    /// number of times.
    pub fn keep(&mut self, bytes: &[u8]) {
        if self.written > self.waits() {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        self.waiting.extend_from_slice(bytes);
    }

    /// Nothing is held back any more.
    pub fn flushed(&mut self) {
        self.waiting.clear();
        self.waiting.shrink_to(KEPT_ROOM);
        self.written = 0;
    }
}

/// See the module.
#[derive(Debug)]
pub struct Streams {
    by_tag: Vec<Stream>,
    tags: Tags,
    open: usize,
    /// Streams that wait for a window.
    pub waiting: usize,
}

impl Streams {
    pub const fn new() -> Self {
        Self {
            by_tag: Vec::new(),
            tags: Tags::new(),
            open: 0,
            waiting: 0,
        }
    }

    /// How many are in flight.
    pub const fn open(&self) -> usize {
        self.open
    }

    /// Tags ever used are below it.
    pub fn tags(&self) -> u32 {
        self.by_tag.len() as u32
    }

    /// The stream in flight, or the one that has ended, under a tag.
    pub fn get(&self, tag: u32) -> Option<&Stream> {
        self.by_tag.get(tag as usize)
    }

    /// The stream in flight under a tag.
    #[inline]
    pub fn live(&mut self, tag: u32) -> Option<&mut Stream> {
        self.by_tag
            .get_mut(tag as usize)
            .filter(|stream| stream.id != 0)
    }

    /// The stream in flight with a number, and its tag.
    #[inline]
    pub fn find(&mut self, id: u32) -> Option<(u32, &mut Stream)> {
        let tag = self.tags.find(id)?;
        self.by_tag
            .get_mut(tag as usize)
            .map(|stream| (tag, stream))
    }

    /// All in flight.
    pub fn each_live(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.by_tag.iter_mut().filter(|stream| stream.id != 0)
    }

    /// A stream begins. Its tag is free.
    #[inline]
    pub fn begin(&mut self, tag: u32, id: u32, window: i64) {
        let index = tag as usize;
        if index >= self.by_tag.len() {
            self.by_tag.resize_with(index + 1, Stream::default);
        }
        let stream = &mut self.by_tag[index];
        stream.id = id;
        stream.window = window;
        stream.received = 0;
        stream.answering = false;
        stream.closing = false;
        stream.sent = false;
        self.tags.insert(id, tag);
        self.open += 1;
    }

    /// A stream ends; `sent` stays to be asked for. Returns its number.
    #[inline]
    pub fn end(&mut self, tag: u32) -> Option<u32> {
        let stream = self.live(tag)?;
        let id = std::mem::take(&mut stream.id);
        if stream.waits() > 0 {
            stream.flushed();
            self.waiting -= 1;
        }
        self.tags.remove(id);
        self.open -= 1;
        Some(id)
    }
}

/// Tags by stream numbers: open addressing with linear probing, at most half full. Numbers of streams count upwards
/// by two, so the simplest hash hardly ever collides.
#[derive(Debug)]
struct Tags {
    /// Number (0: free) and tag; a power of two of them, or none.
    places: Vec<(u32, u32)>,
    count: usize,
}

impl Tags {
    const fn new() -> Self {
        Self {
            places: Vec::new(),
            count: 0,
        }
    }

    /// Where a number belongs. There are places.
    #[inline]
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.places.len() - 1)
    }

    #[inline]
    fn place(&self, id: u32) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = self.home(id);
        loop {
            match self.places[at].0 {
                0 => return None,
                found if found == id => return Some(at),
                _ => at = (at + 1) & (self.places.len() - 1),
            }
        }
    }

    #[inline]
    fn find(&self, id: u32) -> Option<u32> {
        self.place(id).map(|at| self.places[at].1)
    }

    #[inline]
    fn insert(&mut self, id: u32, tag: u32) {
        if self.places.len() < 2 * (self.count + 1) {
            self.grow();
        }
        let mut at = self.home(id);
        while self.places[at].0 != 0 {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = (id, tag);
        self.count += 1;
    }

    fn grow(&mut self) {
        let larger = vec![(0, 0); (2 * self.places.len()).max(4)];
        self.count = 0;
        for (id, tag) in std::mem::replace(&mut self.places, larger) {
            if id != 0 {
                self.insert(id, tag);
            }
        }
    }

    /// Frees a place, and moves up those behind it that would not be found any more (Knuth 6.4, algorithm R).
    #[inline]
    fn remove(&mut self, id: u32) {
        let Some(mut hole) = self.place(id) else {
            return;
        };
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let (found, _) = self.places[at];
            if found == 0 {
                break;
            }
            let from_home = at.wrapping_sub(self.home(found)) & mask;
            if from_home >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = (0, 0);
        self.count -= 1;
    }
}

/// The largest DATA frame this side writes although a server may allow 16 MB: streams share the connection.
const LARGEST_FRAME: usize = 65_536;

impl Session {
    /// More of the body of a request, all of it taken; `end`: this is the last of it. What the windows hold back is
    /// kept and sent by and by.
    ///
    /// # Errors
    /// The request has ended, or too much waits for the windows already; nothing was taken.
    #[inline]
    pub fn send(
        &mut self,
        tag: u32,
        bytes: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), NotTaken> {
        let limit = self.settings.max_waiting;
        let stream = self
            .streams
            .live(tag)
            .filter(|stream| !stream.closing)
            .ok_or(NotTaken::NotSending(tag))?;
        let waiting = stream.waits();
        let window = match waiting {
            0 => stream.window.min(self.peer.window).max(0),
            _ => 0,
        };
        let free = usize::try_from(window).unwrap_or(usize::MAX);
        let (now, later) = bytes.split_at(bytes.len().min(free));
        if waiting.saturating_add(later.len()) > limit {
            return Err(NotTaken::TooMuchWaiting { limit });
        }
        stream.closing = end;
        let last = end && waiting == 0 && later.is_empty();
        let goes_out = !now.is_empty() || last;
        if goes_out {
            let largest = self.peer.max_frame.min(LARGEST_FRAME);
            write(out, stream.id, now, last, largest);
            stream.window -= now.len() as i64;
            self.peer.window -= now.len() as i64;
            stream.sent = last;
        }
        if !later.is_empty() {
            stream.keep(later);
            self.streams.waiting += usize::from(waiting == 0);
        }
        if goes_out {
            self.active();
        }
        Ok(())
    }

    /// A window was widened: writes what it lets go. Streams take turns with the connection's window.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        let tags = self.streams.tags();
        let mut looked_at = 0;
        while self.streams.waiting > 0 && self.peer.window > 0 && looked_at < tags {
            let tag = self.turn % tags;
            self.flush_one(tag, out);
            self.turn = tag + 1;
            looked_at += 1;
        }
    }

    /// The window of one stream was widened.
    pub(super) fn flush_one(&mut self, tag: u32, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.live(tag) else {
            return;
        };
        let waiting = stream.waits();
        let window = stream.window.min(self.peer.window);
        if waiting == 0 || window <= 0 {
            return;
        }
        let now = waiting.min(usize::try_from(window).unwrap_or(usize::MAX));
        let last = stream.closing && now == waiting;
        let bytes = &stream.waiting[stream.written..stream.written + now];
        let largest = self.peer.max_frame.min(LARGEST_FRAME);
        write(out, stream.id, bytes, last, largest);
        stream.window -= now as i64;
        self.peer.window -= now as i64;
        stream.written += now;
        if now == waiting {
            stream.sent = last;
            stream.flushed();
            self.streams.waiting -= 1;
        }
        self.active();
    }
}

/// Writes bytes as DATA frames, an empty one if there are none.
#[inline]
fn write(out: &mut Vec<u8>, id: u32, mut bytes: &[u8], end: bool, largest: usize) {
    loop {
        let (piece, rest) = bytes.split_at(bytes.len().min(largest));
        let flags = match end && rest.is_empty() {
            true => END_STREAM,
            false => 0,
        };
        frame::begin(out, piece.len(), Kind::DATA, flags, id);
        out.extend_from_slice(piece);
        bytes = rest;
        if bytes.is_empty() {
            return;
        }
    }
}

/// The longest header block, packed or unpacked: eight times what servers accept themselves.
pub const MAX_HEADER_BLOCK: usize = 64 * 1024;

/// Room for cut header blocks that is kept; what a large one took beyond it is given back.
const KEPT_BLOCK: usize = 1024;

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
        whole.bytes.shrink_to(KEPT_BLOCK);
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

#[cfg(test)]
mod tests {
    use super::Tags;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn tags_are_found_as_in_a_map(steps in prop::collection::vec((any::<bool>(), 0_u32..40), 0..200)) {
            let (mut tags, mut map) = (Tags::new(), HashMap::new());
            for (add, number) in steps {
                let id = 2 * number + 1;
                match add && !map.contains_key(&id) {
                    true => {
                        tags.insert(id, number);
                        map.insert(id, number);
                    }
                    false => {
                        tags.remove(id);
                        map.remove(&id);
                    }
                }
                for number in 0..40 {
                    prop_assert_eq!(tags.find(2 * number + 1), map.get(&(2 * number + 1)).copied());
                }
            }
        }
    }
}
