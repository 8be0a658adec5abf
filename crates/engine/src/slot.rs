//! One place for a connection, and the request it carries.

use std::io;

use crate::agenda::{Again, Request};
use crate::clock::Nanos;
use crate::protocol::Protocol;
use crate::transport::Token;

/// What the connection of a slot is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Vacant,
    /// It is being made.
    Connecting,
    /// There is no room for it on the server's side; it is told when there is.
    Parked,
    /// Nothing to do.
    Idle,
    /// A request is in flight.
    Busy,
    /// Its request was answered a moment ago and the event is still being read.
    Answered,
    /// Its request was answered before it was sent whole, and the rest is still going out.
    Finishing,
}

/// See the module.
#[derive(Debug)]
pub struct Slot<P> {
    /// The connection's side of the protocol.
    pub protocol: P,
    /// See [`State`].
    pub state: State,
    /// Number of the connection.
    pub generation: u32,
    /// When the request in flight was due.
    pub due: Nanos,
    /// When it was sent, of one that is sent again the first time; when the attempt to connect began.
    pub since: Nanos,
    /// When the slot last had nothing to do: a closed loop's next request is due then.
    pub free_since: Nanos,
    /// Number of the request among those of its worker.
    pub number: u64,
    /// The request has been sent before.
    pub again: bool,
    /// The request is not yet out whole.
    pub sending: bool,
    /// When the first byte of the answer came, of one that did not come whole at once; else 0.
    pub first_byte: Nanos,
    /// Bytes of the answer have come.
    pub received: bool,
    /// This connection has had an answer.
    pub reused: bool,
    /// This slot has been connected.
    pub opened: bool,
    /// This slot has had an answer.
    pub answered: bool,
    /// Failures in a row.
    pub failures: u8,
}

impl<P: Protocol> Default for Slot<P> {
    /// A slot without a connection.
    fn default() -> Slot<P> {
        Slot {
            protocol: P::new(),
            state: State::Vacant,
            generation: 0,
            due: 0,
            since: 0,
            free_since: 0,
            number: 0,
            again: false,
            sending: false,
            first_byte: 0,
            received: false,
            reused: false,
            opened: false,
            answered: false,
            failures: 0,
        }
    }
}

impl<P: Protocol> Slot<P> {
    /// Names the slot's present connection to the transport.
    #[inline]
    pub fn token(&self, index: u32) -> Token {
        Token {
            slot: index,
            generation: self.generation,
        }
    }

    /// A new connection is being made.
    pub fn connecting(&mut self, index: u32, now: Nanos) -> Token {
        self.generation = self.generation.wrapping_add(1);
        self.protocol.renew();
        self.state = State::Connecting;
        self.since = now;
        self.reused = false;
        self.token(index)
    }

    /// The connection is gone; events of it that are still under way are stale from now on.
    pub fn vacate(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.state = State::Vacant;
        self.sending = false;
    }

    /// A request goes out.
    #[inline]
    pub fn begin(&mut self, request: Request, now: Nanos) {
        self.state = State::Busy;
        self.due = request.due;
        self.again = request.again.is_some();
        self.since = request.sent().unwrap_or(now);
        self.received = false;
        self.first_byte = 0;
    }
}

impl<P> Slot<P> {
    /// The request in flight, to be sent once more.
    pub fn once_more(&self) -> Again {
        Again {
            number: self.number,
            since: self.since,
        }
    }

    /// When the first byte of the answer came, where that is known.
    pub fn first_byte(&self) -> Option<Nanos> {
        Some(self.first_byte).filter(|&moment| moment > 0)
    }
}

/// A failure to connect, with the cure where the cause is on this machine.
pub fn explain(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => {
            "no local port is free: connections closed in the last 60 s still hold theirs; \
             use keep-alive, a lower rate, or widen net.ipv4.ip_local_port_range"
                .into()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "no file descriptor is free; raise `ulimit -n` or use fewer connections".into()
        }
        Some(libc::ECONNREFUSED) => "connection refused: nothing listens there".into(),
        Some(libc::EAGAIN) => {
            "the listen queue of the unix socket is full: the server takes connections in too slowly; \
             use fewer (-c), or give it a longer queue (backlog)"
                .into()
        }
        Some(libc::ENOENT) => "there is no such unix socket: is the server running?".into(),
        _ => format!("cannot connect: {error}"),
    }
}
