//! WebSocket from the client's side (RFC 6455), sans I/O: one [`Session`] is one connection. Bytes in, events out.
//!
//! ```
//! use velodrome_engine::protocol::websocket::{Event, Kind, Piece, Session, Upgrade, accept, framed};
//! let mut upgrade = Upgrade::new("127.0.0.1:8000", "/chat", &[]).unwrap();
//! let (mut session, mut out) = (Session::new(1 << 20), Vec::new());
//! let key = session.open(&mut upgrade, &mut out);
//! assert!(out.starts_with(b"GET /chat HTTP/1.1\r\n"));
//! let mut answer = format!(
//!     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
//!      Sec-WebSocket-Accept: {}\r\n\r\n",
//!     accept(&key),
//! ).into_bytes();
//! answer.extend(b"\x81\x05hello");
//! session.feed(&answer, &mut out, |event| {
//!     assert!(matches!(event, Event::Open | Event::Data(Piece { kind: Kind::Text, bytes: b"hello", end: true })));
//! }).unwrap();
//! assert!(session.is_open());
//! out.extend(framed(Kind::Text, b"hello", [1, 2, 3, 4]));
//! ```
//!
//! The bytes are hostile: nothing panics, and nothing is kept but the head of the handshake while it is incomplete and
//! one control frame. Extensions are not offered, so messages come as they are.

pub mod broadcast;
pub mod connect;
mod control;
pub mod echo;
mod error;
mod frame;
mod handshake;
pub mod letter;
mod session;
#[cfg(test)]
mod tests;
mod text;

pub use error::WebSocketError;
pub use frame::{Kind, framed, framed_into};
pub use handshake::{Upgrade, accept};
pub use session::{Event, Piece, Session};
