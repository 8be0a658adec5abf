//! One call: events of its stream in, its end out.

use crate::outcome::{BodyCheck, Outcome};
use crate::protocol::body::Body;
use crate::protocol::grpc::{readable, status_name};
use crate::protocol::http2::{GrpcStatus, GrpcTrailer, StreamEvent, code_name};

/// What a right answer is.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// The right messages in their order, without prefixes; the last stands for all after it. Empty: unknown.
    pub messages: &'a [Box<[u8]>],
    /// How many there are; None: any number.
    pub count: Option<u64>,
    /// The right `grpc-status`. Where it is not 0, no messages are expected.
    pub status: u32,
}

impl Expected<'_> {
    /// One message, whatever it says.
    #[must_use]
    pub const fn unary() -> Self {
        Self {
            messages: &[],
            count: Some(1),
            status: 0,
        }
    }

    /// Any number of messages, whatever they say.
    #[must_use]
    pub const fn streaming() -> Self {
        Self {
            messages: &[],
            count: None,
            status: 0,
        }
    }
}

/// How a call ended. [`Call::why`] says it in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    pub outcome: Outcome,
    /// The `grpc-status` that came.
    pub status: Option<u32>,
    /// Messages of the answer that came whole, and their bytes without prefixes.
    pub messages: u64,
    pub bytes: u64,
    /// Whether the messages were the right ones: their lengths always, their contents where `begin` said so.
    pub check: BodyCheck,
    /// The stream is still open, and the caller must cancel it.
    pub cancel: bool,
}

/// What came of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallProgress {
    /// The call goes on; see [`Call::messages`].
    More,
    Done(Ended),
    /// The server surely did nothing with it. The caller may send it again or count it as `Outcome::Reset`.
    Refused,
}

/// What ended a call beside its trailers.
#[derive(Debug, Clone, Copy)]
enum Break {
    None,
    Reset(u32),
    Refused,
    Malformed(&'static str),
    Flag(BadFlag),
}

/// The reader of the answer to one call; used again for the next.
#[derive(Debug)]
pub struct Call {
    http_status: u16,
    status: GrpcStatus,
    text: Vec<u8>,
    messages: Messages,
    broken: Break,
}

impl Default for Call {
    fn default() -> Self {
        Self::new()
    }
}

impl Call {
    /// A reader that expects nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            http_status: 0,
            status: GrpcStatus::Missing,
            text: Vec::new(),
            messages: Messages::new(false),
            broken: Break::None,
        }
    }

    /// A call was begun. `compare`: compare the contents of its messages, not only their lengths.
    #[inline]
    pub fn begin(&mut self, compare: bool) {
        self.http_status = 0;
        self.status = GrpcStatus::Missing;
        self.text.clear();
        self.messages = Messages::new(compare);
        self.broken = Break::None;
    }

    /// Messages of the answer that came whole so far: each may be what a next request message waits for.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.messages.count
    }

    /// Takes what happened on the stream of the call.
    #[inline]
    pub fn feed(&mut self, event: StreamEvent<'_>, expected: &Expected<'_>) -> CallProgress {
        match event {
            StreamEvent::Head {
                status, grpc, end, ..
            } => {
                self.http_status = status;
                match end {
                    true => self.trailers(grpc),
                    false => return CallProgress::More,
                }
            }
            StreamEvent::Data { bytes, end } => {
                // The page of an HTTP error has no messages in it.
                if self.http_status == 200
                    && let Err(flag) = self.messages.feed(bytes, expected.messages)
                {
                    self.broken = Break::Flag(flag);
                    return CallProgress::Done(self.ended(expected, !end));
                }
                if !end {
                    return CallProgress::More;
                }
            }
            StreamEvent::Trailers { grpc } => self.trailers(grpc),
            StreamEvent::Reset { code } => self.broken = Break::Reset(code),
            StreamEvent::Malformed { why } => self.broken = Break::Malformed(why),
            StreamEvent::Refused => {
                self.broken = Break::Refused;
                return CallProgress::Refused;
            }
        }
        CallProgress::Done(self.ended(expected, false))
    }

    #[inline]
    fn trailers(&mut self, grpc: GrpcTrailer<'_>) {
        self.status = grpc.status;
        if !grpc.message.is_empty() {
            self.text.extend_from_slice(grpc.message);
        }
    }

    #[inline]
    fn ended(&self, expected: &Expected<'_>, cancel: bool) -> Ended {
        Ended {
            outcome: self.outcome(expected),
            status: match self.status {
                GrpcStatus::Code(code) => Some(code),
                _ => None,
            },
            messages: self.messages.count,
            bytes: self.messages.bytes,
            check: self.messages.check,
            cancel,
        }
    }

    #[inline]
    fn outcome(&self, expected: &Expected<'_>) -> Outcome {
        match (self.broken, self.status) {
            (Break::Reset(_) | Break::Refused, _) => Outcome::Reset,
            (Break::Malformed(_) | Break::Flag(_), _) => Outcome::BadProtocol,
            _ if self.http_status != 200 => Outcome::BadStatus,
            (_, GrpcStatus::Code(code)) if code != expected.status => Outcome::BadStatus,
            (_, GrpcStatus::Code(0)) => self.judge(expected),
            (_, GrpcStatus::Code(_)) => Outcome::Ok,
            (_, GrpcStatus::Missing | GrpcStatus::Unreadable) => Outcome::BadProtocol,
        }
    }

    #[inline]
    fn judge(&self, expected: &Expected<'_>) -> Outcome {
        let count_is_right = expected.count.is_none_or(|count| count == self.messages());
        if !self.messages.is_whole() {
            Outcome::BadProtocol
        } else if !count_is_right || self.messages.wrong.is_some() {
            Outcome::WrongBody
        } else {
            Outcome::Ok
        }
    }

    /// Why the call that ended last was not right: one sentence. Of a right call, that it was.
    #[must_use]
    #[cold]
    pub fn why(&self, expected: &Expected<'_>) -> String {
        match self.broken {
            Break::Reset(code) => format!("the server reset the stream: {}", code_name(code)),
            Break::Refused => "the server refused the stream".into(),
            Break::Malformed(why) => format!("the answer is not HTTP/2: {why}"),
            Break::Flag(BadFlag(1)) => {
                "a message is compressed although no compression was offered".into()
            }
            Break::Flag(BadFlag(flag)) => {
                format!("a message has the flag {flag} where 0 or 1 is right")
            }
            Break::None => self.why_by_status(expected),
        }
    }

    fn why_by_status(&self, expected: &Expected<'_>) -> String {
        let right = expected.status;
        match (self.http_status, self.status) {
            (200, GrpcStatus::Missing) => "the answer ends without grpc-status".into(),
            (200, GrpcStatus::Unreadable) => "the grpc-status of the answer is not a number".into(),
            (200, GrpcStatus::Code(code)) if code == right => self.why_by_messages(expected),
            (200, GrpcStatus::Code(code)) => {
                let told = format!("grpc-status {code} {}{}", status_name(code), self.said());
                match right {
                    0 => told,
                    _ => format!("{told} where {right} {} is right", status_name(right)),
                }
            }
            (http, GrpcStatus::Code(code)) => format!(
                "HTTP status {http} where 200 is right, with grpc-status {code} {}{}",
                status_name(code),
                self.said()
            ),
            (http, _) => format!("HTTP status {http} where 200 is right"),
        }
    }

    fn said(&self) -> String {
        match self.text.as_slice() {
            [] => String::new(),
            text => format!(": {}", readable(text)),
        }
    }

    fn why_by_messages(&self, expected: &Expected<'_>) -> String {
        let came = self.messages.count;
        if !self.messages.is_whole() {
            return match self.messages.progress() {
                (_, None) => "the answer ends within the prefix of a message".into(),
                (come, Some(length)) => {
                    format!("the answer ends after {come} of the {length} bytes of a message")
                }
            };
        }
        match (expected.count, self.messages.wrong) {
            (Some(count), _) if count != came => {
                format!("{came} messages where {count} are right")
            }
            (_, Some(at)) => format!("message {} of {came} is not the right one", at + 1),
            _ => "the call was right".into(),
        }
    }
}

/// A flag and four bytes of length before each message.
const PREFIX_BYTES: usize = 5;

/// The flag of a message says that it is compressed, or something nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadFlag(pub u8);

/// The reader of one direction of one call.
#[derive(Debug)]
pub struct Messages {
    prefix: [u8; PREFIX_BYTES],
    have: usize,
    /// Bytes of the present message that are missing.
    left: u32,
    /// Contents are compared, not only lengths.
    compare: bool,
    body: Body,
    pub count: u64,
    /// Bytes of messages, without prefixes.
    pub bytes: u64,
    /// The first wrong one, counted from 0.
    pub wrong: Option<u64>,
    pub check: BodyCheck,
}

impl Messages {
    pub const fn new(compare: bool) -> Self {
        Self {
            prefix: [0; PREFIX_BYTES],
            have: 0,
            left: 0,
            compare,
            body: Body::new(compare),
            count: 0,
            bytes: 0,
            wrong: None,
            check: BodyCheck::Unchecked,
        }
    }

    /// Whether the stream may end here.
    pub const fn is_whole(&self) -> bool {
        self.have == 0
    }

    /// How many bytes of the present message have come, and how many it has; its length may be unknown.
    pub fn progress(&self) -> (u64, Option<u64>) {
        let known = self.have == PREFIX_BYTES;
        let come = self.body.len();
        (come, known.then(|| come + u64::from(self.left)))
    }

    /// Takes a piece. `expected` are the right messages, the last of them for all that follow; empty: unknown.
    #[inline]
    pub fn feed(&mut self, mut bytes: &[u8], expected: &[Box<[u8]>]) -> Result<(), BadFlag> {
        while !bytes.is_empty() {
            if self.have < PREFIX_BYTES {
                let here = bytes.len().min(PREFIX_BYTES - self.have);
                self.prefix[self.have..self.have + here].copy_from_slice(&bytes[..here]);
                self.have += here;
                bytes = &bytes[here..];
                if self.have < PREFIX_BYTES {
                    return Ok(());
                }
                self.enter()?;
            }
            // The cast is exact: the smaller of the two fits in u32.
            let here = bytes.len().min(self.left as usize);
            let right = self.right(expected);
            self.body.take(&bytes[..here], right);
            self.left -= here as u32;
            bytes = &bytes[here..];
            if self.left == 0 {
                self.end(right);
            }
        }
        Ok(())
    }

    #[inline]
    fn enter(&mut self) -> Result<(), BadFlag> {
        let [flag, l0, l1, l2, l3] = self.prefix;
        if flag != 0 {
            return Err(BadFlag(flag));
        }
        self.left = u32::from_be_bytes([l0, l1, l2, l3]);
        self.body = Body::new(self.compare);
        Ok(())
    }

    /// The right content of the present message.
    #[inline]
    fn right<'a>(&self, expected: &'a [Box<[u8]>]) -> Option<&'a [u8]> {
        let last = expected.len().checked_sub(1)?;
        let at = usize::try_from(self.count).unwrap_or(last).min(last);
        Some(&expected[at])
    }

    #[inline]
    fn end(&mut self, right: Option<&[u8]>) {
        let check = self.body.verdict(right);
        match (self.wrong, check) {
            (None, BodyCheck::Wrong) => {
                self.wrong = Some(self.count);
                self.check = check;
            }
            (None, _) => self.check = check,
            _ => {}
        }
        self.bytes += self.body.len();
        self.count += 1;
        self.have = 0;
        self.body = Body::new(self.compare);
    }
}
