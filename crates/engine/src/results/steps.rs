//! The steps of a schedule, each told by itself.

use std::collections::BTreeMap;

use serde::Serialize;

use super::percentiles::Percentiles;
use super::{Latency, outcomes};
use crate::clock::{Nanos, seconds};
use crate::outcome::Outcome;
use crate::pace::Step;
use crate::record::{self, Record};
use crate::spec::LoadSpec;

/// See the module; the fields are described in `docs/results.md`.
#[derive(Debug, Serialize)]
pub struct StepResult {
    at_s: f64,
    duration_s: f64,
    rate: f64,
    to_rate: f64,
    /// Of the requests that fell due in it.
    requests: u64,
    ok: u64,
    /// Right answers that arrived in it, per second.
    throughput_rps: f64,
    outcomes: BTreeMap<&'static str, u64>,
    latency_ms: Latency,
    lag_ms: Percentiles,
}

impl StepResult {
    /// All steps that began before the load ended.
    pub fn all(spec: &LoadSpec, record: &Record) -> Vec<StepResult> {
        let span = record.span.end.saturating_sub(record.span.start);
        let mut at = 0;
        let mut found = Vec::new();
        for (asked, came) in spec.steps().iter().zip(record.steps.each()) {
            if at >= span {
                break;
            }
            found.push(StepResult::of(asked, came, at, span));
            at += asked.length;
        }
        found
    }

    fn of(asked: &Step, came: &record::Step, at: Nanos, span: Nanos) -> StepResult {
        // Somebody may have ended the load in the middle of it.
        let length = asked.length.min(span - at);
        let share = &came.share;
        StepResult {
            at_s: seconds(at),
            duration_s: seconds(length),
            rate: asked.from,
            to_rate: asked.rate_at(length),
            requests: share.outcomes.total(),
            ok: share.outcomes.of(Outcome::Ok),
            throughput_rps: came.answered as f64 / seconds(length),
            outcomes: outcomes(&share.outcomes),
            latency_ms: Latency::of(&share.due, &share.sent),
            lag_ms: Percentiles::of(&came.lag),
        }
    }
}
