//! The timeline as it is told while the load runs: slices of all threads merged into ticks and seconds.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::clock::{Nanos, SECOND};
use crate::durations::{Coarse, coarse, encode};
use crate::record::{SLICE, SLICES_PER_SECOND, Slice};

/// One second of the measured span, all threads together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Second {
    /// When it began, from the start of the span.
    pub at_s: f64,
    /// Requests that came to an end in it.
    pub requests: u64,
    /// Those with a right answer.
    pub ok: u64,
    /// The others.
    pub errors: u64,
    /// In flight at its end.
    pub in_flight: u64,
    /// Due and not sent at its end, because all connections were busy.
    pub waiting: u64,
    /// Median latency from due; None: nothing was timed. This and the next to two digits.
    pub p50_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Largest.
    pub max_ms: Option<f64>,
    /// Of a part: the latencies themselves, to be added to those of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdr: Option<String>,
}

/// What is told several times a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tick {
    event: &'static str,
    /// `warmup`, `measure` or `drain`.
    phase: &'static str,
    /// Since the start of the measured span; negative during warm-up.
    at_s: f64,
    /// Ends of requests in the span so far.
    requests: u64,
    ok: u64,
    errors: u64,
    /// The rest is of the last slice (250 ms) that all threads have told.
    in_flight: u64,
    waiting: u64,
    rps: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hdr: Option<String>,
    last_second: LastSecond,
}

/// The last four slices that all threads have told.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LastSecond {
    /// Of this many seconds: less at the beginning.
    seconds: f64,
    requests: u64,
    ok: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hdr: Option<String>,
}

/// Slices of all threads, added up.
struct Sum {
    parts: u64,
    requests: u64,
    ok: u64,
    latency: Coarse,
    /// This and the next: of the newest slice in the sum only.
    in_flight: u64,
    waiting: u64,
    newest: i64,
}

impl Sum {
    fn new() -> Sum {
        Sum {
            parts: 0,
            requests: 0,
            ok: 0,
            latency: coarse(),
            in_flight: 0,
            waiting: 0,
            newest: i64::MIN,
        }
    }

    fn add(&mut self, slice: &Slice) {
        self.parts += 1;
        self.requests += slice.requests;
        self.ok += slice.ok;
        self.latency
            .add(&slice.latency)
            .expect("both have the same bounds");
        if slice.index > self.newest {
            (self.newest, self.in_flight, self.waiting) = (slice.index, 0, 0);
        }
        if slice.index == self.newest {
            self.in_flight += slice.in_flight;
            self.waiting += slice.waiting;
        }
    }

    fn percentile(&self, quantile: f64) -> Option<f64> {
        (!self.latency.is_empty()).then(|| milliseconds(self.latency.value_at_quantile(quantile)))
    }

    fn hdr(&self, is_part: bool) -> Option<String> {
        (is_part && !self.latency.is_empty()).then(|| encode(&self.latency))
    }

    fn second(&self, number: i64, is_part: bool) -> Second {
        Second {
            at_s: number as f64,
            requests: self.requests,
            ok: self.ok,
            errors: self.requests - self.ok,
            in_flight: self.in_flight,
            waiting: self.waiting,
            p50_ms: self.percentile(0.5),
            p99_ms: self.percentile(0.99),
            max_ms: self.percentile(1.0),
            hdr: self.hdr(is_part),
        }
    }
}

/// See the module.
pub struct Progress {
    threads: u64,
    is_part: bool,
    requests: u64,
    ok: u64,
    slices: BTreeMap<i64, Sum>,
    open: BTreeMap<i64, Sum>,
    done: BTreeMap<i64, Second>,
}

impl Progress {
    /// The progress of a load on `threads` threads, or of a part of one.
    pub fn new(threads: u64, is_part: bool) -> Progress {
        let (slices, open, done) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Progress {
            threads,
            is_part,
            requests: 0,
            ok: 0,
            slices,
            open,
            done,
        }
    }

    /// Takes in a slice of one thread.
    pub fn add(&mut self, slice: &Slice) {
        self.slices
            .entry(slice.index)
            .or_insert_with(Sum::new)
            .add(slice);
        // A thread that stands still for 4 s loses its ticks, not its seconds.
        self.slices.retain(|&index, _| index + 16 > slice.index);
        if slice.index < 0 {
            return;
        }
        self.requests += slice.requests;
        self.ok += slice.ok;
        let number = slice.index.div_euclid(SLICES_PER_SECOND);
        let sum = self.open.entry(number).or_insert_with(Sum::new);
        sum.add(slice);
        // A finished second shrinks from a histogram to eight numbers, so a load of a day is held in 6 MB.
        if sum.parts == self.threads * SLICES_PER_SECOND as u64 {
            self.done.insert(number, sum.second(number, self.is_part));
            self.open.remove(&number);
        }
    }

    /// How far the load is. `start`: when measuring begins, none while that is not known.
    pub fn tick(&self, now: Nanos, start: Option<Nanos>, over: bool) -> Tick {
        let complete = self
            .slices
            .values()
            .rev()
            .find(|sum| sum.parts == self.threads);
        Tick {
            event: "tick",
            phase: if over {
                "drain"
            } else if start.is_none_or(|start| now < start) {
                "warmup"
            } else {
                "measure"
            },
            at_s: start.map_or(0.0, |start| (now as f64 - start as f64) / SECOND as f64),
            requests: self.requests,
            ok: self.ok,
            errors: self.requests - self.ok,
            in_flight: complete.map_or(0, |sum| sum.in_flight),
            waiting: complete.map_or(0, |sum| sum.waiting),
            rps: complete.map_or(0.0, |sum| sum.ok as f64 * SECOND as f64 / SLICE as f64),
            p50_ms: complete.and_then(|sum| sum.percentile(0.5)),
            p99_ms: complete.and_then(|sum| sum.percentile(0.99)),
            hdr: complete.and_then(|sum| sum.hdr(self.is_part)),
            last_second: self.last_second(),
        }
    }

    fn last_second(&self) -> LastSecond {
        let complete = self.slices.values().filter(|sum| sum.parts == self.threads);
        let mut whole = Sum::new();
        let mut slices = 0;
        for sum in complete.rev().take(SLICES_PER_SECOND as usize) {
            slices += 1;
            whole.requests += sum.requests;
            whole.ok += sum.ok;
            whole
                .latency
                .add(&sum.latency)
                .expect("both have the same bounds");
        }
        LastSecond {
            seconds: f64::from(slices) / SLICES_PER_SECOND as f64,
            requests: whole.requests,
            ok: whole.ok,
            p50_ms: whole.percentile(0.5),
            p99_ms: whole.percentile(0.99),
            max_ms: whole.percentile(1.0),
            hdr: whole.hdr(self.is_part),
        }
    }

    /// The whole series, in order, the last second perhaps not full.
    pub fn series(mut self) -> Vec<Second> {
        for (number, sum) in &self.open {
            self.done.insert(*number, sum.second(*number, self.is_part));
        }
        self.done.into_values().collect()
    }
}

/// Nanoseconds as milliseconds.
pub fn milliseconds(nanos: Nanos) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(thread: u64, index: i64, ok: u64, latency: Nanos) -> Slice {
        let mut histogram = coarse();
        histogram.saturating_record_n(latency, ok as u32);
        Slice {
            thread,
            index,
            requests: ok + 1,
            ok,
            in_flight: 3,
            waiting: 2,
            latency: histogram,
        }
    }

    #[test]
    fn nothing_is_measured_before_the_beginning_is_known() {
        let progress = Progress::new(1, true);
        let tick = |start| progress.tick(2 * SECOND, start, false);
        assert_eq!((tick(None).phase, tick(None).at_s), ("warmup", 0.0));
        assert_eq!(tick(Some(3 * SECOND)).phase, "warmup");
        assert_eq!(tick(Some(SECOND)).phase, "measure");
    }

    #[test]
    fn a_second_merges_the_histograms_of_all_threads() {
        let mut progress = Progress::new(2, false);
        for index in -2..6 {
            progress.add(&slice(0, index, 3, 1_000_000));
            progress.add(&slice(1, index, 1, 9_000_000));
        }
        let tick = progress.tick(1_600_000_000, Some(100_000_000), false);
        assert_eq!(
            (tick.requests, tick.ok, tick.errors, tick.in_flight),
            (36, 24, 12, 6)
        );
        assert_eq!((tick.at_s, tick.rps), (1.5, 16.0));
        assert_eq!(
            tick.waiting, 4,
            "of both threads, now and not added up over time"
        );
        let last = &tick.last_second;
        assert_eq!((last.seconds, last.requests, last.ok), (1.0, 24, 16));
        assert!((last.max_ms.unwrap() - 9.0).abs() < 0.1, "{last:?}");
        let series = progress.series();
        assert_eq!(series.len(), 2);
        assert_eq!(
            (
                series[0].requests,
                series[0].ok,
                series[0].errors,
                series[0].in_flight
            ),
            (24, 16, 8, 6)
        );
        assert!(
            (series[0].p50_ms.unwrap() - 1.0).abs() < 0.02
                && (series[0].max_ms.unwrap() - 9.0).abs() < 0.1
        );
        assert_eq!(
            (series[1].at_s, series[1].ok),
            (1.0, 8),
            "half a second is shown as what it is"
        );
    }

    #[test]
    fn a_second_without_answers_has_no_latency() {
        let mut progress = Progress::new(1, false);
        progress.add(&Slice {
            thread: 0,
            index: 0,
            requests: 0,
            ok: 0,
            in_flight: 50,
            waiting: 7,
            latency: coarse(),
        });
        let series = progress.series();
        assert_eq!((series[0].p50_ms, series[0].in_flight), (None, 50));
        assert_eq!(series[0].waiting, 7);
    }
}
