//! When answers began and how long they went on, where the two differ.

use crate::durations::Durations;

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

#[cfg(test)]
mod tests {
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
