//! gRPC over HTTP/2 from the client's side, one [`Call`] at a time: what its answer was, and whether it was right.
//!
//! Source: «gRPC over HTTP2», doc/PROTOCOL-HTTP2.md of the gRPC project. Messages are counted and compared as they
//! pass and never kept.
//!
//! ```
//! use velodrome_engine::outcome::Outcome;
//! use velodrome_engine::protocol::grpc::{Call, CallProgress, Expected, frame};
//! use velodrome_engine::protocol::http2::{GrpcStatus, GrpcTrailer, Length, StreamEvent};
//! let reply = Box::from(&b"hello"[..]);
//! let expected = Expected { messages: std::slice::from_ref(&reply), ..Expected::unary() };
//! let mut call = Call::new();
//! call.begin(true);
//! let (length, grpc) = (Length::Untold, GrpcTrailer::default());
//! let head = StreamEvent::Head { status: 200, length, grpc, end: false };
//! assert_eq!(call.feed(head, &expected), CallProgress::More);
//! assert_eq!(call.feed(StreamEvent::Data { bytes: &frame(b"hello"), end: false }, &expected), CallProgress::More);
//! let grpc = GrpcTrailer { status: GrpcStatus::Code(0), message: b"" };
//! let CallProgress::Done(ended) = call.feed(StreamEvent::Trailers { grpc }, &expected) else { panic!() };
//! assert_eq!((ended.outcome, ended.messages), (Outcome::Ok, 1));
//! ```

mod call;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{MILLISECOND, Nanos};
use crate::outcome::{BodyCheck, Outcome};
use crate::protocol::excerpt::visible;
use crate::protocol::http2::{BadField, RequestHead, StreamEvent};
use crate::protocol::{Fault, Message, Progress, Protocol, StreamRequest, Streams};
use crate::spec::CallKind;

pub use call::{Call, CallProgress, Ended, Expected};

/// A message as it stands on the wire: uncompressed, its length before it. Messages beyond 4 GB do not exist.
#[must_use]
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(5 + message.len());
    frame_into(&mut framed, message);
    framed
}

/// The same, appended.
pub fn frame_into(framed: &mut Vec<u8>, message: &[u8]) {
    framed.push(0);
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(message);
}

/// The head of every call. `path`: `/package.Service/Method`; `deadline`: told to the server, which may give up then;
/// `metadata`: further fields (values of names that end in `-bin` in base64 already).
///
/// # Errors
/// A field that HTTP/2 does not allow.
pub fn head(
    scheme: &str,
    authority: &str,
    path: &str,
    deadline: Option<Duration>,
    metadata: &[(&str, &str)],
) -> Result<RequestHead, BadField> {
    let timeout = deadline.map(timeout);
    let mut fields = vec![("te", "trailers"), ("content-type", "application/grpc")];
    let given = |name: &str| {
        metadata
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    if !given("user-agent") {
        fields.push((
            "user-agent",
            concat!("velodrome/", env!("CARGO_PKG_VERSION")),
        ));
    }
    if let Some(timeout) = &timeout {
        fields.push(("grpc-timeout", timeout));
    }
    fields.extend_from_slice(metadata);
    RequestHead::new("POST", scheme, authority, path, &fields)
}

/// At most eight digits and a unit, rounded up: microseconds, or milliseconds from 100 s on, or seconds.
fn timeout(deadline: Duration) -> String {
    const MOST: u128 = 99_999_999;
    let micros = deadline.as_nanos().div_ceil(1_000).max(1);
    match micros {
        0..=MOST => format!("{micros}u"),
        _ if micros.div_ceil(1_000) <= MOST => format!("{}m", micros.div_ceil(1_000)),
        _ => format!("{}S", micros.div_ceil(1_000_000).min(MOST)),
    }
}

/// The names of the status codes (gRPC, doc/statuscodes.md).
#[must_use]
pub fn status_name(code: u32) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES
        .get(code as usize)
        .copied()
        .unwrap_or("(no such code)")
}

/// As many characters of a message as are shown.
const LONGEST_SHOWN: usize = 300;

/// A `grpc-message` decoded, escaped so that no terminal obeys it, and cut.
///
/// A percent sign that begins no code stands for itself: the protocol wants messages shown even when badly coded.
#[must_use]
pub fn readable(message: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some((&byte, after)) = rest.split_first() {
        let code = match (byte, after) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match code {
            Some((high, low)) => {
                decoded.push(high << 4 | low);
                rest = &after[2..];
            }
            None => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    visible(&String::from_utf8_lossy(&decoded), LONGEST_SHOWN)
}

fn digit(byte: u8) -> Option<u8> {
    // The cast is exact: a digit is below 16.
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// `DEADLINE_EXCEEDED`: the server gave up on a call because of the deadline it was told.
const DEADLINE_EXCEEDED: u32 = 4;
/// How much sooner than this side a server may see a deadline pass.
const DEADLINE_GRAIN: Nanos = MILLISECOND;

/// Makes the messages of each call, where they are not always the same.
pub trait Compose: Send {
    /// The messages of call `number`, always the same ones.
    fn compose(&self, number: u64) -> Vec<Vec<u8>>;
}

/// Tells whether messages are equal although their bytes differ.
pub trait Equal: Send {
    /// Whether the messages of an answer, as they stand on the wire, are the right ones.
    fn are_right(&self, framed: &[u8]) -> bool;

    /// What the first messages say that are not.
    fn shown(&self, framed: &[u8]) -> String;
}

/// What a right answer is; see [`Expected`].
#[derive(Clone, Debug, Default)]
pub struct Right {
    /// The right messages in their order; the last stands for all after it.
    pub messages: Vec<Box<[u8]>>,
    /// How many there are.
    pub count: Option<u64>,
    /// The right status.
    pub status: u32,
}

/// What is asked, and what a right answer is.
pub struct Ask {
    kind: CallKind,
    first: StreamRequest,
    /// Further messages of a call in which each is answered before the next.
    rest: Vec<StreamRequest>,
    /// See [`Right`].
    pub right: Right,
    /// Every n-th answer is compared by content.
    pub check_every: u64,
    /// The deadline the server is told.
    pub timeout: Nanos,
    /// See [`Compose`].
    pub compose: Option<Box<dyn Compose>>,
    /// See [`Equal`].
    pub equal: Option<Box<dyn Equal>>,
}

impl Ask {
    /// A call with these messages.
    pub fn new(kind: CallKind, head: RequestHead, messages: &[impl AsRef<[u8]>]) -> Ask {
        let mut ask = Ask {
            kind,
            first: StreamRequest {
                head: Some(Arc::new(head)),
                body: Vec::new(),
                end: true,
            },
            rest: Vec::new(),
            right: Right::default(),
            check_every: 1,
            timeout: Nanos::MAX,
            compose: None,
            equal: None,
        };
        ask.fill(messages);
        ask
    }

    fn fill(&mut self, messages: &[impl AsRef<[u8]>]) {
        self.first.body.clear();
        if self.kind != CallKind::Bidirectional {
            for message in messages {
                frame_into(&mut self.first.body, message.as_ref());
            }
            return;
        }
        self.rest.clear();
        self.first.end = messages.len() <= 1;
        for (number, message) in messages.iter().enumerate() {
            if number == 0 {
                frame_into(&mut self.first.body, message.as_ref());
                continue;
            }
            let mut body = Vec::new();
            frame_into(&mut body, message.as_ref());
            self.rest.push(StreamRequest {
                head: None,
                body,
                end: number + 1 == messages.len(),
            });
        }
    }

    fn expected(&self) -> Expected<'_> {
        Expected {
            messages: &self.right.messages,
            count: self.right.count,
            status: self.right.status,
        }
    }
}

/// One slot's side of gRPC.
#[derive(Debug)]
pub struct Grpc {
    call: Call,
    /// Number of the call, where its messages are made for it.
    number: u64,
    /// Something of the answer has come.
    heard: bool,
    /// Messages that follow the first and were sent.
    replies: usize,
    /// The answer as it came, where it may have to be read.
    kept: Vec<u8>,
}

/// An answer that is kept to be read is read no further than this.
const MOST_KEPT: usize = 16 << 20;

impl Grpc {
    #[inline]
    fn keep(&mut self, event: &StreamEvent<'_>, ask: &Ask) {
        if ask.equal.is_some()
            && let StreamEvent::Data { bytes, .. } = event
            && self.kept.len() + bytes.len() <= MOST_KEPT
        {
            self.kept.extend_from_slice(bytes);
        }
    }

    /// The call has ended.
    #[inline]
    fn ended(&self, mut ended: Ended, ask: &Ask) -> Result<Progress<Ended>, Fault> {
        if ended.outcome == Outcome::WrongBody
            && ended.check == BodyCheck::Wrong
            && let Some(equal) = &ask.equal
            && equal.are_right(&self.kept)
        {
            ended.outcome = Outcome::Ok;
        }
        match ended.outcome {
            outcome @ (Outcome::Reset | Outcome::BadProtocol) => Err(Fault {
                outcome,
                why: self.call.why(&ask.expected()),
            }),
            _ => Ok(Progress::Done(ended)),
        }
    }
}

impl Protocol for Grpc {
    type Medium = Streams;
    type Ask = Ask;
    type Answer = Ended;

    fn new() -> Self {
        Grpc {
            call: Call::new(),
            number: 0,
            heard: false,
            replies: 0,
            kept: Vec::new(),
        }
    }

    #[inline]
    fn begin<'a>(&mut self, ask: &'a mut Ask, number: u64) -> &'a StreamRequest {
        self.call.begin(number.is_multiple_of(ask.check_every));
        self.heard = false;
        self.replies = 0;
        self.kept.clear();
        if let Some(compose) = &ask.compose {
            self.number = number;
            let messages = compose.compose(number);
            ask.fill(&messages);
        }
        &ask.first
    }

    #[inline]
    fn feed(&mut self, event: StreamEvent<'_>, ask: &Ask) -> Result<Progress<Ended>, Fault> {
        self.heard = true;
        self.keep(&event, ask);
        let before = self.call.messages();
        match self.call.feed(event, &ask.expected()) {
            CallProgress::Done(ended) => self.ended(ended, ask),
            CallProgress::Refused => Ok(Progress::Refused),
            CallProgress::More => {
                let after = self.call.messages();
                if after == before || !ask.kind.receives_many() {
                    return Ok(Progress::More);
                }
                let first = before == 0;
                let replied = self.replies < ask.rest.len() && after > self.replies as u64;
                Ok(match first || replied {
                    true => Progress::Message(Message { first, replied }),
                    false => Progress::More,
                })
            }
        }
    }

    fn eof(&mut self, _ask: &Ask) -> Result<Option<Ended>, Fault> {
        match self.heard {
            false => Ok(None),
            true => Err(Fault {
                outcome: Outcome::Reset,
                why: "the server closed the connection in the middle of an answer".into(),
            }),
        }
    }

    #[inline]
    fn reply<'a>(&mut self, ask: &'a mut Ask) -> Option<&'a StreamRequest> {
        // Another call may have been begun since, with other messages.
        if let Some(compose) = &ask.compose {
            let messages = compose.compose(self.number);
            ask.fill(&messages);
        }
        self.replies += 1;
        Some(&ask.rest[self.replies - 1])
    }

    #[inline]
    fn judge(ended: &Ended, ask: &Ask, age: Nanos) -> Outcome {
        // The deadline is the time-out of this side: which of the two sees it pass first is chance.
        if ended.outcome == Outcome::BadStatus
            && ended.status == Some(DEADLINE_EXCEEDED)
            && age.saturating_add(DEADLINE_GRAIN) >= ask.timeout
        {
            return Outcome::Timeout;
        }
        ended.outcome
    }

    fn explain(&self, ended: &Ended, ask: &Ask) -> String {
        let why = self.call.why(&ask.expected());
        match &ask.equal {
            Some(equal) if ended.outcome == Outcome::WrongBody => {
                format!("{why}: {}", equal.shown(&self.kept))
            }
            _ => why,
        }
    }

    fn is_reusable(_: &Ended) -> bool {
        true
    }
}
