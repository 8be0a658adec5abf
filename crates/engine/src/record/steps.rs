//! What each step of a schedule came to.

use crate::clock::Nanos;
use crate::durations::Durations;

use super::Share;

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
mod tests {
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
