//! Histograms of durations.
//!
//! One holds 1 ns to 1 h with three significant digits in 33 x 1024 counters (270 kB); recording is an index computation
//! and one addition.

use hdrhistogram::Histogram;

use crate::clock::{Nanos, SECOND};

/// The longest duration a histogram tells apart; what is longer is recorded as this.
pub const LONGEST: Nanos = 3_600 * SECOND;
/// A histogram of durations together with their exact largest.
#[derive(Clone, Debug)]
pub struct Durations {
    /// The counters, nanoseconds.
    pub histogram: Histogram<u64>,
    /// The largest, not rounded to a bucket.
    pub max: Nanos,
}

impl Default for Durations {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3);
        Durations {
            histogram: histogram.expect("the bounds are constants that are in order"),
            max: 0,
        }
    }
}

impl Durations {
    /// Records one duration.
    #[inline]
    pub fn record(&mut self, duration: Nanos) {
        self.histogram.saturating_record(duration);
        self.max = self.max.max(duration);
    }

    /// Records the same duration so many times.
    pub fn record_many(&mut self, duration: Nanos, count: u64) {
        self.histogram.saturating_record_n(duration, count);
        self.max = self.max.max(duration);
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Durations) {
        self.histogram
            .add(&other.histogram)
            .expect("both have the same bounds");
        self.max = self.max.max(other.max);
    }
}

impl Durations {
    /// Adds those of another thread that are needed no more; where there are none on one side, nothing is touched.
    pub fn merge(&mut self, other: Durations) {
        if self.histogram.is_empty() {
            *self = other;
        } else if !other.histogram.is_empty() {
            self.add(&other);
        }
    }
}

/// Latencies of a slice, with two digits: small enough (18 kB) to be handed on four times a second.
pub type Coarse = Histogram<u32>;

/// An empty histogram for a slice.
pub fn coarse() -> Coarse {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are constants that are in order")
}
