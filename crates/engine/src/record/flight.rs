//! How many requests are in flight, and for how long in all.

use super::Span;
use crate::clock::Nanos;

/// Requests sent and not yet at an end.
#[derive(Debug, Default)]
pub struct Flight {
    /// Integral of their number over the span, nanoseconds.
    pub time: u128,
    count: u64,
    since: Nanos,
}

impl Flight {
    /// The timeline begins.
    pub fn begin(&mut self, now: Nanos) {
        self.since = now;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One more.
    #[inline]
    pub fn more(&mut self, now: Nanos, span: Span) {
        self.integrate(now, span);
        self.count += 1;
    }

    /// One fewer.
    #[inline]
    pub fn fewer(&mut self, now: Nanos, span: Span) {
        self.integrate(now, span);
        self.count -= 1;
    }

    /// One fewer, which has not been in flight since `done`.
    #[inline]
    pub fn fewer_since(&mut self, done: Nanos, now: Nanos, span: Span) {
        self.fewer(now, span);
        let counted = now.min(span.end).saturating_sub(done.max(span.start));
        self.time = self.time.saturating_sub(u128::from(counted));
    }

    /// Adds up to `now`.
    #[inline]
    pub fn integrate(&mut self, now: Nanos, span: Span) {
        let from = self.since.max(span.start);
        let to = now.min(span.end);
        if to > from {
            self.time += u128::from(self.count) * u128::from(to - from);
        }
        self.since = now;
    }
}
