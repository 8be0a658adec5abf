//! gRPC as a worker drives it: the messages it sends for each call, and the answers judged.

use std::sync::Arc;

use super::call::{self, Call, Ended, Expected};
use super::request::frame_into;
use crate::clock::{MILLISECOND, Nanos};
use crate::outcome::Outcome;
use crate::protocol::http2::{RequestHead, StreamEvent};
use crate::protocol::{BodyCheck, Fault, Fed, Message, Protocol};
use crate::transport::{StreamRequest, Streams};

/// `DEADLINE_EXCEEDED`: the server gave up on a call because of the deadline it was told.
const DEADLINE_EXCEEDED: u32 = 4;
/// How much sooner than this side a server may see a deadline pass.
const DEADLINE_GRAIN: Nanos = MILLISECOND;

/// Who sends messages in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One message there, one back.
    #[default]
    Unary,
    /// One message there, any number back.
    ServerStreaming,
    /// Several messages there, one back.
    ClientStreaming,
    /// Several messages there, each answered before the next is sent.
    Bidirectional,
}

impl Kind {
    /// Whether a request may have several messages.
    pub fn sends_many(self) -> bool {
        matches!(self, Kind::ClientStreaming | Kind::Bidirectional)
    }

    /// Whether an answer may have several messages.
    pub fn receives_many(self) -> bool {
        matches!(self, Kind::ServerStreaming | Kind::Bidirectional)
    }
}

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
    kind: Kind,
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
    pub fn new(kind: Kind, head: RequestHead, messages: &[impl AsRef<[u8]>]) -> Ask {
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
        if self.kind != Kind::Bidirectional {
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
    fn ended(&self, mut ended: Ended, ask: &Ask) -> Result<Fed<Ended>, Fault> {
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
            _ => Ok(Fed::Done(ended)),
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
    fn feed(&mut self, event: StreamEvent<'_>, ask: &Ask) -> Result<Fed<Ended>, Fault> {
        self.heard = true;
        self.keep(&event, ask);
        let before = self.call.messages();
        match self.call.feed(event, &ask.expected()) {
            call::Fed::Done(ended) => self.ended(ended, ask),
            call::Fed::Refused => Ok(Fed::Refused),
            call::Fed::More => {
                let after = self.call.messages();
                if after == before || !ask.kind.receives_many() {
                    return Ok(Fed::More);
                }
                let first = before == 0;
                let replied = self.replies < ask.rest.len() && after > self.replies as u64;
                Ok(match first || replied {
                    true => Fed::Message(Message { first, replied }),
                    false => Fed::More,
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
    fn reply<'a>(&mut self, ask: &'a mut Ask) -> &'a StreamRequest {
        // Another call may have been begun since, with other messages.
        if let Some(compose) = &ask.compose {
            let messages = compose.compose(self.number);
            ask.fill(&messages);
        }
        self.replies += 1;
        &ask.rest[self.replies - 1]
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
