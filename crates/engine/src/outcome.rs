//! What became of a request: exactly one of eight.

use std::sync::Arc;

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

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Right {
    /// The right status; None: any 2xx.
    pub status: Option<u16>,
    /// The right body, where it is known.
    pub body: Option<Arc<[u8]>>,
    /// What the body has in it.
    pub contains: Option<Arc<[u8]>>,
}

impl Right {
    /// What an answer comes to.
    #[inline]
    #[must_use]
    pub fn judge(&self, status: u16, body: BodyCheck) -> Outcome {
        let is_right = match self.status {
            Some(right) => status == right,
            None => (200..300).contains(&status),
        };
        match body {
            _ if !is_right => Outcome::BadStatus,
            BodyCheck::Wrong => Outcome::WrongBody,
            _ => Outcome::Ok,
        }
    }

    /// What is wrong with an answer that is not right; its body had `bytes`.
    #[must_use]
    #[cold]
    pub fn explain(&self, status: u16, bytes: u64) -> String {
        if self.judge(status, BodyCheck::Unchecked) == Outcome::BadStatus {
            let wanted = self
                .status
                .map_or("2xx".into(), |status| status.to_string());
            return format!("status {status} where {wanted} is right");
        }
        if let Some(contains) = &self.contains {
            let wanted = String::from_utf8_lossy(contains);
            return format!("a body of {bytes} bytes without {wanted:?} in it");
        }
        match self.body.as_ref().map_or(0, |body| body.len()) {
            right if bytes == right as u64 => {
                format!("the body has the right length, {right} bytes, and is another")
            }
            right => format!("a body of {bytes} bytes where {right} bytes are right"),
        }
    }
}

/// Whether the body was the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyCheck {
    /// Nothing to compare with, or only the length was compared, and was right.
    Unchecked,
    /// Length and content were compared.
    Right,
    /// Length or content differ.
    Wrong,
}
