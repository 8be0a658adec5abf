//! Protocols: bytes in, events out; none of them owns a socket.

pub mod http1;

pub use http1::{Answer, BodyCheck, Fed, Http1, ProtocolError};

/// One connection's side of a protocol, as the worker drives it.
pub trait Protocol {
    /// A fresh connection.
    fn new() -> Self;

    /// A request was sent: the next bytes are its answer. `head`: it has no body. `compare`: look at every byte of it.
    fn begin(&mut self, head: bool, compare: bool);

    /// Bytes from the server; `expected` is the right body, where one is known.
    fn feed(&mut self, bytes: &[u8], expected: Option<&[u8]>) -> Result<Fed, ProtocolError>;

    /// The server has closed: the answer this completes, or None where none had begun.
    fn eof(&mut self, expected: Option<&[u8]>) -> Result<Option<Answer>, ProtocolError>;
}

impl Protocol for Http1 {
    fn new() -> Self {
        Http1::new()
    }

    #[inline]
    fn begin(&mut self, head: bool, compare: bool) {
        Http1::begin(self, head, compare);
    }

    #[inline]
    fn feed(&mut self, bytes: &[u8], expected: Option<&[u8]>) -> Result<Fed, ProtocolError> {
        Http1::feed(self, bytes, expected)
    }

    fn eof(&mut self, expected: Option<&[u8]>) -> Result<Option<Answer>, ProtocolError> {
        Http1::eof(self, expected)
    }
}
