//! How bytes reach the server: one interface, the same events from epoll, io_uring, the fallback and the simulation.
//!
//! All `unsafe` code of the engine is in this folder: the lint `unsafe_code` is denied everywhere else (`lib.rs`).

use std::io;

use crate::clock::monotonic;
use crate::clock::{MICROSECOND, Nanos, SECOND};
use crate::durations::Durations;

use serde::Serialize;

pub use crate::os::TcpInfo;
use crate::protocol::{Bytes, Incoming, Medium, Outgoing};

#[cfg(target_os = "linux")]
pub mod adaptive;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub mod epoll;
#[cfg(not(target_os = "linux"))]
#[path = "portable.rs"]
#[allow(unsafe_code)]
pub mod epoll;
pub mod multiplexed;
pub mod room;
pub mod simulated;
pub mod tls;
mod unsent;
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub mod uring;
pub mod websocket;
pub mod written;

/// One connection in one slot. The generation tells it from its predecessors in that slot, whose events may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Index, dense from 0.
    pub slot: u32,
    /// Grows by one with each connection in the slot.
    pub generation: u32,
}

impl Token {
    fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    #[cfg(target_os = "linux")]
    fn unpack(packed: u64) -> Token {
        Token {
            slot: packed as u32,
            generation: (packed >> 32) as u32,
        }
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The connection is there.
    Connected(Token),
    /// It could not be made.
    NotConnected(Token, io::Error),
    /// There is no room for it beside the others now; `Connected` follows if there ever is.
    Full(Token),
    /// Bytes, or the end, can be had with [`Transport::received`].
    Readable(Token, Reading),
    /// A request that did not go out at once has gone out.
    Sent(Token),
}

/// What a transport must remember between the event and the reading; opaque to the worker.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // the fallback needs `more` only
pub struct Reading {
    /// epoll: read until it would block. io_uring: not yet read.
    more: bool,
    /// io_uring: the provided buffer. Streams: how many events. Otherwise: pieces read in this turn.
    buffer: u16,
    /// io_uring: bytes in it, or a negative `errno`. Streams: number of the first event.
    length: i32,
    /// The next piece is to be a short one: more than a head would only be copied to be thrown away.
    brief: bool,
}

impl Reading {
    /// Wishes for a head and little more, because what follows it is dropped. Transports that have read already, or
    /// read the same way whatever comes, take no notice.
    pub fn briefly(&mut self) {
        self.brief = true;
    }
}

/// Pieces read from one connection before the others, and what falls due, have their turn: a server that sends faster
/// than it is read would keep the worker for ever.
const TURN: u16 = 4;

/// Something read from a connection.
#[derive(Debug)]
pub enum Received<I> {
    /// What came; ask again.
    Piece(I),
    /// Nothing more for now.
    Nothing,
    /// The peer has closed its side.
    Closed,
    /// The connection broke; of kind `InvalidData` where the peer broke the rules of the transport itself.
    Failed(io::Error),
}

/// Whether a request went out whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Into the kernel's buffer, whole.
    Done,
    /// Not whole yet: [`Event::Sent`] follows, or the connection turns out broken when it is read.
    Pending,
}

/// Connections to one address, non-blocking, owned by one thread.
pub trait Transport {
    /// What it carries.
    type Medium: Medium;

    /// Begins to connect; `Connected` or `NotConnected` follows. An error means that no attempt could be made.
    fn connect(&mut self, token: Token) -> io::Result<()>;

    /// Sends a whole request.
    fn send(&mut self, token: Token, request: &Outgoing<Self::Medium>) -> Sending;

    /// The next piece of a `Readable` event; asked until it is not a `Piece`.
    fn received(
        &mut self,
        token: Token,
        reading: &mut Reading,
    ) -> Received<Incoming<'_, Self::Medium>>;

    /// When the bytes that were received or dropped last came to this machine, by its kernel; None: not known here.
    #[inline]
    fn arrived(&self) -> Option<Nanos> {
        None
    }

    /// Drops the bytes that a `Readable` event announced, unseen: how many there were. `left` are expected; some that
    /// came behind them, which nobody asked for, are dropped and counted, too. None: this transport has them already,
    /// and they are to be `received`.
    #[inline]
    fn discard(
        &mut self,
        _token: Token,
        _reading: &mut Reading,
        _left: u64,
    ) -> Option<Received<u64>> {
        None
    }

    /// An answer has ended: so many bytes of it nobody had to look at, dropped or not; 0 where they were few.
    #[inline]
    fn weighed(&mut self, _bulk: u64) {}

    /// Bytes nobody has to look at, of an average answer, that made this transport change the way it receives.
    fn changed_for(&self) -> Option<u64> {
        None
    }

    /// Closes at once; later events of this token are not to be acted on.
    fn close(&mut self, token: Token);

    /// Waits for events until `until` at the latest (`now` is the present) and appends them.
    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()>;

    /// How long connections are waited for at most before the load begins without the missing ones.
    fn patience(&self) -> Nanos {
        SECOND
    }

    /// Why a connection that was asked for `limit_s` seconds ago is not there yet.
    fn delay(&self, token: Token, limit_s: f64) -> String {
        let _ = token;
        format!("no connection within {limit_s} s")
    }

    /// How the connections fared, where they are others than the slots, which `of_slots` counts.
    fn census(&self, of_slots: Connections) -> Connections {
        of_slots
    }

    /// How long it took until connections stood.
    fn standing(&self) -> Standing {
        Standing::default()
    }

    /// What the kernel tells of one of the connections, by its number in the transport that has the sockets.
    fn look(&self, number: usize) -> Option<TcpInfo> {
        let _ = number;
        None
    }

    /// The shortest round trip that the kernel has seen on a connection; None: it does not tell.
    fn round_trip(&self, token: Token) -> Option<Nanos> {
        self.look(token.slot as usize)?
            .rtt_us
            .map(|us| Nanos::from(us) * MICROSECOND)
    }

    /// What the members of a room heard beside what they were to hear, where there is a room.
    fn room(&self) -> Option<RoomCounts> {
        None
    }

    /// As results name it.
    fn name(&self) -> &'static str;
}

/// A transport of bytes that another layer can lie upon: what that sends is gathered anew each time.
pub trait ByteTransport: Transport<Medium = Bytes> {
    /// Sends what is in `bytes` behind all sent before it, and takes it away. As with [`Transport::send`], `Pending` is
    /// followed by [`Event::Sent`] when all of it is out.
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending;
}

/// One stage that all connections of a transport go through: each slot's last beginning, and how long each took.
#[derive(Debug)]
pub struct Stage {
    since: Vec<Nanos>,
    times: Durations,
}

impl Stage {
    /// A stage for up to `slots` connections.
    pub fn new(slots: usize) -> Stage {
        Stage {
            since: vec![0; slots],
            times: Durations::default(),
        }
    }

    /// The connection in this slot has come to the stage.
    pub fn begin(&mut self, slot: u32) {
        self.since[slot as usize] = monotonic();
    }

    /// It has left it.
    pub fn end(&mut self, slot: u32) {
        self.times
            .record(monotonic().saturating_sub(self.since[slot as usize]));
    }

    /// How long each took.
    pub fn times(&self) -> Durations {
        self.times.clone()
    }
}

/// How long connections took until they stood, over the whole run; None where a transport has no such stage, or does
/// not tell.
#[derive(Debug, Default)]
pub struct Standing {
    /// From the first packet until TCP stood.
    pub connect: Option<Durations>,
    /// From there until the TLS handshake was done.
    pub tls: Option<Durations>,
}

impl Standing {
    /// Adds those of another thread.
    pub fn add(&mut self, other: Standing) {
        for (mine, theirs) in [
            (&mut self.connect, other.connect),
            (&mut self.tls, other.tls),
        ] {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => mine.add(&theirs),
                (None, theirs) => *mine = theirs,
                _ => {}
            }
        }
    }
}

/// How connections fared, counted over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Slots that were connected at least once.
    pub opened: u64,
    /// Connections after the first in a slot: after a failure or a close (every request, without keep-alive).
    pub reopened: u64,
    /// Slots that got at least one answer.
    pub answered: u64,
}

/// What members heard beside what they were to hear, counted over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoomCounts {
    /// Messages that a member had already.
    pub again: u64,
    /// Messages that were given up before.
    pub late: u64,
    /// Messages nobody here sent.
    pub strangers: u64,
}
