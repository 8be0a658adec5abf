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

mod answer;
mod control;
mod error;
mod frame;
mod framer;
mod greeting;
mod heads;
pub mod hpack;
mod plain;
mod receiving;
mod request;
mod sending;
mod session;
mod streams;
#[cfg(test)]
mod tests;

pub use answer::{GrpcStatus, GrpcTrailer, Length, MAX_MESSAGE};
pub use error::{GoAway, Http2Error, NotTaken};
pub use frame::{CANCEL, Kind, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM, code_name};
pub use heads::{Heads, Made};
pub use plain::{Plain, PlainAnswer, PlainAsk};
pub use receiving::MAX_HEADER_BLOCK;
pub use request::{BadField, RequestHead};
pub use session::{Session, Settings};

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
