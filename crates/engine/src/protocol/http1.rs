//! HTTP/1.1 answers, sans I/O: bytes in, a complete [`Answer`] out; owns no socket and stores no body.
//!
//! ```
//! use velodrome_engine::protocol::http1::{BodyCheck, Fed, Http1};
//! let mut parser = Http1::new();
//! parser.begin(false, true);
//! let Ok(Fed::Done { consumed, answer }) = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", Some(b"hi")) else {
//!     panic!()
//! };
//! assert_eq!((consumed, answer.status, answer.keep_alive, answer.body), (40, 200, true, BodyCheck::Right));
//! ```
//!
//! Framing follows RFC 9112, section 6.3. The bytes are hostile: nothing panics, a body is compared as it
//! passes and never kept, a head is kept only while it is incomplete and never beyond [`MAX_HEAD_BYTES`].

pub(crate) mod chunked;
mod cookies;
mod error;
mod exchange;
mod head;
mod partial;
#[cfg(test)]
mod tests;
mod unread;
mod varied;
mod written;

pub use super::body::BodyCheck;
pub use cookies::Jar;
pub use error::ProtocolError;
pub use exchange::{Ask, Heard};
pub use varied::{Varied, VariedAsk};
pub use written::Lines;

use std::sync::Arc;

use super::body::Body;
use chunked::Chunks;
use head::{Framing, Head};
pub use partial::MAX_HEAD_BYTES;
pub(crate) use partial::Partial;

/// The most header lines in one head: what common servers and clients allow, and what fits on the stack.
pub const MAX_HEADERS: usize = 100;

/// What a complete answer looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
    /// Bytes of body, without chunk framing.
    pub body_len: u64,
    pub body: BodyCheck,
}

/// What came of a slice of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    /// The answer is not complete; the whole slice belongs to it.
    More,
    /// The answer is complete. The first `consumed` bytes of the slice belong to it, the rest is surplus:
    /// the next pipelined answer, or bytes nobody asked for.
    Done { consumed: usize, answer: Answer },
}

#[derive(Debug)]
enum State {
    /// No answer is expected.
    Idle,
    /// Before or within a head.
    Head,
    /// Within a body; so many bytes are missing.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

/// The head of an answer, for whoever reads more in it than the parser.
#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
}

/// The parser of one connection.
#[derive(Debug)]
pub struct Http1 {
    state: State,
    /// The beginning of a head that came in several segments; holds memory only while that lasts.
    partial: Partial,
    body: Body,
    status: u16,
    keep_alive: bool,
    head_request: bool,
    /// Whether any byte of an answer came since `begin`, a 1xx answer included.
    started: bool,
    /// The head told how long its body is.
    announced: bool,
    /// The last head, for whom it is kept; apart, because for most it is not.
    kept: Option<Box<Kept>>,
}

impl Default for Http1 {
    fn default() -> Self {
        Self::new()
    }
}

impl Http1 {
    /// A parser that expects nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Idle,
            partial: Partial::new(),
            body: Body::new(false),
            status: 0,
            keep_alive: false,
            head_request: false,
            started: false,
            announced: false,
            kept: None,
        }
    }

    /// Keeps the head of each answer, a copy, to be asked for with [`Http1::head`].
    pub fn keep_heads(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// The head that came last, where heads are kept.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |kept| kept.head.as_slice())
    }

    fn keep(&mut self, head: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.head.clear();
            kept.head.extend_from_slice(head);
        }
    }

    /// A request was written: the next bytes are its answer, whatever came before. `head`: its method was
    /// HEAD. `compare`: compare the content of the body, not only its length, with what is expected.
    pub fn begin(&mut self, head: bool, compare: bool) {
        self.state = State::Head;
        self.partial.forget();
        self.body.restart(compare);
        self.head_request = head;
        self.started = false;
    }

    /// What the body of every answer from the next `begin` on must have in it; None: nothing in particular.
    pub fn seek(&mut self, wanted: Option<&Arc<[u8]>>) {
        self.body.seek(wanted);
    }

    /// Whether no answer is expected: none was begun, or it ended, or it failed.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Takes the next bytes of the connection. 1xx answers (but 101, which ends HTTP on it) are skipped.
    /// With `expected`, the length of the body is always compared, its content when `begin` said so.
    ///
    /// # Errors
    /// What the server did against the protocol; the connection cannot be used any more.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], expected: Option<&[u8]>) -> Result<Fed, ProtocolError> {
        let fed = self.advance(bytes, expected);
        if fed.is_err() {
            self.rest();
        }
        fed
    }

    /// The peer closed. A close ends a body without a length: then this is its answer. `None`: nothing of
    /// an answer had come, the server closed a connection that was idle to it.
    ///
    /// # Errors
    /// [`ProtocolError::EarlyClose`] in the middle of an answer.
    pub fn eof(&mut self, expected: Option<&[u8]>) -> Result<Option<Answer>, ProtocolError> {
        let answer = match self.state {
            State::UntilClose => Ok(Some(self.finish(expected))),
            State::Idle => Ok(None),
            State::Head if !self.started => Ok(None),
            _ => Err(ProtocolError::EarlyClose {
                body_bytes: self.body.len(),
            }),
        };
        self.rest();
        answer
    }

    fn advance(&mut self, bytes: &[u8], expected: Option<&[u8]>) -> Result<Fed, ProtocolError> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match &mut self.state {
                State::Idle => return idle(rest),
                State::Head => {
                    let (used, head) = self.read_head(rest)?;
                    at += used;
                    if let Some(head) = head
                        && self.enter_body(&head)
                    {
                        return Ok(Fed::Done {
                            consumed: at,
                            answer: self.finish(expected),
                        });
                    }
                }
                State::Length(left) => {
                    // The cast is exact: the smaller of the two fits in usize.
                    let here = (rest.len() as u64).min(*left) as usize;
                    *left -= here as u64;
                    let complete = *left == 0;
                    self.body.take(&rest[..here], expected);
                    at += here;
                    if complete {
                        return Ok(Fed::Done {
                            consumed: at,
                            answer: self.finish(expected),
                        });
                    }
                }
                State::Chunked(chunks) => {
                    let (used, complete) =
                        chunks.feed(rest, |data| self.body.take(data, expected))?;
                    at += used;
                    if complete {
                        return Ok(Fed::Done {
                            consumed: at,
                            answer: self.finish(expected),
                        });
                    }
                }
                State::UntilClose => {
                    self.body.take(rest, expected);
                    at = bytes.len();
                }
            }
        }
        Ok(Fed::More)
    }

    /// Reads a head; returns how many bytes were used, and the head if it is complete.
    fn read_head(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), ProtocolError> {
        if !self.partial.is_empty() {
            return self.gather(bytes);
        }
        // Empty lines before an answer are what is left of a sloppy previous one (RFC 9112, section 2.2).
        let blank = bytes
            .iter()
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
        let bytes = &bytes[blank..];
        if bytes.is_empty() {
            return Ok((blank, None));
        }
        self.started = true;
        if let Some(head) = head::parse(bytes, self.head_request)? {
            self.keep(&bytes[..head.len]);
            return Ok((blank + head.len, Some(head)));
        }
        let (used, head) = self.gather(bytes)?;
        Ok((blank + used, head))
    }

    fn gather(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), ProtocolError> {
        let (used, gathered) = self
            .partial
            .gather(bytes)
            .map_err(|_| ProtocolError::HeadTooLarge)?;
        let Some(gathered) = gathered else {
            return Ok((used, None));
        };
        match head::parse(&gathered, self.head_request)? {
            Some(head) => {
                self.keep(&gathered);
                Ok((used, Some(head)))
            }
            None => Err(ProtocolError::bad_head("it ends within a line", &gathered)),
        }
    }

    /// Prepares for the body; whether there is none and the answer is complete.
    fn enter_body(&mut self, head: &Head) -> bool {
        self.status = head.status;
        self.keep_alive = head.keep_alive;
        self.announced = matches!(head.framing, Framing::Length(_));
        self.state = match head.framing {
            Framing::Interim => State::Head,
            Framing::Nothing => {
                self.body.forget();
                State::Length(0)
            }
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunked(Chunks::new()),
            Framing::UntilClose => State::UntilClose,
        };
        matches!(self.state, State::Length(0))
    }

    fn finish(&mut self, expected: Option<&[u8]>) -> Answer {
        self.state = State::Idle;
        let body = self.body.verdict(expected);
        Answer {
            status: self.status,
            keep_alive: self.keep_alive,
            body_len: self.body.len(),
            body,
        }
    }

    fn rest(&mut self) {
        self.state = State::Idle;
        self.partial.forget();
    }
}

/// Line ends after an answer are forgiven, as RFC 9112, section 2.2, forgives them before one.
fn idle(bytes: &[u8]) -> Result<Fed, ProtocolError> {
    match bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
        true => Ok(Fed::More),
        false => Err(ProtocolError::Unsolicited {
            start: crate::protocol::excerpt::excerpt(bytes),
        }),
    }
}
