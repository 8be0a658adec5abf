//! HTTP/2 as a worker drives it: each request a stream, its answer judged.

use std::sync::Arc;

use super::{Heads, Length, RequestHead, StreamEvent, code_name};
use crate::clock::Nanos;
use crate::outcome::{BodyCheck, Outcome, Right};
use crate::protocol::body::Body;
use crate::protocol::{Fault, Progress, Protocol, StreamRequest, Streams};
use crate::requests::{Draw, Request, Requests};
use crate::template::{Occasion, Template};

/// What is asked, and what right answers are.
pub struct PlainAsk {
    requests: Vec<Known>,
    draw: Draw,
    are_named: bool,
    /// The request that goes out now.
    out: StreamRequest,
    /// The last head that was made for one request only, to be made again.
    spare: Option<Arc<RequestHead>>,
    /// That head is in `out`.
    is_made: bool,
    scratch: Vec<u8>,
}

struct Known {
    heads: Heads,
    body: Template,
    right: Right,
    is_head: bool,
    is_idempotent: bool,
}

impl PlainAsk {
    /// What one worker asks; `heads` are those of `requests`, in their order.
    #[must_use]
    pub fn new(requests: &Requests, heads: &[Heads], draw: Draw) -> PlainAsk {
        let known = |(request, heads): (&Request, &Heads)| Known {
            heads: heads.own(),
            body: request.body.clone(),
            right: request.right.clone(),
            is_head: request.is_head(),
            is_idempotent: request.is_idempotent(),
        };
        PlainAsk {
            requests: requests.all.iter().zip(heads).map(known).collect(),
            draw,
            are_named: requests.are_named,
            out: StreamRequest {
                head: None,
                body: Vec::new(),
                end: true,
            },
            spare: None,
            is_made: false,
            scratch: Vec::new(),
        }
    }

    fn fill(&mut self, which: usize, occasion: Occasion) {
        let known = &self.requests[which];
        self.out.body.clear();
        known.body.fill(occasion, &mut self.out.body);
        let before = self.out.head.take();
        if self.is_made {
            self.spare = before;
        }
        self.is_made = matches!(known.heads, Heads::Made(_));
        self.out.head = Some(match &known.heads {
            Heads::Fixed(head) => head.clone(),
            Heads::Made(made) => {
                let mut head = self.spare.take().unwrap_or_default();
                // Whoever was given it last has written it and let go.
                if Arc::get_mut(&mut head).is_none() {
                    head = Arc::default();
                }
                if let Some(head) = Arc::get_mut(&mut head) {
                    made.spell(occasion, self.out.body.len(), &mut self.scratch, head);
                }
                head
            }
        });
    }
}

/// One stream's side of it.
#[derive(Debug)]
pub struct Plain {
    body: Body,
    status: u16,
    /// What the body must come to, of an answer that has one.
    length: Length,
    /// The request in flight.
    which: usize,
    is_named: bool,
    /// Something of the answer has come.
    heard: bool,
}

/// A whole answer.
#[derive(Debug)]
pub struct PlainAnswer {
    status: u16,
    bytes: u64,
    body: BodyCheck,
    which: usize,
}

impl Protocol for Plain {
    type Medium = Streams;
    type Ask = PlainAsk;
    type Answer = PlainAnswer;

    fn new() -> Self {
        Plain {
            body: Body::new(false),
            status: 0,
            length: Length::Untold,
            which: 0,
            is_named: false,
            heard: false,
        }
    }

    #[inline]
    fn begin<'a>(&mut self, ask: &'a mut PlainAsk, number: u64) -> &'a StreamRequest {
        let occasion = ask.draw.occasion(number);
        self.which = ask.draw.which(occasion);
        self.is_named = ask.are_named;
        self.heard = false;
        self.body.restart(ask.draw.compares(number));
        let known = &ask.requests[self.which];
        self.body.seek(known.right.contains.as_ref());
        if known.is_head {
            self.body.forget();
        }
        ask.fill(self.which, occasion);
        &ask.out
    }

    #[inline]
    fn feed(
        &mut self,
        event: StreamEvent<'_>,
        ask: &PlainAsk,
    ) -> Result<Progress<PlainAnswer>, Fault> {
        self.heard = true;
        let known = &ask.requests[self.which];
        let right = &known.right;
        let fault = |outcome, why| Err(Fault { outcome, why });
        match event {
            StreamEvent::Head { status, length, .. } => {
                self.status = status;
                // What has no body by its nature may tell of the one it would have.
                let bodiless = known.is_head || matches!(status, 204 | 304);
                self.length = if bodiless { Length::Untold } else { length };
                if bodiless {
                    self.body.forget();
                }
            }
            StreamEvent::Data { bytes, .. } => self.body.take(bytes, right.body.as_deref()),
            StreamEvent::Trailers { .. } => {}
            StreamEvent::Refused => return Ok(Progress::Refused),
            StreamEvent::Reset { code } => {
                let why = format!("the server reset the stream: {}", code_name(code));
                return fault(Outcome::Reset, why);
            }
            StreamEvent::Malformed { why } => return malformed(why),
        }
        if !event.ends() {
            return Ok(Progress::More);
        }
        match self.length {
            Length::Untold => {}
            Length::Bytes(told) if told == self.body.len() => {}
            Length::Bytes(told) => return malformed(&other_length(told, self.body.len())),
            Length::Unreadable => return malformed("its content-length is not one number"),
        }
        Ok(Progress::Done(PlainAnswer {
            status: self.status,
            bytes: self.body.len(),
            body: self.body.verdict(right.body.as_deref()),
            which: self.which,
        }))
    }

    fn eof(&mut self, _ask: &PlainAsk) -> Result<Option<PlainAnswer>, Fault> {
        match self.heard {
            false => Ok(None),
            true => Err(Fault {
                outcome: Outcome::Reset,
                why: "the server closed the connection in the middle of an answer".into(),
            }),
        }
    }

    #[inline]
    fn which(&self) -> Option<usize> {
        self.is_named.then_some(self.which)
    }

    fn is_idempotent(&self, ask: &PlainAsk) -> bool {
        ask.requests[self.which].is_idempotent
    }

    #[inline]
    fn judge(answer: &PlainAnswer, ask: &PlainAsk, _age: Nanos) -> Outcome {
        ask.requests[answer.which]
            .right
            .judge(answer.status, answer.body)
    }

    fn explain(&self, answer: &PlainAnswer, ask: &PlainAsk) -> String {
        ask.requests[answer.which]
            .right
            .explain(answer.status, answer.bytes)
    }

    fn is_reusable(_: &PlainAnswer) -> bool {
        true
    }
}

/// An answer that contradicts itself (RFC 9113, section 8.1.1).
#[cold]
fn malformed(why: &str) -> Result<Progress<PlainAnswer>, Fault> {
    Err(Fault {
        outcome: Outcome::BadProtocol,
        why: format!("the answer is not HTTP/2: {why}"),
    })
}

#[cold]
fn other_length(told: u64, came: u64) -> String {
    format!("its content-length is {told}, and its body ended after {came} bytes")
}
