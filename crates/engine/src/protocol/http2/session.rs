//! One connection: what the caller does with it.

use super::answer::Fields;
use super::error::{GoAway, Http2Error, NotTaken};
use super::frame::{self, DEFAULT_MAX_FRAME, END_HEADERS, END_STREAM, Kind};
use super::framer::Framer;
use super::hpack::Decoder;
use super::receiving::{Block, MAX_HEADER_BLOCK};
use super::request::{RequestHead, Table};
use super::streams::Streams;

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
