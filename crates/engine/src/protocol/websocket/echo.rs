//! A message that is answered by itself, as a worker drives it.

use std::sync::Arc;

use super::frame::{Kind, framed};
use crate::clock::Nanos;
use crate::outcome::{BodyCheck, Outcome};
use crate::protocol::body::Body;
use crate::protocol::websocket::Piece;
use crate::protocol::{Fault, Messages, Payload, Progress, Protocol};

/// The message.
#[derive(Debug, Clone)]
pub struct Ask {
    frame: Payload,
    message: Arc<[u8]>,
    kind: Kind,
    /// Every n-th answer is compared by content.
    check_every: u64,
}

impl Ask {
    /// `mask`: see [`framed`].
    #[must_use]
    pub fn new(kind: Kind, message: &[u8], mask: [u8; 4], check_every: u64) -> Ask {
        Ask {
            frame: Payload::Shared(framed(kind, message, mask).into()),
            message: message.into(),
            kind,
            check_every,
        }
    }
}

/// A message that came back.
#[derive(Debug)]
pub struct Answer {
    kind: Kind,
    bytes: u64,
    check: BodyCheck,
}

/// One connection's side.
#[derive(Debug)]
pub struct Echo {
    body: Body,
}

impl Protocol for Echo {
    type Medium = Messages;
    type Ask = Ask;
    type Answer = Answer;

    fn new() -> Self {
        Echo {
            body: Body::new(false),
        }
    }

    #[inline]
    fn begin<'a>(&mut self, ask: &'a mut Ask, number: u64) -> &'a Payload {
        self.body = Body::new(number.is_multiple_of(ask.check_every));
        &ask.frame
    }

    #[inline]
    fn feed(&mut self, piece: Piece<'_>, ask: &Ask) -> Result<Progress<Answer>, Fault> {
        self.body.take(piece.bytes, Some(&ask.message));
        if !piece.end {
            return Ok(Progress::More);
        }
        Ok(Progress::Done(Answer {
            kind: piece.kind,
            bytes: self.body.len(),
            check: self.body.verdict(Some(&ask.message)),
        }))
    }

    fn eof(&mut self, _: &Ask) -> Result<Option<Answer>, Fault> {
        // The transport tells of every close that is more than the end this side wished for.
        Ok(None)
    }

    #[inline]
    fn judge(answer: &Answer, ask: &Ask, _: Nanos) -> Outcome {
        match answer.check {
            BodyCheck::Wrong => Outcome::WrongBody,
            _ if answer.kind != ask.kind => Outcome::WrongBody,
            _ => Outcome::Ok,
        }
    }

    fn explain(&self, answer: &Answer, ask: &Ask) -> String {
        let (came, right) = (answer.bytes, ask.message.len() as u64);
        match answer.check {
            BodyCheck::Wrong if came == right => {
                format!("a message of the right length, {right} bytes, that is another")
            }
            BodyCheck::Wrong => format!("a message of {came} bytes where {right} are right"),
            _ => format!(
                "a {} message where a {} one is right",
                answer.kind, ask.kind
            ),
        }
    }

    fn is_reusable(_: &Answer) -> bool {
        true
    }
}
