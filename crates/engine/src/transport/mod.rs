//! How bytes reach the server: one interface, the same events from epoll, kqueue, io_uring and the simulation.

use std::io;

use crate::clock::monotonic;
use crate::clock::{MICROSECOND, Nanos, SECOND};
use crate::durations::Durations;

use serde::Serialize;

pub use crate::os::TcpInfo;
pub use crate::protocol::Need;
use crate::protocol::{Bytes, Incoming, Medium, Outgoing};

#[cfg(target_os = "linux")]
pub mod adaptive;
pub mod multiplexed;
pub mod polled;
pub mod room;
pub mod simulated;
pub mod tls;
#[cfg(target_os = "linux")]
pub mod uring;
pub mod websocket;

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
    /// Bytes, or the end, can be had with [`Transport::receive`].
    Readable(Token, Reading),
    /// A request that did not go out at once has gone out.
    Sent(Token),
}

/// How what an event announced is to be had; opaque to the worker, who hands it back until nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// What the transport itself keeps for the connection, if it keeps anything; nothing of a socket.
    #[default]
    Kept,
    /// A socket, to be read until it is empty.
    Socket {
        /// Its end was announced as well, and has to be fetched.
        ended: bool,
        /// Pieces read in this turn.
        pieces: u16,
    },
    /// A provided buffer that io_uring has filled: its number, and how many bytes are in it or a negative `errno`.
    #[cfg(target_os = "linux")]
    Buffer {
        /// Among the buffers of the ring.
        number: u16,
        /// Of the receive.
        result: i32,
    },
    /// Events of a stream, kept in a row.
    Events {
        /// Number of the first.
        first: u32,
        /// How many.
        count: u16,
    },
}

/// Pieces read from one connection before the others, and what falls due, have their turn: a server that sends faster
/// than it is read would keep the worker for ever.
const TURN: u16 = 4;

/// Something read from a connection.
#[derive(Debug)]
pub enum Received<I> {
    /// What came; ask again.
    Piece(I),
    /// So many bytes came and were dropped unseen, as [`Need::NoneOf`] allowed; ask again.
    Dropped(u64),
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
pub trait Transport: Probe {
    /// What it carries.
    type Medium: Medium;

    /// How long connections are waited for at most before the load begins without the missing ones.
    const PATIENCE: Nanos = SECOND;

    /// Begins to connect; `Connected` or `NotConnected` follows. An error means that no attempt could be made.
    fn connect(&mut self, token: Token) -> io::Result<()>;

    /// Sends a whole request.
    fn send(&mut self, token: Token, request: &Outgoing<Self::Medium>) -> Sending;

    /// The next piece of a `Readable` event; asked until it is neither a `Piece` nor `Dropped`. What is not needed may
    /// be dropped, or come all the same. Of [`Need::NoneOf`], bytes that came behind those and that nobody asked for are
    /// dropped and counted, too.
    fn receive(
        &mut self,
        token: Token,
        reading: &mut Reading,
        need: Need,
    ) -> Received<Incoming<'_, Self::Medium>>;

    /// An answer has ended: so many bytes of it nobody had to look at, dropped or not; 0 where they were few.
    fn answered(&mut self, bulk: u64);

    /// Closes at once; later events of this token are not to be acted on.
    fn close(&mut self, token: Token);

    /// Waits for events until `until` at the latest (`now` is the present) and appends them.
    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()>;
}

/// What a transport knows of its connections beside what they carry. No method has a default: a layer that forgot to
/// hand one on would tell nothing without a word.
pub trait Probe {
    /// When the bytes that were received or dropped last came to this machine, by its kernel; None: not known here.
    fn arrived(&self) -> Option<Nanos>;

    /// What the kernel tells of one of the connections, by its number in the transport that has the sockets.
    fn tcp_info(&self, number: usize) -> Option<TcpInfo>;

    /// The shortest round trip that the kernel has seen on a connection; None: it does not tell.
    fn round_trip(&self, token: Token) -> Option<Nanos>;

    /// Why a connection that was asked for `limit_s` seconds ago is not there yet.
    fn why_absent(&self, token: Token, limit_s: f64) -> String;

    /// What there is to tell of all connections together.
    fn summary(&self) -> Summary;
}

/// What there is to tell of all connections of a transport together.
#[derive(Debug, Default)]
pub struct Summary {
    /// As results name the transport.
    pub name: &'static str,
    /// Bytes nobody has to look at, of an average answer, that made it change the way it receives.
    pub changed_for: Option<u64>,
    /// How the connections fared, where they are others than the slots.
    pub census: Option<Connections>,
    /// What the members of a room heard beside what they were to hear, where there is a room.
    pub room: Option<RoomCounts>,
    /// How long it took until connections stood.
    pub standing: Standing,
}

/// Of what the kernel tells, the shortest round trip.
fn shortest_round_trip(info: Option<TcpInfo>) -> Option<Nanos> {
    info?.rtt_us.map(|us| Nanos::from(us) * MICROSECOND)
}

/// The sentence of [`Probe::why_absent`] where nothing more is known.
fn no_connection_within(limit_s: f64) -> String {
    format!("no connection within {limit_s} s")
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
