//! One connection: what the caller does with it.

use crate::protocol::excerpt::excerpt;
use crate::protocol::http2::frame::{
    ACK, DEFAULT_MAX_FRAME, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR, Framer, HEADER_BYTES,
    Header, Kind, PROTOCOL_ERROR, REFUSED_STREAM,
};
use crate::protocol::http2::heads::{Fields, RequestHead, Table};
use crate::protocol::http2::hpack::Decoder;
use crate::protocol::http2::streams::{Block, MAX_HEADER_BLOCK, Streams};
use crate::protocol::http2::{GoAway, Http2Error, NotTaken, StreamEvent, frame};

/// RFC 9113, section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The first number there is no stream for.
const END_OF_NUMBERS: u32 = 1 << 31;
/// Windows at the beginning of a connection (section 6.9.2).
pub(super) const DEFAULT_WINDOW: u32 = 65_535;
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;

/// How this side behaves. Everything has a default.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Most streams at once; tags are below it.
    pub streams: u32,
    /// What the server may send on one stream before this side says more; at most 2^31 - 1. It is widened again when
    /// half of it is used.
    pub stream_window: u32,
    /// The same for the whole connection; at least 65535.
    pub connection_window: u32,
    /// Most bytes of one request that wait for the server's windows.
    pub max_waiting: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            streams: 100,
            // Nothing that is received is kept, so wide windows cost nothing, and no answer waits for a WINDOW_UPDATE.
            stream_window: (1 << 30) - 1,
            connection_window: (1 << 30) - 1,
            max_waiting: 64 << 20,
        }
    }
}

/// What the server allows.
#[derive(Debug)]
pub(super) struct Peer {
    pub streams: u32,
    pub stream_window: u32,
    pub max_frame: usize,
    /// What it lets this side send on all streams.
    pub window: i64,
}

/// One connection. See the module `http2`.
#[derive(Debug)]
pub struct Session {
    pub(super) settings: Settings,
    pub(super) peer: Peer,
    pub(super) framer: Framer,
    pub(super) decoder: Decoder,
    pub(super) fields: Fields,
    pub(super) block: Block,
    pub(super) streams: Streams,
    pub(super) ready: bool,
    /// Bytes received since the window of the connection was last widened.
    pub(super) received: u32,
    /// Where among the tags the next window is dealt from.
    pub(super) turn: u32,
    /// Frames that carried nothing, since anything was done for a request.
    pub(super) idle_frames: u32,
    /// Frames that had to be replied to, since a request went out or an answer ended.
    pub(super) questions: u32,
    pub(super) goaway: Option<GoAway>,
    pub(super) failed: Option<Http2Error>,
    pub(super) next_id: u32,
    pub(super) table: Table,
    scratch: Vec<u8>,
}

impl Session {
    /// A connection nothing was sent on.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: Settings {
                stream_window: settings.stream_window.min(MAX_WINDOW),
                connection_window: settings.connection_window.clamp(DEFAULT_WINDOW, MAX_WINDOW),
                ..settings
            },
            peer: Peer {
                streams: u32::MAX,
                stream_window: DEFAULT_WINDOW,
                max_frame: DEFAULT_MAX_FRAME as usize,
                window: i64::from(DEFAULT_WINDOW),
            },
            framer: Framer::default(),
            decoder: Decoder::new(),
            fields: Fields::default(),
            block: Block::default(),
            streams: Streams::new(),
            ready: false,
            received: 0,
            turn: 0,
            idle_frames: 0,
            questions: 0,
            goaway: None,
            failed: None,
            next_id: 1,
            table: Table::default(),
            scratch: Vec::new(),
        }
    }

    /// Writes what a client begins with.
    pub fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        let settings = [
            (0x2, 0), // no pushes
            (0x4, self.settings.stream_window),
            (0x6, MAX_HEADER_BLOCK as u32),
        ];
        frame::begin(out, 6 * settings.len(), Kind::SETTINGS, 0, 0);
        for (setting, value) in settings {
            out.extend_from_slice(&u16::to_be_bytes(setting));
            out.extend_from_slice(&u32::to_be_bytes(value));
        }
        let wider = self.settings.connection_window - DEFAULT_WINDOW;
        if wider > 0 {
            frame::window_update(out, 0, wider);
        }
    }

    /// The server's SETTINGS have come: it speaks HTTP/2, and its limits are known.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// How many streams may be begun now. 0 before the server's SETTINGS, after GOAWAY, after a fault, and when the
    /// numbers of streams are used up (2^30 requests).
    #[must_use]
    #[inline]
    pub fn room(&self) -> usize {
        if !self.ready || self.goaway.is_some() || self.failed.is_some() {
            return 0;
        }
        let allowed = self.peer.streams.min(self.settings.streams) as usize;
        let numbers = (END_OF_NUMBERS.saturating_sub(self.next_id) / 2) as usize;
        allowed.saturating_sub(self.streams.open()).min(numbers)
    }

    /// How many requests are unanswered.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.streams.open()
    }

    /// Begins a request under a tag that is free: below `Settings::streams`, and without a request in flight. `end`:
    /// `body` is all of its body. What the windows hold back of the body is kept and sent by and by.
    ///
    /// # Errors
    /// It cannot be begun now; nothing was written.
    #[inline]
    pub fn begin(
        &mut self,
        tag: u32,
        head: &RequestHead,
        body: &[u8],
        end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), NotTaken> {
        if tag >= self.settings.streams {
            return Err(NotTaken::TagTooLarge(tag));
        }
        if self.streams.live(tag).is_some() {
            return Err(NotTaken::TagInUse(tag));
        }
        if self.room() == 0 {
            return Err(NotTaken::NoRoom);
        }
        let limit = self.settings.max_waiting;
        if body.len() > limit {
            return Err(NotTaken::TooMuchWaiting { limit });
        }
        let id = self.next_id;
        self.next_id += 2;
        self.active();
        let window = i64::from(self.peer.stream_window);
        self.streams.begin(tag, id, window);
        let bare = end && body.is_empty();
        self.write_head(id, head, bare, out);
        if bare {
            if let Some(stream) = self.streams.live(tag) {
                stream.closing = true;
                stream.sent = true;
            }
            return Ok(());
        }
        match body.is_empty() {
            true => Ok(()),
            false => self.send(tag, body, end, out),
        }
    }

    fn write_head(&mut self, id: u32, head: &RequestHead, end: bool, out: &mut Vec<u8>) {
        self.scratch.clear();
        let mut block = self.table.block(head, &mut self.scratch);
        if !self.scratch.is_empty() {
            self.scratch.extend_from_slice(block);
            block = &self.scratch;
        }
        let flag = if end { END_STREAM } else { 0 };
        if block.len() <= self.peer.max_frame {
            frame::begin(out, block.len(), Kind::HEADERS, flag | END_HEADERS, id);
            return out.extend_from_slice(block);
        }
        let pieces = block.chunks(self.peer.max_frame);
        let last = pieces.len() - 1;
        for (number, piece) in pieces.enumerate() {
            let (kind, flags) = match number {
                0 => (Kind::HEADERS, flag),
                _ if number == last => (Kind::CONTINUATION, END_HEADERS),
                _ => (Kind::CONTINUATION, 0),
            };
            frame::begin(out, piece.len(), kind, flags, id);
            out.extend_from_slice(piece);
        }
    }

    /// Ends a request this side has lost interest in. The tag is free afterwards, and no event comes for it.
    pub fn cancel(&mut self, tag: u32, code: u32, out: &mut Vec<u8>) {
        if let Some(id) = self.streams.end(tag) {
            frame::rst_stream(out, id, code);
        }
    }

    /// Whether the whole request under this tag was written to `out`; once the request has ended, whether it had been.
    #[must_use]
    pub fn is_sent(&self, tag: u32) -> bool {
        self.streams.get(tag).is_some_and(|stream| stream.sent)
    }

    /// What the server said with GOAWAY: no further request may be begun; those in flight may still be answered.
    #[must_use]
    pub const fn going_away(&self) -> Option<&GoAway> {
        self.goaway.as_ref()
    }

    /// The server has closed its side.
    ///
    /// # Errors
    /// What that means where it had something to answer still. Their tags get no event.
    pub fn eof(&self) -> Result<(), Http2Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.framer.eof()?;
        match self.streams.open() as u32 {
            0 => Ok(()),
            streams => Err(Http2Error::EarlyClose {
                streams,
                goaway: self.goaway.clone(),
            }),
        }
    }
}

/// So many frames in a row that carry nothing are a flood. A server that keeps an idle connection alive with a PING
/// every ten seconds may do so for a day.
const MOST_IDLE_FRAMES: u32 = 10_000;

impl Session {
    /// A frame that carries nothing, and costs work.
    #[inline]
    pub(super) fn idle(&mut self, kind: Kind) -> Result<(), Http2Error> {
        self.idle_frames += 1;
        match self.idle_frames > MOST_IDLE_FRAMES {
            true => Err(Http2Error::Flood {
                kind,
                limit: MOST_IDLE_FRAMES,
            }),
            false => Ok(()),
        }
    }

    /// A frame that is replied to. Bytes of an answer between do not excuse it: where the server takes no replies they
    /// wait here, so many at most.
    fn question(&mut self, header: &Header) -> Result<(), Http2Error> {
        if header.has(ACK) {
            return Ok(());
        }
        self.questions += 1;
        match self.questions > MOST_IDLE_FRAMES {
            true => Err(Http2Error::Flood {
                kind: header.kind,
                limit: MOST_IDLE_FRAMES,
            }),
            false => Ok(()),
        }
    }

    /// A request goes out, or an answer has ended.
    #[inline]
    pub(super) fn active(&mut self) {
        (self.idle_frames, self.questions) = (0, 0);
    }

    /// A frame on a stream: this side has begun it, be it that it has ended since.
    #[inline]
    pub(super) fn known(&self, kind: Kind, stream: u32) -> Result<(), Http2Error> {
        match stream {
            0 => Err(bad(kind, "it is for no stream")),
            _ if stream.is_multiple_of(2) || stream >= self.next_id => {
                Err(Http2Error::IdleStream { kind, stream })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn control(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        // A window can be widened 2^31 - 1 times at most, and a server may do so for each piece it reads of an upload.
        if header.kind != Kind::WINDOW_UPDATE {
            self.idle(header.kind)?;
        }
        let about_connection = matches!(header.kind, Kind::SETTINGS | Kind::PING | Kind::GOAWAY);
        if about_connection && header.stream != 0 {
            return Err(bad(header.kind, "it is for a stream"));
        }
        if matches!(header.kind, Kind::SETTINGS | Kind::PING) {
            self.question(header)?;
        }
        match header.kind {
            Kind::SETTINGS => self.take_settings(header, payload, out),
            Kind::PING => ping(header, payload, out),
            Kind::GOAWAY => self.go_away(payload, on),
            Kind::WINDOW_UPDATE => self.widen(header.stream, payload, out, on),
            Kind::RST_STREAM => self.reset(header.stream, payload, on),
            Kind::PRIORITY => match (header.stream, payload.len()) {
                (0, _) => Err(bad(header.kind, "it is for no stream")),
                (_, 5) => Ok(()),
                _ => Err(bad(header.kind, "it is not of 5 bytes")),
            },
            _ => Err(Http2Error::Pushed),
        }
    }

    fn take_settings(
        &mut self,
        header: &Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Http2Error> {
        if header.has(ACK) {
            return match payload.len() {
                0 => Ok(()),
                _ => Err(bad(Kind::SETTINGS, "an acknowledgement has a payload")),
            };
        }
        let (settings, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(bad(Kind::SETTINGS, "its length is not a multiple of 6"));
        }
        for &[n0, n1, v0, v1, v2, v3] in settings {
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            self.set(u16::from_be_bytes([n0, n1]), value)?;
        }
        self.ready = true;
        frame::begin(out, 0, Kind::SETTINGS, ACK, 0);
        self.flush(out);
        Ok(())
    }

    fn set(&mut self, setting: u16, value: u32) -> Result<(), Http2Error> {
        let out_of_bounds = |setting| Err(Http2Error::BadSetting { setting, value });
        match setting {
            0x1 => self.table.allow(value),
            0x2 if value != 0 => return out_of_bounds("ENABLE_PUSH"),
            0x3 => self.peer.streams = value,
            0x4 if value > MAX_WINDOW => return out_of_bounds("INITIAL_WINDOW_SIZE"),
            0x4 => {
                // RFC 9113, section 6.9.2: windows in use move by the difference, below 0 if need be.
                let by = i64::from(value) - i64::from(self.peer.stream_window);
                self.peer.stream_window = value;
                for stream in self.streams.each_live() {
                    stream.window += by;
                    if stream.window > i64::from(MAX_WINDOW) {
                        return Err(Http2Error::WindowOverflow);
                    }
                }
            }
            0x5 if !(16_384..1 << 24).contains(&value) => return out_of_bounds("MAX_FRAME_SIZE"),
            0x5 => self.peer.max_frame = value as usize,
            // MAX_HEADER_LIST_SIZE is advice, and what is unknown is ignored (section 6.5.2).
            _ => {}
        }
        Ok(())
    }

    fn go_away(
        &mut self,
        payload: &[u8],
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let Some((&[l0, l1, l2, l3, c0, c1, c2, c3], debug)) = payload.split_first_chunk() else {
            return Err(bad(Kind::GOAWAY, "it is shorter than 8 bytes"));
        };
        let last_stream = u32::from_be_bytes([l0, l1, l2, l3]) & MAX_WINDOW;
        if let Some(before) = &self.goaway
            && last_stream > before.last_stream
        {
            return Err(bad(Kind::GOAWAY, "it takes back streams it had refused"));
        }
        self.goaway = Some(GoAway {
            last_stream,
            code: u32::from_be_bytes([c0, c1, c2, c3]),
            debug: excerpt(debug),
        });
        for tag in 0..self.streams.tags() {
            if self
                .streams
                .live(tag)
                .is_some_and(|stream| stream.id > last_stream)
            {
                self.streams.end(tag);
                on(tag, StreamEvent::Refused);
            }
        }
        Ok(())
    }

    fn widen(
        &mut self,
        id: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let by = i64::from(word(Kind::WINDOW_UPDATE, payload)? & MAX_WINDOW);
        if id == 0 {
            self.peer.window += by;
            if by == 0 {
                return Err(bad(Kind::WINDOW_UPDATE, "it widens the window by nothing"));
            }
            if self.peer.window > i64::from(MAX_WINDOW) {
                return Err(Http2Error::WindowOverflow);
            }
            self.flush(out);
            return Ok(());
        }
        self.known(Kind::WINDOW_UPDATE, id)?;
        let Some((tag, stream)) = self.streams.find(id) else {
            return self.idle(Kind::WINDOW_UPDATE);
        };
        stream.window += by;
        if by == 0 {
            let why = "the server widens its window by nothing";
            self.spoil(tag, PROTOCOL_ERROR, why, out, on);
        } else if stream.window > i64::from(MAX_WINDOW) {
            let why = "the server widens its window beyond 2147483647 bytes";
            self.spoil(tag, FLOW_CONTROL_ERROR, why, out, on);
        } else {
            self.flush_one(tag, out);
        }
        Ok(())
    }

    fn reset(
        &mut self,
        id: u32,
        payload: &[u8],
        on: &mut impl FnMut(u32, StreamEvent<'_>),
    ) -> Result<(), Http2Error> {
        let code = word(Kind::RST_STREAM, payload)?;
        self.known(Kind::RST_STREAM, id)?;
        let Some((tag, _)) = self.streams.find(id) else {
            return Ok(());
        };
        self.streams.end(tag);
        self.active();
        on(
            tag,
            match code {
                REFUSED_STREAM => StreamEvent::Refused,
                _ => StreamEvent::Reset { code },
            },
        );
        Ok(())
    }
}

fn ping(header: &Header, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Http2Error> {
    if payload.len() != 8 {
        return Err(bad(Kind::PING, "it is not of 8 bytes"));
    }
    if !header.has(ACK) {
        frame::begin(out, 8, Kind::PING, ACK, 0);
        out.extend_from_slice(payload);
    }
    Ok(())
}

fn word(kind: Kind, payload: &[u8]) -> Result<u32, Http2Error> {
    match *payload {
        [b0, b1, b2, b3] => Ok(u32::from_be_bytes([b0, b1, b2, b3])),
        _ => Err(bad(kind, "it is not of 4 bytes")),
    }
}

const fn bad(kind: Kind, why: &'static str) -> Http2Error {
    Http2Error::BadFrame { kind, why }
}

/// As much of a status line as is waited for and shown.
pub const LONGEST_LINE: usize = 128;

/// A frame that began so would be of 4.7 MB.
pub fn is_http1(start: &[u8; HEADER_BYTES]) -> bool {
    start.starts_with(b"HTTP/")
}

/// What an HTTP/1.1 server says; `start` is its first line, or what came of it.
pub fn http1(start: &[u8]) -> Http2Error {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
    Http2Error::Http1 {
        line: excerpt(line.trim_ascii_end()),
    }
}

/// RFC 9113, section 3.4: the first frame is SETTINGS, and no acknowledgement.
pub fn check(header: &Header, start: &[u8; HEADER_BYTES], more: &[u8]) -> Result<(), Http2Error> {
    let plausible =
        header.kind.is_known() && header.length <= crate::protocol::http2::frame::DEFAULT_MAX_FRAME;
    match header.kind {
        _ if !plausible => Err(stranger(start, more)),
        Kind::SETTINGS if header.stream == 0 => Ok(()),
        kind => Err(Http2Error::NoSettings { kind }),
    }
}

/// Neither HTTP/2 nor HTTP/1.
pub fn stranger(start: &[u8], more: &[u8]) -> Http2Error {
    // RFC 8446, section 5.1: content type 21 is an alert, and the version begins with 3.
    if start.starts_with(&[21, 3]) {
        return Http2Error::Tls;
    }
    let enough = more.len().min(64);
    Http2Error::NotHttp2 {
        start: excerpt(&[start, &more[..enough]].concat()),
    }
}
