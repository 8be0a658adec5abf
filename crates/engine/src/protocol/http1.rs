//! HTTP/1.1 answers, sans I/O: bytes in, a complete [`Answer`] out; owns no socket and stores no body.
//!
//! ```
//! use velodrome_engine::protocol::http1::{BodyCheck, Parsed, Http1};
//! let mut parser = Http1::new();
//! parser.begin(false, true);
//! let Ok(Parsed::Done { consumed, answer }) = parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", Some(b"hi")) else {
//!     panic!()
//! };
//! assert_eq!((consumed, answer.status, answer.keep_alive, answer.body), (40, 200, true, BodyCheck::Right));
//! ```
//!
//! Framing follows RFC 9112, section 6.3. The bytes are hostile: nothing panics, a body is compared as it
//! passes and never kept, a head is kept only while it is incomplete and never beyond [`MAX_HEAD_BYTES`].

pub(crate) mod chunked;
mod cookies;
mod exchange;
mod head;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use thiserror::Error;

use crate::protocol::body::Body;
use crate::protocol::excerpt::excerpt;
use crate::protocol::http1::chunked::Chunks;
use crate::protocol::http1::head::{Framing, Head};

pub use cookies::Jar;
pub use exchange::{Ask, Exchange, Lines};

pub use crate::outcome::BodyCheck;

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
pub enum Parsed {
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
    pub fn feed(&mut self, bytes: &[u8], expected: Option<&[u8]>) -> Result<Parsed, ProtocolError> {
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

    fn advance(&mut self, bytes: &[u8], expected: Option<&[u8]>) -> Result<Parsed, ProtocolError> {
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
                        return Ok(Parsed::Done {
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
                        return Ok(Parsed::Done {
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
                        return Ok(Parsed::Done {
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
        Ok(Parsed::More)
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
fn idle(bytes: &[u8]) -> Result<Parsed, ProtocolError> {
    match bytes.iter().all(|byte| matches!(byte, b'\r' | b'\n')) {
        true => Ok(Parsed::More),
        false => Err(ProtocolError::Unsolicited {
            start: crate::protocol::excerpt::excerpt(bytes),
        }),
    }
}

/// The connection on which it happened cannot be used any more: where the next answer begins is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Nothing of HTTP can be found in the bytes; the excerpt tells what speaks there instead.
    #[error("the head of the answer is not HTTP/1: {why}; it begins with '{start}'")]
    BadHead { why: String, start: String },
    /// See [`MAX_HEAD_BYTES`]: without a bound, a server that never ends its head would fill the memory.
    #[error("the head of the answer is longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLarge,
    /// See [`MAX_HEADERS`]: the lines are indexed on the stack, so that no answer allocates.
    #[error("the head of the answer has more than {MAX_HEADERS} header lines")]
    TooManyHeaders,
    /// RFC 9112, section 6.3: an answer whose length is unclear must not be guessed at.
    #[error("Content-Length is '{value}', which is not a number of bytes")]
    BadLength { value: String },
    /// RFC 9112, section 6.3: two different lengths; either could be a lie.
    #[error("two lengths are given: Content-Length {first} and {second}")]
    ConflictingLengths { first: u64, second: u64 },
    /// Chunk framing is all that tells body from framing; after a bad byte everything else is a guess.
    #[error("bad chunk: {0}")]
    BadChunk(&'static str),
    /// A size that does not fit in 64 bits could wrap round to a small one.
    #[error("the size of a chunk does not fit in 64 bits")]
    ChunkOverflow,
    /// Chunk extensions and trailers are skipped, not kept; the bound ends a stream that is nothing else.
    #[error("extensions of one chunk, or trailers, are longer than {MAX_HEAD_BYTES} bytes")]
    ChunkLineTooLong,
    /// Bytes without a request: the next answer could not be told from them.
    #[error("the server sent bytes nobody asked for: '{start}'")]
    Unsolicited { start: String },
    /// The rest of the answer will never come.
    #[error("the server closed in the middle of an answer, after {body_bytes} bytes of body")]
    EarlyClose { body_bytes: u64 },
}

impl ProtocolError {
    fn bad_head(why: &str, bytes: &[u8]) -> Self {
        Self::BadHead {
            why: why.to_owned(),
            start: excerpt(bytes),
        }
    }
}

/// The longest head that is gathered. Servers and proxies refuse heads beyond 8 to 32 kB; twice the
/// largest of these is generous, and 10 000 connections cannot fill the memory with unfinished heads.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Keeps a head until its end is there, so that it is parsed once: a peer that sends single bytes costs no more
/// than one that sends lines. Holds memory only while a head is incomplete.
#[derive(Debug, Default)]
pub(crate) struct Partial(Vec<u8>);

/// The head is longer than [`MAX_HEAD_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Partial {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What there is of the head.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Gives the memory back.
    pub fn forget(&mut self) {
        if self.0.capacity() > 0 {
            self.0 = Vec::new();
        }
    }

    #[cfg(test)]
    pub const fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// Keeps what `bytes` has of the head; returns how many of them that were, and the head if it is complete.
    pub fn gather(&mut self, bytes: &[u8]) -> Result<(usize, Option<Vec<u8>>), TooLong> {
        let before = self.0.len();
        let fits = bytes.len().min(MAX_HEAD_BYTES + 1 - before);
        self.0.extend_from_slice(&bytes[..fits]);
        match end(&self.0, before) {
            Some(end) => {
                let mut head = std::mem::take(&mut self.0);
                head.truncate(end);
                Ok((end - before, Some(head)))
            }
            None if self.0.len() > MAX_HEAD_BYTES => Err(TooLong),
            None => Ok((fits, None)),
        }
    }
}

/// Finds the end of a head (one past its empty line) in what was gathered, of which the first `searched`
/// bytes hold none. Lines may end with a bare LF: two servers in the field write them.
fn end(gathered: &[u8], searched: usize) -> Option<usize> {
    // The line end before the empty line may be up to two bytes back: "\n\r" came, "\n" comes.
    let from = searched.saturating_sub(2);
    memchr::memchr_iter(b'\n', &gathered[from..])
        .map(|offset| from + offset + 1)
        .find_map(|after| match gathered[after..] {
            [b'\n', ..] => Some(after + 1),
            [b'\r', b'\n', ..] => Some(after + 2),
            _ => None,
        })
}

/// A body of so many bytes comes in several pieces: it is worth dropping where nobody looks at it.
const BULKY: u64 = 64 * 1024;

impl Http1 {
    /// How many of the next bytes are body that need not be looked at, so that the kernel may discard them
    /// (`MSG_TRUNC`) and [`Http1::skip`] be told instead of `feed`. 0 where bytes matter.
    #[must_use]
    pub const fn skippable(&self) -> u64 {
        match self.state {
            State::Length(left) if !self.body.compares() => left,
            _ => 0,
        }
    }

    /// `count` bytes of body passed unseen; never more than `skippable` said. The answer, if it is complete.
    pub fn skip(&mut self, count: u64, expected: Option<&[u8]>) -> Option<Answer> {
        let State::Length(left) = self.state else {
            return None;
        };
        let count = count.min(left);
        self.body.pass(count);
        self.state = State::Length(left - count);
        (left == count).then(|| self.finish(expected))
    }

    /// Whether no byte of the answer that is expected has come.
    #[must_use]
    pub const fn is_before_answer(&self) -> bool {
        matches!(self.state, State::Head) && !self.started
    }

    /// Whether nobody looks at the body of the answer that is expected: its length is all that matters.
    #[must_use]
    pub const fn is_blind(&self) -> bool {
        !self.body.compares()
    }

    /// Bytes of the last answer's body that nobody had to look at, dropped or not; 0 where they are too few to be worth
    /// dropping, and where only they themselves tell where they end.
    #[must_use]
    pub const fn bulk(&self) -> u64 {
        match self.body.len() {
            bytes @ BULKY.. if self.announced && self.is_blind() => bytes,
            _ => 0,
        }
    }
}
