//! Time as nanoseconds on a monotonic clock, real or simulated.

use std::cell::Cell;
use std::rc::Rc;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds, of a duration or on a [`Clock`]. `u64` reaches 584 years.
pub type Nanos = u64;

/// Nanoseconds in a second.
pub const SECOND: Nanos = 1_000_000_000;
/// Nanoseconds in a microsecond.
pub const MICROSECOND: Nanos = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: Nanos = 1_000_000;

/// Seconds as nanoseconds, rounded. The caller has checked that `seconds` is finite and not negative.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64).round() as Nanos
}

/// Nanoseconds as seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND as f64
}

/// Where a worker reads the time.
pub trait Clock {
    /// The present moment; never decreases.
    fn now(&self) -> Nanos;
}

/// The present moment of `CLOCK_MONOTONIC`.
#[inline]
pub fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// `CLOCK_MONOTONIC`, so that samplers in other processes align on the same numbers.
#[derive(Clone, Copy, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Nanos {
        monotonic()
    }
}

/// A clock that moves only when it is told to; clones show the same time.
#[derive(Clone, Default)]
pub struct Simulated(Rc<Cell<Nanos>>);

impl Simulated {
    /// Moves the clock forward to `moment`; a moment already past changes nothing.
    pub fn advance_to(&self, moment: Nanos) {
        self.0.set(self.0.get().max(moment));
    }
}

impl Clock for Simulated {
    fn now(&self) -> Nanos {
        self.0.get()
    }
}
