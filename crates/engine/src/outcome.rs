//! What became of a request: exactly one of eight.

use serde::Serialize;

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A right answer.
    Ok,
    /// No connection was to be had.
    Refused,
    /// The connection ended before the answer was complete.
    Reset,
    /// No complete answer within the time-out.
    Timeout,
    /// A complete answer whose status is not the expected one.
    BadStatus,
    /// A complete answer with the right status and another body than expected.
    WrongBody,
    /// Bytes that are not HTTP, or more than the one answer asked for.
    BadProtocol,
    /// Due within the measured span and not answered when the drain ended.
    Unfinished,
}

impl Outcome {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Outcome; 8] = [
        Outcome::Ok,
        Outcome::Refused,
        Outcome::Reset,
        Outcome::Timeout,
        Outcome::BadStatus,
        Outcome::WrongBody,
        Outcome::BadProtocol,
        Outcome::Unfinished,
    ];

    /// As results spell it.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Refused => "refused",
            Outcome::Reset => "reset",
            Outcome::Timeout => "timeout",
            Outcome::BadStatus => "bad_status",
            Outcome::WrongBody => "wrong_body",
            Outcome::BadProtocol => "bad_protocol",
            Outcome::Unfinished => "unfinished",
        }
    }

    /// Whether the age of the request enters the histograms.
    ///
    /// A time-out or an unfinished request enters at the age it was given up at, a lower bound: left out, the slowest
    /// requests would be missing from the tail. A refusal or a reset is quick and tells nothing about service time.
    pub fn is_timed(self) -> bool {
        matches!(
            self,
            Outcome::Ok
                | Outcome::BadStatus
                | Outcome::WrongBody
                | Outcome::Timeout
                | Outcome::Unfinished
        )
    }
}

/// How many requests came to each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes([u64; 8]);

impl Outcomes {
    /// Counts one.
    #[inline]
    pub fn count(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    /// How many ended so.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// How many requests there were.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the counts of another thread.
    pub fn add(&mut self, other: &Outcomes) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}
