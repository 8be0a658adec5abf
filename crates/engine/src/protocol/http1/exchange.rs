//! HTTP/1.1 as a worker drives it: the requests it sends, written once or anew each time, and their answers judged.

use std::sync::Arc;

use super::cookies::Jar;
use super::{Answer, Http1, Parsed, ProtocolError};
use crate::clock::Nanos;
use crate::outcome::{Outcome, Right};
use crate::protocol::{self, Bytes, Fault, Need, Payload, Protocol};
use crate::requests::{Draw, Request, Requests};
use crate::template::{Occasion, Template, decimal};

/// What is asked, and what right answers are.
#[derive(Debug)]
pub struct Ask {
    requests: Vec<Known>,
    /// The request that goes out now; where there is one that never changes, that.
    out: Payload,
    /// Every n-th body is compared, where there is one to compare with.
    check_every: u64,
    /// Which request comes next and what is filled in; None: there is one that never changes.
    draw: Option<Draw>,
    are_named: bool,
    /// Whether cookies are kept; of those, whether connections are encrypted.
    cookies: Option<bool>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Known {
    /// None: it never changes, and is written already.
    lines: Option<Lines>,
    right: Right,
    is_head: bool,
    is_idempotent: bool,
    /// An answer to it had a large body that nobody looked at.
    bulky: bool,
}

impl Ask {
    /// One request that is the same each time: `bytes` are its head and body.
    #[must_use]
    pub fn fixed(bytes: &[u8], request: &Request, check_every: u64) -> Ask {
        Ask {
            requests: vec![Known {
                lines: None,
                right: Right {
                    // A copy per thread: the count of an Arc that all share would travel between CPUs.
                    body: request.right.body.as_deref().map(Arc::from),
                    ..request.right.clone()
                },
                is_head: request.is_head(),
                is_idempotent: request.is_idempotent(),
                bulky: false,
            }],
            out: Payload::Shared(Arc::from(bytes)),
            check_every,
            draw: None,
            are_named: false,
            cookies: None,
            scratch: Vec::new(),
        }
    }

    /// Several requests, or one that differs each time.
    #[must_use]
    pub fn drawn(requests: &Requests, draw: Draw, keepalive: bool, secure: bool) -> Ask {
        let known = |request: &Request| Known {
            lines: Some(Lines::new(request, keepalive)),
            right: request.right.clone(),
            is_head: request.is_head(),
            is_idempotent: request.is_idempotent(),
            bulky: false,
        };
        Ask {
            requests: requests.all.iter().map(known).collect(),
            out: Payload::Own(Vec::new()),
            check_every: 0,
            draw: Some(draw),
            are_named: requests.are_named,
            cookies: requests.keep_cookies.then_some(secure),
            scratch: Vec::new(),
        }
    }
}

/// One connection's side of it.
#[derive(Debug)]
pub struct Exchange {
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

/// An answer, and to which request.
#[derive(Debug)]
pub struct Answered {
    answer: Answer,
    /// Bytes behind it that nobody asked for.
    surplus: usize,
    which: usize,
}

impl Exchange {
    /// Draws the next request and writes it.
    #[inline]
    fn compose(&mut self, ask: &mut Ask, number: u64) {
        let (Some(draw), Payload::Own(out)) = (&ask.draw, &mut ask.out) else {
            return;
        };
        let occasion = draw.occasion(number);
        self.which = draw.which(occasion);
        self.is_named = ask.are_named;
        let known = &ask.requests[self.which];
        let Some(lines) = &known.lines else { return };
        // Without a right body there is nothing to compare with; what must be in it is looked for in every body.
        let compare = known.right.body.is_some() && draw.compares(number);
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
        lines.write(occasion, more, &mut ask.scratch, out);
        if cookies.is_some() {
            self.http.keep_heads();
        }
    }

    /// The answer is complete: what it sets is told from now on.
    #[inline]
    fn complete(&mut self, answer: Answer, surplus: usize) -> Answered {
        if let Some(user) = &mut self.user {
            user.jar.hear(self.http.head(), &user.path);
        }
        Answered {
            answer,
            surplus,
            which: self.which,
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

impl From<ProtocolError> for Fault {
    #[cold]
    fn from(error: ProtocolError) -> Fault {
        let outcome = match error {
            ProtocolError::EarlyClose { .. } => Outcome::Reset,
            _ => Outcome::BadProtocol,
        };
        let why = error.to_string();
        Fault { outcome, why }
    }
}

impl Protocol for Exchange {
    type Medium = Bytes;
    type Ask = Ask;
    type Answer = Answered;

    fn new() -> Self {
        Exchange {
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
    fn begin<'a>(&mut self, ask: &'a mut Ask, number: u64) -> &'a Payload {
        if ask.draw.is_some() {
            self.compose(ask, number);
        } else {
            let known = &ask.requests[0];
            // Without a right body there is nothing to compare with, and the bytes need not be looked at.
            let compare = known.right.body.is_some() && number.is_multiple_of(ask.check_every);
            self.http.begin(known.is_head, compare);
        }
        &ask.out
    }

    #[inline]
    fn feed(&mut self, bytes: &[u8], ask: &Ask) -> Result<protocol::Progress<Answered>, Fault> {
        let right = &ask.requests[self.which].right;
        match self.http.feed(bytes, right.body.as_deref())? {
            Parsed::More => Ok(protocol::Progress::More),
            Parsed::Done { consumed, answer } => Ok(protocol::Progress::Done(
                self.complete(answer, bytes.len() - consumed),
            )),
        }
    }

    #[inline]
    fn need(&self, ask: &Ask) -> Need {
        match self.http.skippable() {
            0 if self.http.is_blind()
                && ask.requests[self.which].bulky
                && self.http.is_before_answer() =>
            {
                Need::Head
            }
            0 => Need::All,
            left => Need::NoneOf(left),
        }
    }

    fn skip(&mut self, count: u64, ask: &Ask) -> Option<Answered> {
        let right = &ask.requests[self.which].right;
        let surplus = count.saturating_sub(self.http.skippable()) as usize;
        let answer = self.http.skip(count, right.body.as_deref())?;
        Some(self.complete(answer, surplus))
    }

    fn eof(&mut self, ask: &Ask) -> Result<Option<Answered>, Fault> {
        let right = &ask.requests[self.which].right;
        let answer = self.http.eof(right.body.as_deref())?;
        Ok(answer.map(|answer| self.complete(answer, 0)))
    }

    #[inline]
    fn which(&self) -> Option<usize> {
        self.is_named.then_some(self.which)
    }

    fn is_idempotent(&self, ask: &Ask) -> bool {
        ask.requests[self.which].is_idempotent
    }

    #[inline]
    fn judge(answered: &Answered, ask: &Ask, _age: Nanos) -> Outcome {
        let Answer { status, body, .. } = answered.answer;
        match answered.surplus {
            0 => ask.requests[answered.which].right.judge(status, body),
            _ => Outcome::BadProtocol,
        }
    }

    fn explain(&self, answered: &Answered, ask: &Ask) -> String {
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
    fn weigh(&self, ask: &mut Ask) -> u64 {
        let bulk = self.http.bulk();
        if bulk > 0 {
            ask.requests[self.which].bulky = true;
        }
        bulk
    }

    #[inline]
    fn is_reusable(answered: &Answered) -> bool {
        answered.surplus == 0 && answered.answer.keep_alive
    }
}

/// A request as HTTP/1.1 writes it, made of templates. What does not change is one piece.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Up to the length of the body, or to the last line but those that are added.
    head: Template,
    /// None: it stands in the head.
    body: Option<Template>,
    /// Lines behind the length.
    tail: &'static str,
    /// Head, tail and body, where no part of them changes.
    fixed: Option<Fixed>,
}

#[derive(Clone, Debug)]
struct Fixed {
    bytes: Vec<u8>,
    /// Where further lines have their place.
    lines_end: usize,
}

impl Lines {
    /// The request; without `keepalive` the server is asked to close.
    #[must_use]
    pub fn new(request: &Request, keepalive: bool) -> Lines {
        let mut head = Template::fixed(request.method.as_str())
            .text(" ")
            .then(request.path.clone())
            .text(" HTTP/1.1\r\n");
        for (name, value) in &request.fields {
            head = head.text(name).text(": ").then(value.clone()).text("\r\n");
        }
        let tail = if keepalive {
            ""
        } else {
            "Connection: close\r\n"
        };
        let varies = request.tells_length && !request.body.is_fixed();
        if request.tells_length {
            head = head.text("Content-Length: ");
        }
        let mut lines = Lines {
            head,
            body: varies.then(|| request.body.clone()),
            tail,
            fixed: None,
        };
        if varies {
            return lines;
        }
        let body = request.body.filled(Occasion::default());
        if request.tells_length {
            lines.head = lines.head.text(format!("{}\r\n", body.len()));
        }
        if lines.head.is_fixed() {
            let mut bytes = lines.head.filled(Occasion::default());
            bytes.extend_from_slice(tail.as_bytes());
            let lines_end = bytes.len();
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(&body);
            lines.fixed = Some(Fixed { bytes, lines_end });
        } else {
            lines.body = (!body.is_empty()).then(|| Template::fixed(body));
        }
        lines
    }

    /// All of it, where it is the same each time.
    #[must_use]
    pub fn fixed(&self) -> Option<&[u8]> {
        self.fixed.as_ref().map(|fixed| fixed.bytes.as_slice())
    }

    /// Writes the request into `out`, which is emptied first; `more` adds further lines, each with its end. A body that
    /// changes is made in `scratch`, for its length stands before it.
    #[inline]
    pub fn write(
        &self,
        occasion: Occasion,
        more: impl FnOnce(&mut Vec<u8>),
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        if let Some(Fixed { bytes, lines_end }) = &self.fixed {
            out.extend_from_slice(&bytes[..*lines_end]);
            more(out);
            return out.extend_from_slice(&bytes[*lines_end..]);
        }
        self.head.fill(occasion, out);
        scratch.clear();
        if let Some(body) = &self.body {
            body.fill(occasion, scratch);
            if !body.is_fixed() {
                decimal(scratch.len() as u64, out);
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(self.tail.as_bytes());
        more(out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(scratch);
    }
}
