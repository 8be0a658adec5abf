//! Bodies that nobody looks at: their bytes may be dropped where they are, and only their length counts.

use super::{Answer, Http1, State};

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
