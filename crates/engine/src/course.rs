//! What the threads of a load share: when it begins, when it ends, whether it is to stop.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::{Clock, Nanos};

/// What all workers of a load share: when it begins and whether it is to stop. Read once per wake-up, hardly written.
#[derive(Debug)]
pub struct Course {
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// Length of the measured span; None where a count ends it.
    pub span: Option<Nanos>,
    /// How long requests are waited for after the span.
    pub drain: Nanos,
    /// Set to end the load early.
    pub stop: AtomicBool,
    /// Connections open when the timeline began.
    pub opened: AtomicU64,
    origin: AtomicU64,
    /// When the last worker's span ended before its time or by its count; 0: not.
    pub(crate) ended: AtomicU64,
    failed: AtomicBool,
    line: Barrier,
}

impl Course {
    /// The course of `workers` workers.
    pub fn new(warmup: Nanos, span: Option<Nanos>, drain: Nanos, workers: usize) -> Course {
        Course {
            warmup,
            span,
            drain,
            stop: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            origin: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            line: Barrier::new(workers),
        }
    }

    /// Waits until all workers are here. Returns when the timeline began, or None if one of them cannot run.
    pub fn line_up(&self, clock: &impl Clock, able: bool) -> Option<Nanos> {
        if !able {
            self.failed.store(true, Ordering::SeqCst);
        }
        if self.line.wait().is_leader() {
            // 0 means «not yet» to `origin`.
            self.origin.store(clock.now().max(1), Ordering::SeqCst);
        }
        self.line.wait();
        (!self.failed.load(Ordering::SeqCst)).then(|| self.origin.load(Ordering::SeqCst))
    }

    /// When a span that began at `start` ends; None: it is not known yet.
    pub fn end(&self, start: Nanos) -> Option<Nanos> {
        let stopped = Some(self.ended.load(Ordering::SeqCst)).filter(|&end| end > 0);
        stopped.or(self.span.map(|span| start + span))
    }

    /// When the timeline began; None: it has not.
    pub fn origin(&self) -> Option<Nanos> {
        Some(self.origin.load(Ordering::SeqCst)).filter(|&origin| origin > 0)
    }
}
