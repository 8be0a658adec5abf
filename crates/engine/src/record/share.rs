//! What a part of the load came to that is told by itself.

use crate::clock::Nanos;
use crate::durations::Durations;
use crate::outcome::{Outcome, Outcomes};

/// See the module.
#[derive(Debug, Default)]
pub struct Share {
    /// Ends of its requests.
    pub outcomes: Outcomes,
    /// From due to done.
    pub due: Durations,
    /// From sent to done.
    pub sent: Durations,
}

impl Share {
    /// A request came to its end; see `Record::settle`.
    #[inline]
    pub fn settle(&mut self, due: Nanos, sent: Option<Nanos>, done: Nanos, outcome: Outcome) {
        self.outcomes.count(outcome);
        if outcome.is_timed() {
            self.due.record(done - due);
            if let Some(sent) = sent {
                self.sent.record(done - sent);
            }
        }
    }

    /// Adds that of another thread.
    pub fn add(&mut self, other: Share) {
        self.outcomes.add(&other.outcomes);
        self.due.merge(other.due);
        self.sent.merge(other.sent);
    }
}
