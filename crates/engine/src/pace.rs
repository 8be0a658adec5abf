//! When requests are due: pure functions of the request's number, blind to the server.
//!
//! `constant` at 4/s: request 0 at 0 ms, 1 at 250 ms, 2 at 500 ms. `poisson` at 4/s: gaps drawn from `(seed, n)`,
//! exponential with mean 250 ms. Because the plan cannot see the server, a slow server cannot thin out the requests it
//! is judged by (coordinated omission). Where the rate changes with time, both follow it (see [`Schedule`]).

mod schedule;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::chance::{mix, unit};
use crate::clock::Nanos;
use schedule::{Count, ONE};
pub use schedule::{NEVER, Schedule, Step};

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
