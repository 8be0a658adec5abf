//! gRPC over HTTP/2 from the client's side, one [`Call`] at a time: what its answer was, and whether it was right.
//!
//! Source: «gRPC over HTTP2», doc/PROTOCOL-HTTP2.md of the gRPC project. Messages are counted and compared as they
//! pass and never kept.
//!
//! ```
//! use velodrome_engine::outcome::Outcome;
//! use velodrome_engine::protocol::grpc::{Call, Expected, Fed, frame};
//! use velodrome_engine::protocol::http2::{GrpcStatus, GrpcTrailer, Length, StreamEvent};
//! let reply = Box::from(&b"hello"[..]);
//! let expected = Expected { messages: std::slice::from_ref(&reply), ..Expected::unary() };
//! let mut call = Call::new();
//! call.begin(true);
//! let (length, grpc) = (Length::Untold, GrpcTrailer::default());
//! let head = StreamEvent::Head { status: 200, length, grpc, end: false };
//! assert_eq!(call.feed(head, &expected), Fed::More);
//! assert_eq!(call.feed(StreamEvent::Data { bytes: &frame(b"hello"), end: false }, &expected), Fed::More);
//! let grpc = GrpcTrailer { status: GrpcStatus::Code(0), message: b"" };
//! let Fed::Done(ended) = call.feed(StreamEvent::Trailers { grpc }, &expected) else { panic!() };
//! assert_eq!((ended.outcome, ended.messages), (Outcome::Ok, 1));
//! ```

mod call;
mod exchange;
mod messages;
mod request;
mod status;
#[cfg(test)]
mod tests;

pub use call::{Call, Ended, Expected, Fed};
pub use exchange::{Ask, Compose, Equal, Grpc, Kind, Right};
pub use request::{frame, frame_into, head};
pub use status::{readable, status_name};
