//! HTTP/1.1 as a worker drives it that asks several requests, or one that differs each time.

use super::cookies::Jar;
use super::{Answer, Http1, Lines, Parsed};
use crate::clock::Nanos;
use crate::outcome::{Outcome, Right};
use crate::protocol;
use crate::protocol::{Fault, Protocol, Written};
use crate::requests::{Draw, Request, Requests};

/// What is asked, and what right answers are.
#[derive(Debug)]
pub struct VariedAsk {
    requests: Vec<Known>,
    draw: Draw,
    are_named: bool,
    /// Whether cookies are kept; of those, whether connections are encrypted.
    cookies: Option<bool>,
    /// The request that goes out now.
    out: Vec<u8>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Known {
    lines: Lines,
    right: Right,
    is_head: bool,
    is_idempotent: bool,
    /// An answer to it had a large body that nobody looked at.
    bulky: bool,
}

impl VariedAsk {
    /// What one worker asks.
    #[must_use]
    pub fn new(requests: &Requests, draw: Draw, keepalive: bool, secure: bool) -> VariedAsk {
        let known = |request: &Request| Known {
            lines: Lines::new(request, keepalive),
            right: request.right.clone(),
            is_head: request.is_head(),
            is_idempotent: request.is_idempotent(),
            bulky: false,
        };
        VariedAsk {
            requests: requests.all.iter().map(known).collect(),
            draw,
            are_named: requests.are_named,
            cookies: requests.keep_cookies.then_some(secure),
            out: Vec::new(),
            scratch: Vec::new(),
        }
    }
}

/// One connection's side of it.
#[derive(Debug)]
pub struct Varied {
    http: Http1,
    /// The request in flight.
    which: usize,
    is_named: bool,
    /// What this user was asked to tell again. It outlives the connection: somebody whose connection is gone comes back
    /// as who they were.
    user: Option<Box<User>>,
}

#[derive(Debug, Default)]
struct User {
    jar: Jar,
    /// Where the request in flight goes.
    path: Vec<u8>,
}

impl Varied {
    /// The answer is complete: what it sets is told from now on.
    #[inline]
    fn hear(&mut self) {
        if let Some(user) = &mut self.user {
            user.jar.hear(self.http.head(), &user.path);
        }
    }
}

/// The path in a request, without its query.
fn path(request: &[u8]) -> &[u8] {
    let target = request
        .split(|byte| *byte == b' ')
        .nth(1)
        .unwrap_or_default();
    let end = target.iter().position(|byte| *byte == b'?');
    &target[..end.unwrap_or(target.len())]
}

/// An answer, and to which request.
#[derive(Debug)]
pub struct Answered {
    answer: Answer,
    /// Bytes behind it that nobody asked for.
    surplus: usize,
    which: usize,
}

impl Protocol for Varied {
    type Medium = Written;
    type Ask = VariedAsk;
    type Answer = Answered;

    fn new() -> Self {
        Varied {
            http: Http1::new(),
            which: 0,
            is_named: false,
            user: None,
        }
    }

    fn renew(&mut self) {
        let user = self.user.take();
        *self = Self::new();
        self.user = user;
    }

    #[inline]
    fn begin<'a>(&mut self, ask: &'a mut VariedAsk, number: u64) -> &'a Vec<u8> {
        let occasion = ask.draw.occasion(number);
        self.which = ask.draw.which(occasion);
        self.is_named = ask.are_named;
        let known = &ask.requests[self.which];
        // Without a right body there is nothing to compare with; what must be in it is looked for in every body.
        let compare = known.right.body.is_some() && ask.draw.compares(number);
        self.http.begin(known.is_head, compare);
        self.http.seek(known.right.contains.as_ref());
        let (user, cookies) = (&mut self.user, ask.cookies);
        let more = |out: &mut Vec<u8>| {
            if let Some(secure) = cookies {
                let user = user.get_or_insert_default();
                user.path.clear();
                user.path.extend_from_slice(path(out));
                user.jar.tell(&user.path, secure, out);
            }
        };
        known
            .lines
            .write(occasion, more, &mut ask.scratch, &mut ask.out);
        if cookies.is_some() {
            self.http.keep_heads();
        }
        &ask.out
    }

    #[inline]
    fn feed(
        &mut self,
        bytes: &[u8],
        ask: &VariedAsk,
    ) -> Result<protocol::Progress<Answered>, Fault> {
        let right = &ask.requests[self.which].right;
        match self.http.feed(bytes, right.body.as_deref())? {
            Parsed::More => Ok(protocol::Progress::More),
            Parsed::Done { consumed, answer } => {
                self.hear();
                Ok(protocol::Progress::Done(Answered {
                    answer,
                    surplus: bytes.len() - consumed,
                    which: self.which,
                }))
            }
        }
    }

    #[inline]
    fn skippable(&self) -> u64 {
        self.http.skippable()
    }

    fn skip(&mut self, count: u64, ask: &VariedAsk) -> Option<Answered> {
        let right = &ask.requests[self.which].right;
        let surplus = count.saturating_sub(self.http.skippable()) as usize;
        let answer = self.http.skip(count, right.body.as_deref())?;
        self.hear();
        Some(Answered {
            answer,
            surplus,
            which: self.which,
        })
    }

    fn eof(&mut self, ask: &VariedAsk) -> Result<Option<Answered>, Fault> {
        let right = &ask.requests[self.which].right;
        let answer = self.http.eof(right.body.as_deref())?;
        self.hear();
        Ok(answer.map(|answer| Answered {
            answer,
            surplus: 0,
            which: self.which,
        }))
    }

    /// One request has one answer: this is never asked for.
    fn reply<'a>(&mut self, ask: &'a mut VariedAsk) -> &'a Vec<u8> {
        &ask.out
    }

    #[inline]
    fn which(&self) -> Option<usize> {
        self.is_named.then_some(self.which)
    }

    fn is_idempotent(&self, ask: &VariedAsk) -> bool {
        ask.requests[self.which].is_idempotent
    }

    #[inline]
    fn judge(answered: &Answered, ask: &VariedAsk, _age: Nanos) -> Outcome {
        let Answer { status, body, .. } = answered.answer;
        match answered.surplus {
            0 => ask.requests[answered.which].right.judge(status, body),
            _ => Outcome::BadProtocol,
        }
    }

    fn explain(&self, answered: &Answered, ask: &VariedAsk) -> String {
        let Answer {
            status, body_len, ..
        } = answered.answer;
        match answered.surplus {
            0 => ask.requests[answered.which].right.explain(status, body_len),
            surplus => {
                format!("{surplus} bytes more than the answer (status {status}) said it has")
            }
        }
    }

    #[inline]
    fn is_bulky(&self, ask: &VariedAsk) -> bool {
        ask.requests[self.which].bulky && self.http.is_blind()
    }

    #[inline]
    fn weigh(&self, ask: &mut VariedAsk) -> u64 {
        let bulk = self.http.bulk();
        ask.requests[self.which].bulky |= bulk > 0;
        bulk
    }

    #[inline]
    fn is_reusable(answered: &Answered) -> bool {
        answered.surplus == 0 && answered.answer.keep_alive
    }
}
