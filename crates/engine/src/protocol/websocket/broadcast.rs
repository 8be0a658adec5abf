//! A message to all members of a room, as a worker drives it: it is answered when the last of them has it.

use crate::clock::Nanos;
use crate::outcome::Outcome;
use crate::protocol::{Fault, Fed, Protocol};
use crate::transport::{Delivered, Rounds};

/// The room; what is said in it is the transport's.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// How many members there are, the one that speaks included.
    pub members: u32,
}

/// All have the message.
#[derive(Debug)]
pub struct Answer {
    /// Members that got another message under its number.
    wrong: u32,
}

/// One message at a time.
#[derive(Debug, Default)]
pub struct Broadcast {
    got: u32,
    wrong: u32,
    /// When the members of the last piece got it.
    moments: Vec<Nanos>,
}

impl Protocol for Broadcast {
    type Medium = Rounds;
    type Ask = Ask;
    type Answer = Answer;

    fn new() -> Self {
        Broadcast::default()
    }

    #[inline]
    fn begin<'a>(&mut self, _: &'a mut Ask, _: u64) -> &'a () {
        (self.got, self.wrong) = (0, 0);
        &()
    }

    #[inline]
    fn feed(&mut self, piece: Delivered<'_>, ask: &Ask) -> Result<Fed<Answer>, Fault> {
        // The cast is exact: there are fewer members than 2^32.
        self.got += piece.moments.len() as u32;
        self.wrong += piece.wrong;
        self.moments.clear();
        self.moments.extend_from_slice(piece.moments);
        match self.got < ask.members {
            true => Ok(Fed::More),
            false => Ok(Fed::Done(Answer { wrong: self.wrong })),
        }
    }

    fn eof(&mut self, _: &Ask) -> Result<Option<Answer>, Fault> {
        Ok(None)
    }

    fn reply<'a>(&mut self, _: &'a mut Ask) -> &'a () {
        &()
    }

    #[inline]
    fn deliveries(&self) -> &[Nanos] {
        &self.moments
    }

    fn shortfall(&self, ask: &Ask) -> Option<String> {
        let members = ask.members;
        Some(format!("{} of {members} members had the message", self.got))
    }

    #[inline]
    fn judge(answer: &Answer, _: &Ask, _: Nanos) -> Outcome {
        match answer.wrong {
            0 => Outcome::Ok,
            _ => Outcome::WrongBody,
        }
    }

    fn explain(&self, answer: &Answer, ask: &Ask) -> String {
        let members = ask.members;
        format!(
            "{} of {members} members got another message under the number of this one",
            answer.wrong
        )
    }

    fn is_reusable(_: &Answer) -> bool {
        true
    }
}
