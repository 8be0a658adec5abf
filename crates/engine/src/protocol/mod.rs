//! Protocols: pieces of traffic in, events out; none of them owns a socket.

mod body;
pub(crate) mod excerpt;
pub mod grpc;
pub mod http1;
pub mod http2;
mod search;
pub mod websocket;

pub use body::BodyCheck;
pub use http1::{Answer, Http1, ProtocolError};

use crate::clock::Nanos;
use crate::outcome::Outcome;
use crate::transport::{Incoming, Medium, Outgoing};

/// What came of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Fed<A> {
    /// The answer is not complete.
    More,
    /// A message of an answer that has several is.
    Message(Message),
    /// The answer is complete.
    Done(A),
    /// The server surely did nothing with the request: it may be sent again, whatever it asks.
    Refused,
}

/// A message of an answer that has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// It is the first.
    pub first: bool,
    /// It is answered with the next message of the request, which [`Protocol::reply`] has.
    pub replied: bool,
}

/// A failure of the peer's, as it ends a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// What the request comes to.
    pub outcome: Outcome,
    /// What happened, in a sentence.
    pub why: String,
}

/// One connection's side of a protocol, as the worker drives it.
pub trait Protocol {
    /// What it is spoken over.
    type Medium: Medium;
    /// What is asked, and what a right answer is: one per worker.
    type Ask;
    /// A complete answer.
    type Answer;

    /// A fresh connection.
    fn new() -> Self;

    /// Request `number` (counted from 0 by its worker) is to go out; returns what to send. What comes next is its
    /// answer.
    fn begin<'a>(&mut self, ask: &'a mut Self::Ask, number: u64) -> &'a Outgoing<Self::Medium>;

    /// Something came from the server.
    fn feed(
        &mut self,
        piece: Incoming<'_, Self::Medium>,
        ask: &Self::Ask,
    ) -> Result<Fed<Self::Answer>, Fault>;

    /// How many of the bytes that come next nobody looks at, so that they may be dropped where they are (`skip` is then
    /// told instead of `feed`); 0: all matter.
    #[inline]
    fn skippable(&self) -> u64 {
        0
    }

    /// So many bytes were dropped: the answer, if they complete it. More than `skippable` said were not asked for.
    fn skip(&mut self, _count: u64, _ask: &Self::Ask) -> Option<Self::Answer> {
        None
    }

    /// The server has closed: the answer this completes, or None where none had begun.
    fn eof(&mut self, ask: &Self::Ask) -> Result<Option<Self::Answer>, Fault>;

    /// More of the request: what a message of its answer is replied with.
    fn reply<'a>(&mut self, ask: &'a mut Self::Ask) -> &'a Outgoing<Self::Medium>;

    /// Which of the load's requests was sent last, where it has several; see [`crate::requests`].
    #[inline]
    fn which(&self) -> Option<usize> {
        None
    }

    /// Whether the request sent last may be sent again, where not all are alike.
    fn is_idempotent(&self, _ask: &Self::Ask) -> bool {
        true
    }

    /// A new connection in the place of one that is gone.
    fn renew(&mut self)
    where
        Self: Sized,
    {
        *self = Self::new();
    }

    /// When parts of the answer came of which the last piece told: each is a delivery of its own.
    #[inline]
    fn deliveries(&self) -> &[Nanos] {
        &[]
    }

    /// What there is of an answer that will never be complete.
    fn shortfall(&self, _ask: &Self::Ask) -> Option<String> {
        None
    }

    /// What an answer comes to that was complete `age` after its request was sent. `BadProtocol`: its connection cannot
    /// be trusted any more.
    fn judge(answer: &Self::Answer, ask: &Self::Ask, age: Nanos) -> Outcome;

    /// What is wrong with the last answer, which is not `Ok`.
    fn explain(&self, answer: &Self::Answer, ask: &Self::Ask) -> String;

    /// What is said before the connection is closed after an answer.
    fn farewell<'a>(
        _answer: &Self::Answer,
        _ask: &'a Self::Ask,
    ) -> Option<&'a Outgoing<Self::Medium>> {
        None
    }

    /// Whether the answer that is expected is likely to have a large body that nobody looks at: then no more than its
    /// head is worth copying.
    #[inline]
    fn is_bulky(&self, _ask: &Self::Ask) -> bool {
        false
    }

    /// An answer has ended: how many bytes of it nobody had to look at, dropped or not, if they were many. What was asked
    /// is bulky from then on.
    #[inline]
    fn weigh(&self, _ask: &mut Self::Ask) -> u64 {
        0
    }

    /// Whether the connection may carry another request.
    fn is_reusable(answer: &Self::Answer) -> bool;
}
