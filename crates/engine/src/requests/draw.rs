//! Which request comes next.

use crate::chance::{mix, unit};
use crate::spec::LoadSpec;
use crate::template::Occasion;

use super::Requests;

/// The draws of one worker. What request `n` of it is follows from `n` and the seed: a request that has to be sent again
/// is the same one again.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Of each request the share that it and those before it have.
    up_to: Vec<f64>,
    seed: u64,
    thread: u64,
    threads: u64,
    check_every: u64,
}

/// Tells which request is drawn from what is drawn for the places in it.
const WHICH: u64 = 0x7768_6963_6821;

impl Draw {
    /// The draws of thread `thread`.
    #[must_use]
    pub fn new(requests: &Requests, spec: &LoadSpec, thread: u64) -> Draw {
        let whole: f64 = requests.all.iter().map(|request| request.weight).sum();
        let up_to = requests.all.iter().scan(0.0, |sum, request| {
            *sum += request.weight;
            Some(*sum / whole)
        });
        Draw {
            up_to: up_to.collect(),
            seed: spec.seed,
            thread,
            threads: spec.threads,
            check_every: spec.compares_every(0),
        }
    }

    /// What request `number` of this worker is filled in for.
    #[inline]
    #[must_use]
    pub fn occasion(&self, number: u64) -> Occasion {
        Occasion {
            seed: self.seed,
            number: number * self.threads + self.thread,
            index: 0,
        }
    }

    /// Which request it is.
    #[inline]
    #[must_use]
    pub fn which(&self, occasion: Occasion) -> usize {
        if self.up_to.len() == 1 {
            return 0;
        }
        let drawn = unit(mix(mix(occasion.seed ^ WHICH) ^ occasion.number));
        let which = self.up_to.partition_point(|&up_to| up_to <= drawn);
        which.min(self.up_to.len() - 1)
    }

    /// Whether the body of its answer is compared.
    #[inline]
    #[must_use]
    pub fn compares(&self, number: u64) -> bool {
        number.is_multiple_of(self.check_every)
    }
}
