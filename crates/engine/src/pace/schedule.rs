//! The rate of an open loop over time: steps and ramps, one after the other, and the last rate for ever.
//!
//! 100/s for 5 s, then 200/s: request 500 is due at 5 s, request 501 5 ms later. Which request is due when is the
//! inverse of the number that are due by then, the integral of the rate: each time follows from the request's number
//! alone. How many are due before each step is counted in whole numbers, so nothing adds up to a drift.

use std::sync::Arc;

use crate::clock::{Nanos, SECOND, seconds};

/// Later than anything that happens, and far enough from the largest number that times can be added to it.
pub const NEVER: Nanos = 1 << 62;

/// A number of requests, in parts of one.
pub(super) type Count = i128;
/// Parts of a request. Twice the rate in parts of 2⁻⁴⁰ per second, times nanoseconds, is a whole number of them: rates
/// up to 10 million have at most 29 binary places, and small ones lose what is beyond a ten-millionth of a millionth.
pub(super) const ONE: Count = (2 * SECOND as i128) << 40;

/// A piece of a schedule: from one rate to another in a straight line. Rates are per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Rate at its beginning.
    pub from: f64,
    /// Rate at its end; of a step proper the same.
    pub to: f64,
    /// How long it takes.
    pub length: Nanos,
}

impl Step {
    /// Requests that fall due in it.
    #[must_use]
    pub fn requests(&self) -> f64 {
        (self.from + self.to) / 2.0 * seconds(self.length)
    }

    fn count(&self) -> Count {
        let parts = |rate: f64| (rate * (1_u64 << 40) as f64).round() as Count;
        (parts(self.from) + parts(self.to)) * Count::from(self.length)
    }

    /// Rate at a moment of it.
    #[must_use]
    pub fn rate_at(&self, offset: Nanos) -> f64 {
        self.from + (self.to - self.from) * (offset as f64 / self.length.max(1) as f64)
    }
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: Nanos,
    /// Requests due before it.
    before: Count,
    rate: f64,
    /// By how much the rate grows in a second.
    growth: f64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Schedule {
    stretches: Arc<[Stretch]>,
}

impl Schedule {
    /// One rate from the beginning on.
    #[must_use]
    pub fn constant(rate: f64) -> Schedule {
        Schedule::new(&[Step {
            from: rate,
            to: rate,
            length: 0,
        }])
    }

    /// Steps one after the other; the rate at the end of the last goes on.
    #[must_use]
    pub fn new(steps: &[Step]) -> Schedule {
        let mut stretches = Vec::with_capacity(steps.len() + 1);
        let (mut start, mut before, mut last) = (0, 0, 0.0);
        for step in steps {
            if step.length > 0 {
                stretches.push(Stretch {
                    start,
                    before,
                    rate: step.from,
                    growth: (step.to - step.from) / seconds(step.length),
                });
            }
            start += step.length;
            before += step.count();
            last = step.to;
        }
        stretches.push(Stretch {
            start,
            before,
            rate: last,
            growth: 0.0,
        });
        Schedule {
            stretches: stretches.into(),
        }
    }

    /// When the number of requests due reaches `count`, which may lie between two requests. `at` is where to begin to
    /// look, and what was found: the next look is for a later one.
    #[inline]
    pub(super) fn due(&self, count: Count, at: &mut usize) -> Nanos {
        while self
            .stretches
            .get(*at + 1)
            .is_some_and(|next| next.before <= count)
        {
            *at += 1;
        }
        let stretch = &self.stretches[*at];
        let end = self.stretches.get(*at + 1).map_or(NEVER, |next| next.start);
        stretch.due(count).min(end)
    }
}

impl Stretch {
    #[inline]
    fn due(&self, count: Count) -> Nanos {
        let ahead = (count - self.before).max(0) as f64 / ONE as f64;
        let after = if self.growth == 0.0 {
            ahead * SECOND as f64 / self.rate
        } else {
            // rate × t + growth × t² / 2 = ahead, solved so that nothing cancels out. Rounding may take the root of a
            // ramp down to nothing below 0.
            let root = (self.rate * self.rate + 2.0 * self.growth * ahead)
                .max(0.0)
                .sqrt();
            2.0 * ahead / (self.rate + root) * SECOND as f64
        };
        // 0 / 0: the first request of a rate that is 0, or grows from it.
        if after.is_nan() {
            return if self.growth > 0.0 { self.start } else { NEVER };
        }
        self.start.saturating_add(after.round() as Nanos).min(NEVER)
    }
}
