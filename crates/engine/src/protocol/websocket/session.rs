//! One connection.

use super::control::MASK;
use super::error::WebSocketError;
use super::frame::{
    self, BINARY, CLOSE, CONTINUATION, Header, Kind, LONGEST_HEADER, MOST_CONTROL, TEXT,
};
use super::handshake::{Answer, Upgrade};
use super::text::Utf8;

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
    pub(super) cut: [u8; MOST_CONTROL],
    have: usize,
    /// What is missing of the payload of a data frame.
    left: u64,
    /// The message that goes on with the next data frame, and its bytes so far.
    message: Option<Kind>,
    length: u64,
    text: Utf8,
    /// This side has said goodbye.
    pub(super) closing: bool,
    pub(super) idle_frames: u32,
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
