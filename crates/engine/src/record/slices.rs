//! Cuts the timeline into slices and hands each on when it has ended.

use std::sync::mpsc::Sender;

use crate::clock::{MILLISECOND, Nanos};
use crate::durations::{Coarse, coarse};
use crate::outcome::Outcome;
use crate::record::Span;

/// The slice that runs, and where those that have ended go.
#[derive(Debug)]
pub struct Slices {
    current: Slice,
    end: Nanos,
    to: Option<Sender<Slice>>,
}

impl Slices {
    /// Slices of `thread`; without a receiver they are only counted.
    pub fn new(thread: u64, to: Option<Sender<Slice>>) -> Slices {
        let current = Slice {
            thread,
            index: 0,
            requests: 0,
            ok: 0,
            in_flight: 0,
            waiting: 0,
            latency: coarse(),
        };
        Slices {
            current,
            end: Nanos::MAX,
            to,
        }
    }

    /// The timeline begins `now`, its measured span at `start`: the slices of the warm-up have numbers below 0.
    pub fn begin(&mut self, now: Nanos, start: Nanos) {
        let ahead = start.saturating_sub(now).div_ceil(SLICE);
        self.current.index = -(ahead as i64);
        self.end = start.saturating_sub(ahead * SLICE) + SLICE;
    }

    /// When the slice that runs ends.
    #[inline]
    pub fn end(&self) -> Nanos {
        self.end
    }

    /// A request came to its end.
    #[inline]
    pub fn settled(&mut self, outcome: Outcome) {
        self.current.requests += 1;
        self.current.ok += u64::from(outcome == Outcome::Ok);
    }

    /// A request took so long.
    #[inline]
    pub fn timed(&mut self, latency: Nanos) {
        self.current.latency.saturating_record(latency);
    }

    /// Hands on those that have ended by `now`.
    pub fn turn(&mut self, now: Nanos, span: Span, in_flight: u64, waiting: u64) {
        while now >= self.end && self.end - SLICE < span.end {
            self.hand_on(in_flight, waiting);
        }
    }

    /// The span ends at `end`: the last slice, though not full, is handed on, and none follows.
    pub fn finish(&mut self, end: Nanos, in_flight: u64, waiting: u64) {
        if self.end - SLICE < end {
            self.hand_on(in_flight, waiting);
        }
        self.end = Nanos::MAX;
        self.hang_up();
    }

    /// See [`super::Record::hang_up`].
    pub fn hang_up(&mut self) {
        self.to = None;
    }

    fn hand_on(&mut self, in_flight: u64, waiting: u64) {
        (self.current.in_flight, self.current.waiting) = (in_flight, waiting);
        if let Some(to) = &self.to {
            // The reader is gone only when the run is being abandoned.
            let _ = to.send(self.current.clone());
        }
        self.current.index += 1;
        (self.current.requests, self.current.ok) = (0, 0);
        self.current.latency.reset();
        self.end += SLICE;
    }
}

/// The timeline is reported in slices of this length.
pub const SLICE: Nanos = 250 * MILLISECOND;
/// Slices in a second of the series.
pub const SLICES_PER_SECOND: i64 = 4;

/// What one thread saw in one slice of the timeline.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Which thread.
    pub thread: u64,
    /// Number of the slice, counted from the start of the measured span; negative during warm-up.
    pub index: i64,
    /// Requests that came to an end.
    pub requests: u64,
    /// Those of them with a right answer.
    pub ok: u64,
    /// Requests in flight when the slice ended.
    pub in_flight: u64,
    /// Requests due and not sent then, because all connections were busy.
    pub waiting: u64,
    /// Latency from when requests were due.
    pub latency: Coarse,
}
