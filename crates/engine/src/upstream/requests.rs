//! Requests, sans I/O: bytes in, requests out; bodies are passed over.

use std::mem::MaybeUninit;

use httparse::{Header, ParserConfig, Request as Head};

use crate::protocol::http1::chunked::Chunks;
use crate::protocol::http1::{MAX_HEAD_BYTES, MAX_HEADERS, Partial};
use crate::upstream::spec::{Body, duration};

/// What of a request matters to its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// `?velodrome-latency=75ms`, nanoseconds.
    pub latency: Option<u64>,
    pub head_only: bool,
    pub persistence: Persistence,
}

/// What came of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming {
    /// A request is incomplete.
    More,
    /// The client waits for `100 Continue` before it sends the body.
    Waits,
    Whole(Request),
}

/// What came is not a request. Why does not matter to an answer of 400.
#[derive(Debug, PartialEq, Eq)]
pub struct NotARequest;

#[derive(Debug)]
enum State {
    Head,
    Length(Request, u64),
    Chunked(Request, Chunks),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Known(u64),
    Chunked,
}

/// The reader of one connection.
#[derive(Debug)]
pub struct Requests {
    state: State,
    partial: Partial,
}

impl Default for Requests {
    fn default() -> Self {
        Self::new()
    }
}

impl Requests {
    /// Nothing is read yet.
    pub const fn new() -> Self {
        Self {
            state: State::Head,
            partial: Partial::new(),
        }
    }

    /// Reads on; returns how many bytes were used. After `Whole` or `Waits` there may be more to hear in the rest.
    pub fn hear(&mut self, bytes: &[u8]) -> Result<(usize, Incoming), NotARequest> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            match &mut self.state {
                State::Head => {
                    let (here, waits) = self.head(rest)?;
                    used += here;
                    if waits && used == bytes.len() {
                        return Ok((used, Incoming::Waits));
                    }
                }
                State::Length(_, left) => {
                    // The cast is exact: the smaller of the two fits in usize.
                    let here = (rest.len() as u64).min(*left) as usize;
                    *left -= here as u64;
                    used += here;
                }
                State::Chunked(request, chunks) => {
                    let (here, complete) = chunks.feed(rest, |_| ()).map_err(|_| NotARequest)?;
                    used += here;
                    if complete {
                        self.state = State::Length(*request, 0);
                    }
                }
            }
            if let State::Length(request, 0) = self.state {
                self.state = State::Head;
                return Ok((used, Incoming::Whole(request)));
            }
        }
        Ok((used, Incoming::More))
    }

    /// Reads a head, or a part of one; returns the bytes used and whether the client now waits for a 100.
    fn head(&mut self, bytes: &[u8]) -> Result<(usize, bool), NotARequest> {
        if self.partial.is_empty() {
            let blank = bytes
                .iter()
                .take_while(|byte| matches!(byte, b'\r' | b'\n'))
                .count();
            if blank > 0 {
                return Ok((blank, false));
            }
            if let Some((used, waits)) = self.parse(bytes)? {
                return Ok((used, waits));
            }
        }
        let (used, gathered) = self.partial.gather(bytes).map_err(|_| NotARequest)?;
        let Some(gathered) = gathered else {
            return Ok((used, false));
        };
        let (_, waits) = self.parse(&gathered)?.ok_or(NotARequest)?;
        Ok((used, waits))
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<Option<(usize, bool)>, NotARequest> {
        let mut lines = [const { MaybeUninit::<Header>::uninit() }; MAX_HEADERS];
        let mut head = Head::new(&mut []);
        let config = ParserConfig::default();
        let used = match config.parse_request_with_uninit_headers(&mut head, bytes, &mut lines) {
            Ok(httparse::Status::Complete(used)) if used <= MAX_HEAD_BYTES => used,
            Ok(httparse::Status::Partial) => return Ok(None),
            _ => return Err(NotARequest),
        };
        let (mut length, mut waits) = (Length::Known(0), false);
        let (mut close, mut keep_alive) = (false, false);
        for line in head.headers.iter() {
            match line.name.len() {
                14 if line.name.eq_ignore_ascii_case("content-length")
                    && length != Length::Chunked =>
                {
                    length = Length::Known(number(line.value)?);
                }
                17 if line.name.eq_ignore_ascii_case("transfer-encoding") => {
                    length = Length::Chunked
                }
                10 if line.name.eq_ignore_ascii_case("connection") => {
                    close |= says(line.value, b"close");
                    keep_alive |= says(line.value, b"keep-alive");
                }
                6 if line.name.eq_ignore_ascii_case("expect") => {
                    waits = says(line.value, b"100-continue")
                }
                _ => {}
            }
        }
        let persistence = match (head.version, close, keep_alive) {
            (_, true, _) | (Some(0), _, false) => Persistence::Close,
            (Some(0), _, true) => Persistence::Told,
            _ => Persistence::Implied,
        };
        let latency = own_latency(head.path.unwrap_or("")).map_err(|_| NotARequest)?;
        let request = Request {
            latency,
            head_only: head.method == Some("HEAD"),
            persistence,
        };
        self.state = match length {
            Length::Known(bytes) => State::Length(request, bytes),
            Length::Chunked => State::Chunked(request, Chunks::new()),
        };
        Ok(Some((used, waits && length != Length::Known(0))))
    }
}

fn number(value: &[u8]) -> Result<u64, NotARequest> {
    let digits = std::str::from_utf8(value.trim_ascii())
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or(NotARequest)
}

fn says(value: &[u8], word: &[u8]) -> bool {
    value
        .split(|byte| *byte == b',')
        .any(|token| token.trim_ascii().eq_ignore_ascii_case(word))
}

/// The field of a query that is meant for this third party. All others are the caller's own, whatever they are called.
const OWN_FIELD: &str = "velodrome-latency=";

/// The latency the query asks for.
fn own_latency(path: &str) -> Result<Option<u64>, String> {
    let Some((_, query)) = path.split_once('?') else {
        return Ok(None);
    };
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix(OWN_FIELD))
        .map(duration)
        .transpose()
}

/// Which answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: Status,
    pub persistence: Persistence,
    /// The request was HEAD: no body.
    pub head_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Right,
    /// 500, the share that was asked for.
    Fault,
    /// 400, and the connection ends: what came was not a request.
    Refusal,
}

/// What the answer says of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: HTTP/1.1 goes on by itself.
    Implied,
    /// `keep-alive`, to an HTTP/1.0 client that asked for it; `ab` waits for the word.
    Told,
    Close,
}

#[derive(Debug)]
struct Written {
    bytes: Vec<u8>,
    head: usize,
}

#[derive(Debug)]
pub(super) struct Replies {
    /// Status by persistence.
    written: [[Written; 3]; 3],
}

const PLAIN: &str = "text/plain";

/// What fills an answer: the same bytes every service of velodrome answers.
const FILLER: &[u8] = b"<h1>Hello, World!</h1>";

impl Replies {
    /// `body` is that of a right answer, of the content type `kind`.
    pub fn new(body: &Body, kind: &str) -> Self {
        let right: Vec<u8> = match body {
            Body::Filler(size) => FILLER.iter().copied().cycle().take(*size).collect(),
            Body::Told(bytes) => bytes.clone(),
        };
        let row = |status: &str, kind: &str, body: &[u8]| {
            ["", "Connection: keep-alive\r\n", "Connection: close\r\n"]
                .map(|line| write(status, kind, line, body))
        };
        Self {
            written: [
                row("200 OK", kind, &right),
                row(
                    "500 Internal Server Error",
                    PLAIN,
                    b"the simulated third party fails this share of requests\n",
                ),
                row(
                    "400 Bad Request",
                    PLAIN,
                    b"not a request this third party can read\n",
                ),
            ],
        }
    }

    pub fn bytes(&self, reply: Reply) -> &[u8] {
        let written = &self.written[reply.status as usize][reply.persistence as usize];
        if reply.head_only {
            &written.bytes[..written.head]
        } else {
            &written.bytes
        }
    }
}

fn write(status: &str, kind: &str, connection: &str, body: &[u8]) -> Written {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{connection}\r\n"
    );
    let mut bytes = head.into_bytes();
    let head = bytes.len();
    bytes.extend_from_slice(body);
    Written { bytes, head }
}
