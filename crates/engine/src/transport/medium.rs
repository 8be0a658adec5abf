//! What travels between a protocol and a transport: bytes of a connection, or whatever else a transport can carry.

use std::sync::Arc;

use crate::clock::Nanos;
use crate::protocol::http2::{RequestHead, StreamEvent};
use crate::protocol::websocket::Piece;

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
    type Outgoing = Arc<[u8]>;
    type Incoming<'a> = &'a [u8];
}

/// The same, where each request is made anew and its bytes are the maker's to use again.
#[derive(Debug)]
pub struct Written;

impl Medium for Written {
    type Outgoing = Vec<u8>;
    type Incoming<'a> = &'a [u8];
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
    type Outgoing = Arc<[u8]>;
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
