//! The result of a load, as schema `velodrome/load/1`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::clock::{MILLISECOND, seconds};
use crate::durations::Durations;
use crate::outcome::Outcome;
use crate::pace::Spread;
use crate::progress::{Second, milliseconds};
use crate::record::Record;
use crate::spec::LoadSpec;

/// Milliseconds; None where too few requests, or none, say anything.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 75th percentile.
    pub p75: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile; None below 10 000 requests, of which fewer than 10 would lie beyond it.
    #[serde(rename = "p99.9")]
    pub p99_9: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// How many samples must lie beyond a percentile before it is believed.
const BEYOND: u64 = 10;

impl Percentiles {
    /// Reads them from a histogram.
    pub fn of(durations: &Durations) -> Percentiles {
        let histogram = &durations.histogram;
        if histogram.is_empty() {
            return Percentiles::default();
        }
        let at = |quantile| {
            Some(milliseconds(
                histogram.value_at_quantile(quantile).min(durations.max),
            ))
        };
        Percentiles {
            mean: Some(histogram.mean() / MILLISECOND as f64),
            p50: at(0.5),
            p75: at(0.75),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            p99_9: if histogram.len() >= 1_000 * BEYOND {
                at(0.999)
            } else {
                None
            },
            max: Some(milliseconds(durations.max)),
        }
    }
}

#[derive(Debug, Serialize)]
struct Latency {
    due: Percentiles,
    sent: Percentiles,
}

#[derive(Debug, Serialize)]
struct ConnectionCounts {
    asked: u64,
    opened: u64,
    reopened: u64,
    answered: u64,
}

#[derive(Debug, Serialize)]
struct Generator {
    cpu_s: f64,
    cpu_user_s: f64,
    cpu_sys_s: f64,
    transport: &'static str,
    saturated: bool,
    threads: u64,
    debug: bool,
}

#[derive(Debug, Serialize)]
struct Hdr {
    due: String,
    sent: String,
}

#[derive(Debug, Serialize)]
struct Load {
    model: &'static str,
    rate: Option<f64>,
    arrivals: Option<Spread>,
    connections: u64,
}

#[derive(Debug, Serialize)]
struct Example {
    outcome: Outcome,
    text: String,
}

/// See the module; the fields are described in `docs/results.md`.
#[derive(Debug, Serialize)]
pub struct LoadResult {
    schema: &'static str,
    requests: u64,
    ok: u64,
    duration_s: f64,
    throughput_rps: f64,
    outcomes: BTreeMap<&'static str, u64>,
    latency_ms: Latency,
    lag_ms: Percentiles,
    connections: ConnectionCounts,
    mean_in_flight: Option<f64>,
    answered_before_read: u64,
    generator: Generator,
    flags: Vec<&'static str>,
    series: Vec<Second>,
    hdr: Hdr,
    load: Load,
    examples: Vec<Example>,
}

/// Above this share of its threads' time the generator may have been the limit.
const SATURATED: f64 = 0.9;
/// An open loop whose 99th percentile of lag is above this, and above a tenth of the median latency, was late itself.
const LAG_MS: f64 = 1.0;
/// Open loop: requests that met the cap on connections, as a share of all.
const CAPPED: f64 = 0.01;

impl LoadResult {
    /// Writes down what all threads recorded together.
    pub fn new(
        spec: &LoadSpec,
        mut record: Record,
        series: Vec<Second>,
        transport: &'static str,
    ) -> LoadResult {
        let span = record.span.end.saturating_sub(record.span.start);
        let duration_s = seconds(span);
        let requests = record.outcomes.total();
        let due = Percentiles::of(&record.due);
        let lag_ms = Percentiles::of(&record.lag);
        let share = seconds(record.cpu.total()) / (duration_s * spec.threads as f64).max(1e-9);
        let flags = flags(spec, &record, &due, &lag_ms, share);
        LoadResult {
            schema: "velodrome/load/1",
            requests,
            ok: record.outcomes.of(Outcome::Ok),
            duration_s,
            throughput_rps: record.ok_in_span as f64 / duration_s.max(1e-9),
            outcomes: Outcome::ALL
                .iter()
                .map(|&outcome| (outcome.name(), record.outcomes.of(outcome)))
                .collect(),
            latency_ms: Latency {
                due,
                sent: Percentiles::of(&record.sent),
            },
            lag_ms,
            connections: ConnectionCounts {
                asked: spec.connections,
                opened: record.connections.opened,
                reopened: record.connections.reopened,
                answered: record.connections.answered,
            },
            mean_in_flight: (span > 0).then(|| record.flight_time as f64 / span as f64),
            answered_before_read: record.answered_early,
            generator: Generator {
                cpu_s: seconds(record.cpu.total()),
                cpu_user_s: seconds(record.cpu.user),
                cpu_sys_s: seconds(record.cpu.system),
                transport,
                saturated: flags.contains(&"generator-saturated"),
                threads: spec.threads,
                debug: cfg!(debug_assertions),
            },
            flags,
            series,
            hdr: Hdr {
                due: encode(&record.due),
                sent: encode(&record.sent),
            },
            load: Load {
                model: spec.model(),
                rate: spec.rate,
                arrivals: spec.rate.map(|_| spec.arrivals),
                connections: spec.connections,
            },
            examples: std::mem::take(&mut record.examples)
                .into_iter()
                .map(|(outcome, text)| Example { outcome, text })
                .collect(),
        }
    }
}

fn flags(
    spec: &LoadSpec,
    record: &Record,
    due: &Percentiles,
    lag: &Percentiles,
    cpu_share: f64,
) -> Vec<&'static str> {
    let requests = record.outcomes.total();
    let lagged = lag.p99.unwrap_or(0.0) > LAG_MS.max(due.p50.unwrap_or(0.0) / 10.0);
    let capped = spec.rate.is_some() && record.capped as f64 > requests as f64 * CAPPED;
    // The 99th is the highest percentile that is always shown.
    let short = record.due.histogram.len() < 100 * BEYOND;
    [
        (cpu_share > SATURATED, "generator-saturated"),
        (lagged, "generator-lagged"),
        (capped, "capped-by-connections"),
        (short, "too-short"),
        (cfg!(debug_assertions), "debug-build"),
    ]
    .into_iter()
    .filter_map(|(raised, name)| raised.then_some(name))
    .collect()
}

/// HdrHistogram's own exchange format: V2, deflated, base64.
fn encode(durations: &Durations) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&durations.histogram, &mut bytes)
        .expect("a histogram of these bounds fits the format, and a Vec takes every byte");
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let mut durations = Durations::default();
        assert_eq!(
            Percentiles::of(&durations),
            Percentiles::default(),
            "nothing measured is null, not 0"
        );
        for n in 1..=9_999u64 {
            durations.record(n * 1_000);
        }
        assert_eq!(Percentiles::of(&durations).p99_9, None);
        durations.record(10_000_000);
        let full = Percentiles::of(&durations);
        assert!((full.p99_9.unwrap() - 9.99).abs() < 0.01, "{full:?}");
        assert!(
            (full.p50.unwrap() - 5.0).abs() < 0.005 && (full.mean.unwrap() - 5.0).abs() < 0.005,
            "{full:?}"
        );
        assert_eq!(full.max, Some(10.0));
    }
}
