//! HTTP/2 from the client's side (RFC 9113), sans I/O: one [`Session`] is one connection. Bytes in, events out.
//!
//! ```
//! use velodrome_engine::protocol::http2::{RequestHead, Session, Settings, StreamEvent};
//! let (mut session, mut out) = (Session::new(Settings::default()), Vec::new());
//! session.open(&mut out);
//! assert!(out.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
//! session.feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut out, |_, _| {}).unwrap(); // the server's SETTINGS
//! assert!(session.is_ready() && session.room() > 0);
//! let head = RequestHead::new("GET", "http", "127.0.0.1:8000", "/", &[]).unwrap();
//! session.begin(7, &head, b"", true, &mut out).unwrap();
//! // HEADERS that end the stream, with one field: ":status: 200" is entry 8 of the static table.
//! let answer = [0, 0, 1, 1, 0x5, 0, 0, 0, 1, 0x88];
//! session.feed(&answer, &mut out, |tag, event| {
//!     assert!(matches!((tag, event), (7, StreamEvent::Head { status: 200, end: true, .. })));
//! }).unwrap();
//! ```
//!
//! The caller moves what is appended to `out` to the socket, in order. In the steady state nothing is allocated. The
//! bytes are hostile: nothing panics, and what is kept is bounded: one frame of at most 16 kB, one header block of at
//! most [`MAX_HEADER_BLOCK`] bytes, a header table of 4 kB, and what the caller gave and the server's windows hold
//! back. This side opens its own windows wide, since it keeps nothing of what passes.

mod frame;
mod heads;
pub mod hpack;
mod plain;
mod session;
mod streams;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::protocol::http2::hpack::HpackError;

pub use frame::{CANCEL, Kind, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, code_name};
pub use heads::{BadField, GrpcStatus, GrpcTrailer, Heads, Length, MAX_MESSAGE, Made, RequestHead};
pub use plain::{Plain, PlainAnswer, PlainAsk};
pub use session::{Session, Settings};
pub use streams::MAX_HEADER_BLOCK;

/// What happened on one stream. After an event that ends it its tag is free, and no further event comes for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent<'a> {
    /// The head of the answer. Interim (1xx) heads are skipped.
    Head {
        status: u16,
        /// How long the body is to be, by its own word.
        length: Length,
        /// What a gRPC answer without a message («trailers only») says here already.
        grpc: GrpcTrailer<'a>,
        end: bool,
    },
    /// A piece of the body, as it came.
    Data { bytes: &'a [u8], end: bool },
    /// The fields after the body; they end the stream.
    Trailers { grpc: GrpcTrailer<'a> },
    /// The server broke the stream off; `code` of RFC 9113, section 7. Ends the stream.
    Reset { code: u32 },
    /// The server surely did nothing with the request (it refused the stream, or left before it); it may be sent again
    /// whatever it is. Ends the stream.
    Refused,
    /// The answer contradicts the protocol; the stream was reset, the connection goes on. Ends the stream.
    Malformed { why: &'static str },
}

impl StreamEvent<'_> {
    /// Whether the stream ends with it.
    #[must_use]
    pub const fn ends(&self) -> bool {
        match self {
            Self::Head { end, .. } | Self::Data { end, .. } => *end,
            _ => true,
        }
    }
}

/// The connection on which it happened cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Http2Error {
    /// The usual answer of a server that knows HTTP/1.1 only to a client that begins with HTTP/2.
    #[error("the server answers HTTP/1.1, not HTTP/2: '{line}'")]
    Http1 { line: String },
    /// The first record of a TLS server that could make nothing of what it read is an alert.
    #[error(
        "the server answers with a TLS alert, not HTTP/2: it expects an encrypted connection here"
    )]
    Tls,
    /// RFC 9113, section 3.4: SETTINGS come first.
    #[error(
        "the server does not speak HTTP/2: it begins with '{start}', not with a SETTINGS frame"
    )]
    NotHttp2 { start: String },
    #[error("the server's first frame is {kind} where HTTP/2 begins with SETTINGS")]
    NoSettings { kind: Kind },
    /// Section 4.2: no frame is longer than was agreed; a longer one would have to be kept whole.
    #[error("the server sent a {kind} frame of {length} bytes where {limit} are allowed")]
    FrameTooLarge { kind: Kind, length: u32, limit: u32 },
    /// Nothing after a frame that contradicts itself can be trusted.
    #[error("the server sent a bad {kind} frame: {why}")]
    BadFrame { kind: Kind, why: &'static str },
    #[error("the server set {setting} to {value}, which is out of its bounds")]
    BadSetting { setting: &'static str, value: u32 },
    /// Section 5.1: only the client begins streams here.
    #[error("the server sent {kind} on stream {stream}, which was never begun")]
    IdleStream { kind: Kind, stream: u32 },
    /// Section 4.3: a header block is never interrupted, so that both sides' tables stay the same.
    #[error("the server broke off a header block: {kind} came where CONTINUATION had to")]
    Interrupted { kind: Kind },
    /// A header block is kept until it ends; the bound ends one that never does.
    #[error("the server's header block is longer than {limit} bytes")]
    HeadersTooLarge { limit: usize },
    #[error("the server's header block cannot be read: {0}")]
    Hpack(#[from] HpackError),
    /// Section 6.9.1: a window beyond 2^31 - 1 cannot be counted.
    #[error("the server made a window larger than 2147483647 bytes")]
    WindowOverflow,
    /// Pushes were refused by the settings of this side.
    #[error("the server pushes although that was refused")]
    Pushed,
    /// Frames that must be answered or skipped and carry nothing cost this side work and the server next to none.
    #[error(
        "the server floods the connection: {limit} {kind} and like frames without an answer among them"
    )]
    Flood { kind: Kind, limit: u32 },
    /// The connection ended before the server said anything of HTTP/2.
    #[error("the server closed the connection before its SETTINGS came")]
    ClosedAtOnce,
    /// The rest of the answers will never come.
    #[error("the server closed the connection with {streams} requests unanswered{}", farewell(.goaway))]
    EarlyClose {
        streams: u32,
        goaway: Option<GoAway>,
    },
}

impl Http2Error {
    /// The code this side tells the server as it leaves (RFC 9113, section 7).
    #[must_use]
    pub const fn code(&self) -> u32 {
        match self {
            Self::FrameTooLarge { .. } => 0x6,
            Self::WindowOverflow => 0x3,
            Self::Hpack(HpackError::ListTooLarge { .. })
            | Self::HeadersTooLarge { .. }
            | Self::Flood { .. } => 0xb,
            Self::Hpack(_) => 0x9,
            _ => 0x1,
        }
    }
}

fn farewell(goaway: &Option<GoAway>) -> String {
    goaway
        .as_ref()
        .map_or_else(String::new, |goaway| format!("; before, {goaway}"))
}

/// The server takes no more requests on this connection (RFC 9113, section 6.8).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("it said GOAWAY: {}{}", code_name(*.code), quoted(.debug))]
pub struct GoAway {
    /// Requests beyond it were surely not processed.
    pub last_stream: u32,
    pub code: u32,
    /// What the server adds, escaped and cut.
    pub debug: String,
}

fn quoted(debug: &str) -> String {
    match debug {
        "" => String::new(),
        _ => format!(" ('{debug}')"),
    }
}

/// Why a request or a piece of one was not taken. Nothing of it was written; the connection is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotTaken {
    /// See `Session::room`.
    #[error("no further request may be begun on this connection now")]
    NoRoom,
    #[error("tag {0} is not below the number of streams of this session")]
    TagTooLarge(u32),
    #[error("tag {0} carries a request already")]
    TagInUse(u32),
    /// None was begun, it has ended, or its last bytes were sent.
    #[error("tag {0} carries no request that could go on")]
    NotSending(u32),
    /// What the windows hold back is kept; without a bound, a server that never widens them would fill the memory.
    #[error("more than {limit} bytes would wait for the server's windows")]
    TooMuchWaiting { limit: usize },
}
