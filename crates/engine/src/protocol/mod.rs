//! Protocols: pieces of traffic in, events out; none of them owns a socket.

mod body;
pub(crate) mod excerpt;
pub mod grpc;
pub mod http1;
pub mod http2;
pub mod websocket;

use std::sync::Arc;

use crate::clock::Nanos;
use crate::outcome::Outcome;
use crate::protocol::http2::{RequestHead, StreamEvent};
use crate::protocol::websocket::Piece;

pub use http1::{Answer, Http1, ProtocolError};

pub use crate::outcome::BodyCheck;

/// What came of a piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress<A> {
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
    ) -> Result<Progress<Self::Answer>, Fault>;

    /// What of the bytes that come next matters.
    #[inline]
    fn need(&self, _ask: &Self::Ask) -> Need {
        Need::All
    }

    /// So many bytes were dropped: the answer, if they complete it. More than `need` said were not asked for.
    fn skip(&mut self, _count: u64, _ask: &Self::Ask) -> Option<Self::Answer> {
        None
    }

    /// The server has closed: the answer this completes, or None where none had begun.
    fn eof(&mut self, ask: &Self::Ask) -> Result<Option<Self::Answer>, Fault>;

    /// More of the request: what a message of its answer is replied with.
    fn reply<'a>(&mut self, _ask: &'a mut Self::Ask) -> Option<&'a Outgoing<Self::Medium>> {
        None
    }

    /// Which of the load's requests was sent last, where it has several; see [`crate::requests`].
    #[inline]
    fn which(&self) -> Option<usize> {
        None
    }

    /// Whether the request sent last may be sent again when its connection ended without an answer. Nobody knows what a
    /// call or a message does: only those of whom it is known are.
    fn is_idempotent(&self, _ask: &Self::Ask) -> bool {
        false
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

    /// An answer has ended: how many bytes of it nobody had to look at, dropped or not, if they were many. What was asked
    /// is bulky from then on.
    #[inline]
    fn weigh(&self, _ask: &mut Self::Ask) -> u64 {
        0
    }

    /// Whether the connection may carry another request.
    fn is_reusable(answer: &Self::Answer) -> bool;
}

/// One kind of traffic. A protocol is driven over any transport of its kind.
pub trait Medium {
    /// What a request hands to the transport.
    type Outgoing;
    /// What the transport hands back, piece by piece.
    type Incoming<'a>;
}

/// Bytes of a connection that carries one request at a time.
#[derive(Debug)]
pub struct Bytes;

impl Medium for Bytes {
    type Outgoing = Payload;
    type Incoming<'a> = &'a [u8];
}

/// The bytes of a request.
#[derive(Clone, Debug)]
pub enum Payload {
    /// The same each time: shared by all that send it.
    Shared(Arc<[u8]>),
    /// Made anew each time: its maker uses the memory again, so who sends it later copies it.
    Own(Vec<u8>),
}

impl Payload {
    /// All of it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Payload::Shared(bytes) => bytes,
            Payload::Own(bytes) => bytes,
        }
    }
}

/// What of the bytes that come next matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// All of them.
    All,
    /// The head of an answer, and little more: what follows it is likely to be dropped.
    Head,
    /// Nothing of so many bytes: they may be dropped where they are.
    NoneOf(u64),
}

/// Streams of a connection that carries many requests at once.
#[derive(Debug)]
pub struct Streams;

impl Medium for Streams {
    type Outgoing = StreamRequest;
    type Incoming<'a> = StreamEvent<'a>;
}

/// Messages of a WebSocket that carries one request at a time.
#[derive(Debug)]
pub struct Messages;

impl Medium for Messages {
    /// A frame: the message is masked already.
    type Outgoing = Payload;
    type Incoming<'a> = Piece<'a>;
}

/// Messages that one member of a room sends and all get.
#[derive(Debug)]
pub struct Rounds;

impl Medium for Rounds {
    /// What is said is known to the transport, which numbers it.
    type Outgoing = ();
    type Incoming<'a> = Delivered<'a>;
}

/// That members of a room have a message.
#[derive(Clone, Copy, Debug)]
pub struct Delivered<'a> {
    /// When each of them got it.
    pub moments: &'a [Nanos],
    /// How many of them got another message under its number.
    pub wrong: u32,
}

/// A request over a stream, or more of one.
#[derive(Clone, Debug)]
pub struct StreamRequest {
    /// What a stream begins with; None: more of the body of the request in flight.
    pub head: Option<Arc<RequestHead>>,
    /// The body, or a part of it.
    pub body: Vec<u8>,
    /// Nothing follows.
    pub end: bool,
}

/// What a transport of `T`'s kind is given to send.
pub type Outgoing<M> = <M as Medium>::Outgoing;

/// What it hands back.
pub type Incoming<'a, M> = <M as Medium>::Incoming<'a>;
