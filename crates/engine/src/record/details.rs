//! What is recorded of some loads only: shares, steps, pieces, deliveries, looks at sockets.

use serde::Serialize;

use crate::clock::Nanos;
use crate::durations::Durations;
use crate::outcome::{Outcome, Outcomes};
use crate::transport::TcpInfo;

/// Times until each delivery.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// From due.
    pub due: Durations,
    /// From sent.
    pub sent: Durations,
}

/// Times until the first message of an answer.
#[derive(Debug, Default)]
pub struct FirstMessage {
    /// From due.
    pub due: Durations,
    /// From sent.
    pub sent: Durations,
}

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

/// Of answers that came in more than one piece, and of those that never came whole: all others begin and end at once,
/// and cost no reading of the clock. So the first byte of *all* answers is what was recorded from sent, without
/// `whole` and with `first`.
#[derive(Debug, Default)]
pub struct Pieces {
    /// From sent to the first byte.
    pub first: Durations,
    /// From there to the last.
    pub rest: Durations,
    /// From sent to the end, as it is in [`crate::record::Record::sent`] too.
    pub whole: Durations,
}

impl Pieces {
    /// Adds those of another thread.
    pub fn add(&mut self, other: &Pieces) {
        self.first.add(&other.first);
        self.rest.add(&other.rest);
        self.whole.add(&other.whole);
    }

    /// From sent to the first byte, of all answers that had one; `sent` is of all.
    pub fn first_byte(&self, sent: &Durations) -> Durations {
        let mut found = sent.clone();
        found
            .histogram
            .subtract(&self.whole.histogram)
            .expect("each of these was recorded from sent as well");
        found
            .histogram
            .add(&self.first.histogram)
            .expect("both have the same bounds");
        found.max = found.histogram.max().min(sent.max);
        found
    }

    /// From the first byte to the last, of all whole answers.
    pub fn last_byte(&self, sent: &Durations) -> Durations {
        let mut found = self.rest.clone();
        let at_once = sent.histogram.len() - self.whole.histogram.len();
        if at_once > 0 {
            found.record_many(0, at_once);
        }
        found
    }
}

/// Looks at connections, some four times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sockets {
    /// How often a connection was looked at.
    pub looked: u64,
    /// How often bytes lay in it that could not go out.
    pub with_unsent: u64,
    /// The most that lay in one.
    pub unsent_bytes_max: u32,
    /// Shortest round trip, microseconds.
    pub rtt_us: Option<u32>,
    /// Segments sent again on the connections that stood at the end.
    pub retransmitted: u64,
}

impl Sockets {
    /// Takes in a look at one connection.
    pub fn see(&mut self, info: TcpInfo) {
        self.looked += 1;
        self.with_unsent += u64::from(info.unsent > 0);
        self.unsent_bytes_max = self.unsent_bytes_max.max(info.unsent);
        self.rtt_us = shorter(self.rtt_us, info.rtt_us);
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Sockets) {
        self.looked += other.looked;
        self.with_unsent += other.with_unsent;
        self.unsent_bytes_max = self.unsent_bytes_max.max(other.unsent_bytes_max);
        self.rtt_us = shorter(self.rtt_us, other.rtt_us);
        self.retransmitted += other.retransmitted;
    }
}

fn shorter(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    a.into_iter().chain(b).min()
}

/// One step: the requests that fell due in it, and the answers that came in it.
#[derive(Debug, Default)]
pub struct Step {
    /// Of the requests that fell due in it, whenever they ended.
    pub share: Share,
    /// The generator's own lateness with them.
    pub lag: Durations,
    /// Right answers that arrived in it, to whichever requests: what the server got done at this rate.
    pub answered: u64,
}

/// See the module. All histograms are there before the load begins; what no step touches costs no memory.
#[derive(Debug, Default)]
pub struct Steps {
    /// When each ends, from the start of the span.
    ends: Vec<Nanos>,
    start: Nanos,
    steps: Vec<Step>,
}

impl Steps {
    /// Steps of these lengths.
    pub fn new(lengths: impl Iterator<Item = Nanos>) -> Steps {
        let ends: Vec<Nanos> = lengths
            .scan(0, |end, length| {
                *end += length;
                Some(*end)
            })
            .collect();
        Steps {
            start: 0,
            steps: ends.iter().map(|_| Step::default()).collect(),
            ends,
        }
    }

    /// The span begins.
    pub fn begin(&mut self, start: Nanos) {
        self.start = start;
    }

    /// Whether the rate does not change.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The step a moment of the span lies in.
    #[inline]
    pub fn at(&mut self, moment: Nanos) -> Option<&mut Step> {
        let offset = moment.checked_sub(self.start)?;
        let number = self.ends.partition_point(|&end| end <= offset);
        self.steps.get_mut(number)
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: Steps) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for (mine, theirs) in self.steps.iter_mut().zip(other.steps) {
            mine.share.add(theirs.share);
            mine.lag.merge(theirs.lag);
            mine.answered += theirs.answered;
        }
    }

    /// All of them, in order.
    pub fn each(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter()
    }
}

#[cfg(test)]
mod pieces_tests {
    use super::*;

    #[test]
    fn what_comes_in_one_piece_begins_when_it_ends() {
        let mut sent = Durations::default();
        sent.record_many(1_000_000, 3);
        sent.record(9_000_000);
        let mut pieces = Pieces::default();
        pieces.whole.record(9_000_000);
        pieces.first.record(2_000_000);
        pieces.rest.record(7_000_000);
        let first = pieces.first_byte(&sent);
        assert_eq!(first.histogram.len(), 4);
        assert!(first.max < 2_010_000, "{}", first.max);
        let last = pieces.last_byte(&sent);
        assert_eq!((last.histogram.len(), last.max), (4, 7_000_000));
        assert_eq!(last.histogram.value_at_quantile(0.75), 0);
    }

    #[test]
    fn what_never_came_has_neither() {
        let mut sent = Durations::default();
        sent.record(5_000_000);
        let mut pieces = Pieces::default();
        pieces.whole.record(5_000_000);
        assert_eq!(pieces.first_byte(&sent).histogram.len(), 0);
        assert_eq!(pieces.last_byte(&sent).histogram.len(), 0);
    }
}

#[cfg(test)]
mod steps_tests {
    use super::*;
    use crate::outcome::Outcome;

    #[test]
    fn a_request_belongs_to_the_step_it_fell_due_in() {
        let mut steps = Steps::new([100, 50, 50].into_iter());
        steps.begin(1_000);
        for (due, done) in [
            (1_000, 1_099),
            (1_099, 1_160),
            (1_100, 1_101),
            (1_149, 1_201),
        ] {
            steps
                .at(due)
                .unwrap()
                .share
                .settle(due, Some(due), done, Outcome::Ok);
        }
        let counts: Vec<u64> = steps
            .each()
            .map(|step| step.share.outcomes.total())
            .collect();
        assert_eq!(counts, [2, 2, 0]);
        assert!(steps.at(999).is_none() && steps.at(1_200).is_none());
        let mut sum = Steps::default();
        sum.add(steps);
        let mut other = Steps::new([100, 50, 50].into_iter());
        other.begin(1_000);
        other
            .at(1_199)
            .unwrap()
            .share
            .settle(1_199, None, 1_300, Outcome::Unfinished);
        sum.add(other);
        let longest: Vec<Nanos> = sum.each().map(|step| step.share.due.max).collect();
        assert_eq!(longest, [99, 52, 101]);
    }
}
