//! When requests are due: pure functions of the request's number, blind to the server.
//!
//! `constant` at 4/s: request 0 at 0 ms, 1 at 250 ms, 2 at 500 ms. `poisson` at 4/s: gaps drawn from `(seed, n)`,
//! exponential with mean 250 ms. Because the plan cannot see the server, a slow server cannot thin out the requests it
//! is judged by (coordinated omission).

use serde::{Deserialize, Serialize};

use crate::clock::{Nanos, SECOND};

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

/// Offset at which request `n` of a constant pace is due.
pub fn constant(n: u64, rate: f64) -> Nanos {
    (n as f64 * SECOND as f64 / rate).round() as Nanos
}

/// Gap before request `n` of a Poisson pace, by inversion of the exponential distribution.
///
/// The uniform number comes from SplitMix64 (Steele, Lea, Flood 2014, <https://doi.org/10.1145/2714064.2660195>) at
/// position `n`, so any thread can compute any gap.
pub fn poisson_gap(seed: u64, n: u64, rate: f64) -> Nanos {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    let uniform = (z >> 11) as f64 / (1u64 << 53) as f64;
    (-(1.0 - uniform).ln() * SECOND as f64 / rate).round() as Nanos
}

/// The requests of one thread of several: numbers `thread`, `thread + threads`, …, each with its due offset.
#[derive(Clone, Debug)]
pub struct Arrivals {
    spread: Spread,
    rate: f64,
    seed: u64,
    step: u64,
    n: u64,
    due: Nanos,
}

impl Arrivals {
    /// The arrivals of thread `thread` of `threads`; `rate` is that of all threads together, per second.
    pub fn new(spread: Spread, rate: f64, seed: u64, thread: u64, threads: u64) -> Arrivals {
        let mut arrivals = Arrivals {
            spread,
            rate,
            seed,
            step: threads,
            n: thread,
            due: 0,
        };
        arrivals.due = match spread {
            Spread::Constant => constant(thread, rate),
            Spread::Poisson => (0..=thread).map(|n| poisson_gap(seed, n, rate)).sum(),
        };
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
        match self.spread {
            Spread::Constant => self.due = constant(self.n, self.rate),
            // The gaps of the other threads' requests are walked too: due(n) is the sum of all gaps up to n.
            Spread::Poisson => {
                for n in last + 1..=self.n {
                    self.due += poisson_gap(self.seed, n, self.rate);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(count: usize, spread: Spread, rate: f64, thread: u64, threads: u64) -> Vec<Nanos> {
        let mut arrivals = Arrivals::new(spread, rate, 7, thread, threads);
        (0..count)
            .map(|_| {
                let due = arrivals.due();
                arrivals.advance();
                due
            })
            .collect()
    }

    #[test]
    fn a_constant_pace_is_a_table() {
        let rows: [(&str, f64, u64, u64, &[Nanos]); 5] = [
            (
                "four a second, alone",
                4.0,
                0,
                1,
                &[0, 250_000_000, 500_000_000],
            ),
            (
                "the second of two threads takes the odd ones",
                4.0,
                1,
                2,
                &[250_000_000, 750_000_000],
            ),
            (
                "three a second rounds to the nearest ns, without drift",
                3.0,
                0,
                1,
                &[0, 333_333_333, 666_666_667, SECOND],
            ),
            (
                "less than one a second",
                0.5,
                0,
                1,
                &[0, 2 * SECOND, 4 * SECOND],
            ),
            ("a million a second", 1e6, 3, 4, &[3_000, 7_000]),
        ];
        for (what, rate, thread, threads, wanted) in rows {
            assert_eq!(
                first(wanted.len(), Spread::Constant, rate, thread, threads),
                wanted,
                "{what}"
            );
        }
    }

    #[test]
    fn a_poisson_pace_has_the_mean_and_the_deviation_of_an_exponential() {
        let dues = first(200_001, Spread::Poisson, 1000.0, 0, 1);
        let gaps: Vec<f64> = dues
            .windows(2)
            .map(|w| (w[1] - w[0]) as f64 / 1e6)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard error of the mean of 200 000 exponential gaps is 0.22 %; four of them.
        assert!((mean - 1.0).abs() < 0.009, "{mean}");
        assert!((variance.sqrt() - 1.0).abs() < 0.02, "{}", variance.sqrt());
    }

    #[test]
    fn a_seed_repeats_itself_and_another_differs() {
        assert_eq!(poisson_gap(4711, 12, 10.0), poisson_gap(4711, 12, 10.0));
        assert_ne!(poisson_gap(4711, 12, 10.0), poisson_gap(4712, 12, 10.0));
    }

    proptest! {
        #[test]
        fn threads_together_make_the_same_arrivals_as_one(
            rate in 0.01f64..1e6, threads in 1u64..7, poisson in any::<bool>()
        ) {
            let spread = if poisson { Spread::Poisson } else { Spread::Constant };
            let alone = first(60, spread, rate, 0, 1);
            for thread in 0..threads {
                let share = first(8, spread, rate, thread, threads);
                for (k, due) in share.into_iter().enumerate() {
                    prop_assert_eq!(due, alone[thread as usize + k * threads as usize]);
                }
            }
        }

        #[test]
        fn nothing_is_due_before_its_predecessor(rate in 0.01f64..1e6, poisson in any::<bool>()) {
            let spread = if poisson { Spread::Poisson } else { Spread::Constant };
            let dues = first(200, spread, rate, 0, 1);
            prop_assert!(dues.windows(2).all(|w| w[0] <= w[1]));
        }
    }
}
