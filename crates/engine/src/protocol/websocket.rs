//! WebSocket from the client's side (RFC 6455), sans I/O: one [`Session`] is one connection. Bytes in, events out.
//!
//! ```
//! use velodrome_engine::protocol::websocket::{Event, Kind, Piece, Session, Upgrade, accept, framed};
//! let mut upgrade = Upgrade::new("127.0.0.1:8000", "/chat", &[]).unwrap();
//! let (mut session, mut out) = (Session::new(1 << 20), Vec::new());
//! let key = session.open(&mut upgrade, &mut out);
//! assert!(out.starts_with(b"GET /chat HTTP/1.1\r\n"));
//! let mut answer = format!(
//!     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
//!      Sec-WebSocket-Accept: {}\r\n\r\n",
//!     accept(&key),
//! ).into_bytes();
//! answer.extend(b"\x81\x05hello");
//! session.feed(&answer, &mut out, |event| {
//!     assert!(matches!(event, Event::Open | Event::Data(Piece { kind: Kind::Text, bytes: b"hello", end: true })));
//! }).unwrap();
//! assert!(session.is_open());
//! out.extend(framed(Kind::Text, b"hello", [1, 2, 3, 4]));
//! ```
//!
//! The bytes are hostile: nothing panics, and nothing is kept but the head of the handshake while it is incomplete and
//! one control frame. Extensions are not offered, so messages come as they are.

pub mod broadcast;
pub mod connect;
pub mod echo;
mod frame;
mod handshake;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::protocol::excerpt::excerpt;
use crate::protocol::http1::{MAX_HEAD_BYTES, ProtocolError};
use crate::protocol::websocket::frame::{
    BINARY, CLOSE, CONTINUATION, Header, LONGEST_HEADER, MOST_CONTROL, PING, TEXT,
};
use crate::protocol::websocket::handshake::Answer;

pub use frame::{Kind, framed, framed_into};
pub use handshake::{Upgrade, accept};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The handshake is done: messages may be sent.
    Open,
    /// A piece of a message.
    Data(Piece<'a>),
}

/// A piece of a message, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    pub kind: Kind,
    pub bytes: &'a [u8],
    /// The message is complete.
    pub end: bool,
}

/// How far a connection is.
#[derive(Debug)]
enum State {
    /// The answer to the handshake is awaited.
    Opening(Answer),
    Header,
    Data(Header),
    Control(Header),
    /// It has ended, and so it says.
    Over(WebSocketError),
}

/// One connection, driven by its bytes. See the module `websocket`.
#[derive(Debug)]
pub struct Session {
    state: State,
    /// Most bytes of one message.
    limit: u64,
    /// The beginning of a header or of the payload of a control frame that was cut.
    cut: [u8; MOST_CONTROL],
    have: usize,
    /// What is missing of the payload of a data frame.
    left: u64,
    /// The message that goes on with the next data frame, and its bytes so far.
    message: Option<Kind>,
    length: u64,
    text: Utf8,
    /// This side has said goodbye.
    closing: bool,
    idle_frames: u32,
}

impl Session {
    /// A connection nothing was sent on, whose server may send messages of so many bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            state: State::Opening(Answer::default()),
            limit,
            cut: [0; MOST_CONTROL],
            have: 0,
            left: 0,
            message: None,
            length: 0,
            text: Utf8::default(),
            closing: false,
            idle_frames: 0,
        }
    }

    /// Writes the request of the opening handshake; returns its key.
    pub fn open(&mut self, upgrade: &mut Upgrade, out: &mut Vec<u8>) -> [u8; 24] {
        let key = upgrade.write(out);
        self.state = State::Opening(Answer::to(key));
        key
    }

    /// Whether messages may be sent.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        !self.closing && !matches!(self.state, State::Opening(_) | State::Over(_))
    }

    /// Says goodbye with a code of section 7.4.1: no message may be sent any more, and those that still come are told.
    pub fn close(&mut self, code: u16, out: &mut Vec<u8>) {
        if self.is_open() {
            self.closing = true;
            frame::write(out, CLOSE, &code.to_be_bytes(), MASK);
        }
    }

    /// Takes the next bytes of the connection; `on` gets what they mean. Answers to pings and goodbyes go to `out`.
    ///
    /// # Errors
    /// Why the connection has ended: what the server did against the protocol, or
    /// [`Closed`](WebSocketError::Closed) with its goodbye. Asked again, it says the same.
    #[inline]
    pub fn feed(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        mut on: impl FnMut(Event<'_>),
    ) -> Result<(), WebSocketError> {
        let fed = self.advance(&mut bytes, out, &mut on);
        if let Err(error) = &fed
            && !matches!(self.state, State::Over(_))
        {
            if let Some(code) = error.code()
                && !std::mem::replace(&mut self.closing, true)
            {
                frame::write(out, CLOSE, &code.to_be_bytes(), MASK);
            }
            self.state = State::Over(error.clone());
        }
        fed
    }

    /// The server has closed its side.
    ///
    /// # Errors
    /// What that means, unless both sides had said goodbye or this one had: then nothing is missed.
    pub fn eof(&self) -> Result<(), WebSocketError> {
        match &self.state {
            State::Over(error) => Err(error.clone()),
            State::Opening(_) => Err(WebSocketError::ClosedInHandshake),
            _ if self.closing => Ok(()),
            _ => Err(WebSocketError::ClosedWithoutGoodbye),
        }
    }

    fn advance(
        &mut self,
        bytes: &mut &[u8],
        out: &mut Vec<u8>,
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), WebSocketError> {
        loop {
            match &mut self.state {
                State::Over(error) => return Err(error.clone()),
                State::Opening(answer) => {
                    if !answer.feed(bytes)? {
                        return Ok(());
                    }
                    self.state = State::Header;
                    on(Event::Open);
                }
                State::Header => {
                    let Some(header) = self.header(bytes)? else {
                        return Ok(());
                    };
                    self.enter(header)?;
                }
                State::Data(header) => {
                    let header = *header;
                    if self.left > 0 && bytes.is_empty() {
                        return Ok(());
                    }
                    self.data(header, bytes, on)?;
                }
                State::Control(header) => {
                    let header = *header;
                    // The cast is exact: at most 125.
                    let length = header.length as usize;
                    let here = bytes.len().min(length - self.have);
                    let (taken, rest) = bytes.split_at(here);
                    self.cut[self.have..self.have + here].copy_from_slice(taken);
                    self.have += here;
                    *bytes = rest;
                    if self.have < length {
                        return Ok(());
                    }
                    self.have = 0;
                    self.state = State::Header;
                    self.control(header.opcode, length, out)?;
                }
            }
        }
    }

    #[inline]
    fn header(&mut self, bytes: &mut &[u8]) -> Result<Option<Header>, WebSocketError> {
        if self.have == 0
            && let Some(size) = Header::size(bytes)
            && let Some((header, rest)) = bytes.split_at_checked(size)
        {
            *bytes = rest;
            return Header::parse(header).map(Some);
        }
        while let Some((&byte, rest)) = bytes.split_first() {
            debug_assert!(self.have < LONGEST_HEADER);
            self.cut[self.have] = byte;
            self.have += 1;
            *bytes = rest;
            let header = &self.cut[..self.have];
            if Header::size(header) == Some(self.have) {
                let header = Header::parse(header)?;
                self.have = 0;
                return Ok(Some(header));
            }
        }
        Ok(None)
    }

    /// A frame begins.
    #[inline]
    fn enter(&mut self, header: Header) -> Result<(), WebSocketError> {
        let bad = |why| Err(WebSocketError::BadFrame { why });
        let kind = match (header.opcode, self.message) {
            (CONTINUATION, None) => return bad("there is no message it could continue"),
            (CONTINUATION, Some(kind)) => kind,
            (TEXT | BINARY, Some(_)) => return bad("it begins a message within another"),
            (TEXT, None) => Kind::Text,
            (BINARY, None) => Kind::Binary,
            _ => {
                self.state = State::Control(header);
                return self.idle();
            }
        };
        if header.length == 0 && !header.last {
            self.idle()?;
        }
        self.length = self.length.saturating_add(header.length);
        if self.length > self.limit {
            return Err(WebSocketError::MessageTooLarge { limit: self.limit });
        }
        self.message = Some(kind);
        self.left = header.length;
        self.state = State::Data(header);
        Ok(())
    }

    #[inline]
    fn data(
        &mut self,
        header: Header,
        bytes: &mut &[u8],
        on: &mut impl FnMut(Event<'_>),
    ) -> Result<(), WebSocketError> {
        // The cast is exact: the smaller of the two fits in usize.
        let here = (bytes.len() as u64).min(self.left) as usize;
        let (piece, rest) = bytes.split_at(here);
        *bytes = rest;
        self.left -= here as u64;
        let end = header.last && self.left == 0;
        let kind = self.message.unwrap_or(Kind::Binary);
        if kind == Kind::Text && (!self.text.take(piece) || (end && !self.text.is_whole())) {
            return Err(WebSocketError::BadText);
        }
        if self.left == 0 {
            self.state = State::Header;
        }
        if end {
            self.message = None;
            self.length = 0;
            self.idle_frames = 0;
        }
        if end || here > 0 {
            let bytes = piece;
            on(Event::Data(Piece { kind, bytes, end }));
        }
        Ok(())
    }
}

/// The connection on which it happened cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WebSocketError {
    /// The server is there and does not want to: wrong path, no WebSocket, not allowed.
    #[error("the server answers the opening handshake with '{line}' where 101 is right")]
    NotUpgraded { status: u16, line: String },
    /// RFC 6455, section 4.1: what a client must check.
    #[error("the server answers 101, but {why}")]
    BadUpgrade { why: &'static str },
    #[error("the answer to the opening handshake is not HTTP/1: {0}")]
    BadHead(ProtocolError),
    /// As for HTTP/1: without a bound, a server that never ends its head would fill the memory.
    #[error("the answer to the opening handshake has a head longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLarge,
    /// Section 5.2: nothing after a frame that contradicts itself can be trusted.
    #[error("the server sent a bad frame: {why}")]
    BadFrame { why: &'static str },
    /// A message is not kept, but an endless one would never be an answer.
    #[error("the server sent a message larger than {limit} bytes")]
    MessageTooLarge { limit: u64 },
    /// Section 8.1.
    #[error("the server sent a text message that is not UTF-8")]
    BadText,
    /// Frames that carry nothing cost this side work and the server next to none.
    #[error(
        "the server floods the connection: {limit} frames that carry nothing, and no message among them"
    )]
    Flood { limit: u32 },
    #[error("the server closed the connection during the opening handshake")]
    ClosedInHandshake,
    /// Section 7.1.5: a close without a Close frame before it is an accident.
    #[error("the server closed the connection without a Close frame")]
    ClosedWithoutGoodbye,
    #[error("the server closed the WebSocket: {}", goodbye(.code, .reason))]
    Closed {
        /// None: the server gave none.
        code: Option<u16>,
        /// Escaped and cut.
        reason: String,
    },
}

fn goodbye(code: &Option<u16>, reason: &str) -> String {
    let name = match code {
        None => return "it gave no code".into(),
        Some(1000) => " (normal)",
        Some(1001) => " (going away)",
        Some(1002) => " (protocol error)",
        Some(1003) => " (unsupported data)",
        Some(1007) => " (bad data)",
        Some(1008) => " (policy)",
        Some(1009) => " (message too large)",
        Some(1011) => " (internal error)",
        Some(1012) => " (restart)",
        Some(1013) => " (try again later)",
        Some(_) => "",
    };
    let code = code.unwrap_or_default();
    match reason {
        "" => format!("code {code}{name}"),
        _ => format!("code {code}{name}: '{reason}'"),
    }
}

impl WebSocketError {
    /// The code this side closes with (section 7.4.1); None: there is nobody to tell.
    #[must_use]
    pub const fn code(&self) -> Option<u16> {
        match self {
            Self::BadFrame { .. } => Some(1002),
            Self::BadText => Some(1007),
            Self::Flood { .. } => Some(1008),
            Self::MessageTooLarge { .. } => Some(1009),
            _ => None,
        }
    }
}

/// So many frames in a row that carry nothing are a flood. A server that pings an idle connection every ten seconds
/// may do so for a day.
const MOST_IDLE_FRAMES: u32 = 10_000;

/// Of control frames: as good as any, see [`frame::framed`].
pub const MASK: [u8; 4] = [0x76, 0x65, 0x6c, 0x6f];

impl Session {
    /// A whole control frame, whose payload is in `cut`.
    fn control(
        &mut self,
        opcode: u8,
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), WebSocketError> {
        let payload = &self.cut[..length];
        match opcode {
            PING if !self.closing => frame::write(out, frame::PONG, payload, MASK),
            CLOSE => {
                let goodbye = said(payload)?;
                if !std::mem::replace(&mut self.closing, true) {
                    frame::write(out, CLOSE, &payload[..length.min(2)], MASK);
                }
                return Err(goodbye);
            }
            // A pong nobody asked for is allowed (section 5.5.3).
            _ => {}
        }
        Ok(())
    }

    /// A frame that carries nothing, and costs work.
    fn idle(&mut self) -> Result<(), WebSocketError> {
        self.idle_frames += 1;
        match self.idle_frames > MOST_IDLE_FRAMES {
            true => Err(WebSocketError::Flood {
                limit: MOST_IDLE_FRAMES,
            }),
            false => Ok(()),
        }
    }
}

/// What a Close frame says (section 5.5.1).
fn said(payload: &[u8]) -> Result<WebSocketError, WebSocketError> {
    let bad = |why| Err(WebSocketError::BadFrame { why });
    let (code, reason) = match payload {
        [] => (None, &[][..]),
        [_] => return bad("it is a Close frame of one byte"),
        [c0, c1, reason @ ..] => (Some(u16::from_be_bytes([*c0, *c1])), reason),
    };
    // Section 7.4: what stands between the two ranges is for the inside of programs, or not given out.
    if !matches!(code, None | Some(1000..=1003 | 1007..=1014 | 3000..=4999)) {
        return bad("it is a Close frame with a code that may not be sent");
    }
    match std::str::from_utf8(reason) {
        Ok(_) => Ok(WebSocketError::Closed {
            code,
            reason: excerpt(reason),
        }),
        Err(_) => bad("it is a Close frame whose reason is not UTF-8"),
    }
}

/// The checker of one message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utf8 {
    /// The beginning of a character that was cut.
    cut: [u8; 4],
    have: usize,
}

impl Utf8 {
    /// Whether the text may go on so.
    #[inline]
    pub fn take(&mut self, mut bytes: &[u8]) -> bool {
        while self.have > 0 {
            let Some((&byte, rest)) = bytes.split_first() else {
                return true;
            };
            self.cut[self.have] = byte;
            bytes = rest;
            match std::str::from_utf8(&self.cut[..=self.have]) {
                Ok(_) => self.have = 0,
                // At most three bytes can begin a character and not be one.
                Err(fault) if fault.error_len().is_none() && self.have < 3 => self.have += 1,
                Err(_) => return false,
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(fault) if fault.error_len().is_none() => {
                let tail = &bytes[fault.valid_up_to()..];
                self.cut[..tail.len()].copy_from_slice(tail);
                self.have = tail.len();
                true
            }
            Err(_) => false,
        }
    }

    /// Whether the text may end here.
    pub const fn is_whole(self) -> bool {
        self.have == 0
    }
}
