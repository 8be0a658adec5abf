//! When requests are due: pure functions of the request's number, blind to the server.
//!
//! `constant` at 4/s: request 0 at 0 ms, 1 at 250 ms, 2 at 500 ms. `poisson` at 4/s: gaps drawn from `(seed, n)`,
//! exponential with mean 250 ms. Because the plan cannot see the server, a slow server cannot thin out the requests it
//! is judged by (coordinated omission). Where the rate changes with time, both follow it (see [`Schedule`]).

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chance::{mix, unit};
use crate::clock::{Nanos, SECOND, seconds};

/// How the gaps of an open loop are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// All gaps equal.
    #[default]
    Constant,
    /// Independent users: exponential gaps.
    Poisson,
}

/// Gap before request `n` of a Poisson process with one request per unit of time, by inversion of the exponential
/// distribution.
///
/// The uniform number is the `n`-th of SplitMix64, so any thread can compute any gap.
pub fn unit_gap(seed: u64, n: u64) -> f64 {
    let uniform = unit(mix(seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15))));
    -(1.0 - uniform).ln()
}

/// The requests of one thread of several: numbers `thread`, `thread + threads`, …, each with its due offset.
#[derive(Clone, Debug)]
pub struct Arrivals {
    spread: Spread,
    schedule: Schedule,
    seed: u64,
    step: u64,
    n: u64,
    /// Poisson: the sum of the unit gaps up to request `n`. A Poisson process of any rate is one of rate 1 whose time
    /// is the integral of that rate (Çinlar 1975, «Introduction to Stochastic Processes», chapter 4).
    position: f64,
    /// Where in the schedule the last request was.
    at: usize,
    due: Nanos,
}

impl Arrivals {
    /// The arrivals of thread `thread` of `threads`; `schedule` is that of all threads together.
    pub fn new(
        spread: Spread,
        schedule: Schedule,
        seed: u64,
        thread: u64,
        threads: u64,
    ) -> Arrivals {
        let mut arrivals = Arrivals {
            spread,
            schedule,
            seed,
            step: threads,
            n: thread,
            position: (0..=thread).map(|n| unit_gap(seed, n)).sum(),
            at: 0,
            due: 0,
        };
        arrivals.settle();
        arrivals
    }

    /// Offset from the start of the load at which the next request is due.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.due
    }

    /// Goes on to the request after the next.
    #[inline]
    pub fn advance(&mut self) {
        let last = self.n;
        self.n += self.step;
        if self.spread == Spread::Poisson {
            // The gaps of the other threads' requests are walked too, in the same order: a sum of the same numbers.
            for n in last + 1..=self.n {
                self.position += unit_gap(self.seed, n);
            }
        }
        self.settle();
    }

    #[inline]
    fn settle(&mut self) {
        let count = match self.spread {
            Spread::Constant => Count::from(self.n) * ONE,
            Spread::Poisson => (self.position * ONE as f64) as Count,
        };
        self.due = self.schedule.due(count, &mut self.at);
    }
}

/// Later than anything that happens, and far enough from the largest number that times can be added to it.
pub const NEVER: Nanos = 1 << 62;

/// A number of requests, in parts of one.
type Count = i128;
/// Parts of a request. Twice the rate in parts of 2⁻⁴⁰ per second, times nanoseconds, is a whole number of them: rates
/// up to 10 million have at most 29 binary places, and small ones lose what is beyond a ten-millionth of a millionth.
const ONE: Count = (2 * SECOND as i128) << 40;

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
    fn due(&self, count: Count, at: &mut usize) -> Nanos {
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
