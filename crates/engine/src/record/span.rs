//! Which part of the timeline counts.

use crate::clock::Nanos;

/// The measured part of the timeline.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When warm-up ended.
    pub start: Nanos,
    /// When the drain began; `Nanos::MAX` while it is not known.
    pub end: Nanos,
}

impl Span {
    /// Whether a request due then, or an answer arrived then, belongs to the measurement.
    #[inline]
    pub fn holds(&self, moment: Nanos) -> bool {
        (self.start..self.end).contains(&moment)
    }
}
