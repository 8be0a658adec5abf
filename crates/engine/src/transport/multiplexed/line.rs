//! A connection below the streams, from its making to its end.

use std::io;

use crate::clock::Nanos;
use crate::protocol::http2::{Http2Error, Session, Settings};
use crate::transport::Token;

/// How far a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is no connection, or no more.
    Absent,
    /// The connection is being made.
    Opening,
    /// It is there, and the server's SETTINGS are not.
    Greeting,
    /// It takes streams.
    Open,
    /// The server takes no more streams on it; those begun go on.
    Leaving,
}

/// See the module.
pub struct Line {
    /// See [`Stage`].
    pub stage: Stage,
    /// Number of the connection, for the transport below.
    pub generation: u32,
    /// Its side of HTTP/2.
    pub session: Session,
    /// What is to be sent.
    pub out: Vec<u8>,
    /// Requests in `out`.
    pub held: u32,
    /// Slots that use it.
    pub attached: u32,
    /// Slots whose requests are not out whole.
    pub sending: Vec<u32>,
    /// Why it ended, where there is more to tell than that the server closed it.
    fault: Option<io::Error>,
    /// The shortest round trip of the connection, once that has ended.
    pub round_trip: Option<Nanos>,
}

impl Line {
    /// A line without a connection.
    pub fn new(settings: Settings) -> Line {
        Line {
            stage: Stage::Absent,
            generation: 0,
            session: Session::new(settings),
            out: Vec::new(),
            held: 0,
            attached: 0,
            sending: Vec::new(),
            fault: None,
            round_trip: None,
        }
    }

    /// Names its connection to the transport below.
    pub fn token(&self, number: usize) -> Token {
        Token {
            slot: number as u32,
            generation: self.generation,
        }
    }

    /// A connection begins.
    pub fn begin(&mut self, settings: Settings) {
        self.stage = Stage::Opening;
        self.generation = self.generation.wrapping_add(1);
        self.session = Session::new(settings);
        self.out.clear();
        self.held = 0;
        self.sending.clear();
        self.fault = None;
        self.round_trip = None;
    }

    /// The connection has ended, for this reason where there is one to tell.
    pub fn end(&mut self, fault: Option<io::Error>) {
        self.stage = Stage::Absent;
        self.generation = self.generation.wrapping_add(1);
        self.out.clear();
        self.held = 0;
        self.fault = fault;
    }

    /// Nobody uses it and nothing is under way: a connection may begin.
    pub fn is_free(&self) -> bool {
        self.stage == Stage::Absent && self.attached == 0
    }

    /// Whether one slot more may use it.
    pub fn has_room(&self) -> bool {
        let allowed = self.session.in_flight() + self.session.room();
        self.stage == Stage::Open && (self.attached as usize) < allowed
    }

    /// Why it ended.
    pub fn why(&self) -> Option<io::Error> {
        self.fault.as_ref().map(copy)
    }
}

/// What a server did against HTTP/2, or how it closed, as the worker is told it.
pub fn fault(error: &Http2Error) -> io::Error {
    let kind = match error {
        Http2Error::EarlyClose { .. } | Http2Error::ClosedAtOnce => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error.to_string())
}

/// The same error for one slot more.
pub fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(errno) => io::Error::from_raw_os_error(errno),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
