//! The result of a load, as schema `velodrome/load/1`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::calls::Plan;
use crate::clock::{MILLISECOND, Nanos, seconds};
use crate::conversation::Conversation;
use crate::durations::{Durations, encode};
use crate::outcome::{Outcome, Outcomes};
use crate::pace::{Spread, Step};
use crate::progress::{Second, milliseconds};
use crate::punctual::Class;
use crate::record;
use crate::record::{Fairness, Record, Share, Sockets};
use crate::requests::{Request, Requests};
use crate::spec::CallKind;
use crate::spec::{LoadSpec, Mode, StepSpec, TransportChoice};
use crate::target::{Target, What};
use crate::transport::RoomCounts;

#[derive(Debug, Serialize)]
struct Latency {
    due: Percentiles,
    sent: Percentiles,
}

impl Latency {
    fn of(form: Form, due: &Durations, sent: &Durations) -> Latency {
        Latency {
            due: form(due),
            sent: form(sent),
        }
    }
}

/// How many requests came to each end, by its name.
fn outcomes(counts: &Outcomes) -> BTreeMap<&'static str, u64> {
    Outcome::ALL
        .iter()
        .map(|&outcome| (outcome.name(), counts.of(outcome)))
        .collect()
}

#[derive(Debug, Serialize)]
struct ConnectionCounts {
    asked: u64,
    opened: u64,
    reopened: u64,
    answered: u64,
}

/// Of a closed loop: how evenly right answers within the span came to connections.
#[derive(Debug, Serialize)]
struct Evenness {
    connections: u64,
    /// Of all connections together, of the one with the fewest and of the one with the most.
    answers: u64,
    least: u64,
    most: u64,
    /// Over the whole span, and over windows of it.
    jain: Option<f64>,
    jain_short_term: Option<f64>,
    /// From due to done: the mean over answers, and the median over connections of each one's mean.
    mean_ms: Option<f64>,
    median_connection_ms: Option<f64>,
}

impl Evenness {
    fn of(fairness: &Fairness) -> Evenness {
        let in_ms = |nanos: f64| nanos / MILLISECOND as f64;
        Evenness {
            connections: fairness.connections(),
            answers: fairness.shares().sum(),
            least: fairness.shares().min().unwrap_or(0),
            most: fairness.shares().max().unwrap_or(0),
            jain: fairness.index(),
            jain_short_term: fairness.short_term(),
            mean_ms: fairness.mean().map(in_ms),
            median_connection_ms: fairness.median().map(in_ms),
        }
    }
}

/// Requests that connections can carry at once.
#[derive(Debug, Serialize)]
struct StreamCounts {
    /// By all connections together.
    asked: u64,
    /// Of those, never begun: the server allows no more on a connection.
    without_room: u64,
}

/// Of messages to a room: each member's getting one.
#[derive(Debug, Serialize)]
struct Deliveries {
    count: u64,
    latency_ms: Latency,
    #[serde(flatten)]
    beside: RoomCounts,
}

impl Deliveries {
    fn of(form: Form, record: &Record) -> Option<Deliveries> {
        let beside = record.room?;
        let empty = record::Deliveries::default();
        let times = record.deliveries.as_deref().unwrap_or(&empty);
        Some(Deliveries {
            count: times.due.histogram.len(),
            latency_ms: Latency::of(form, &times.due, &times.sent),
            beside,
        })
    }
}

#[derive(Debug, Serialize)]
struct Generator {
    cpu_s: f64,
    cpu_user_s: f64,
    cpu_sys_s: f64,
    #[serde(flatten)]
    transport: Transport,
    /// How long its threads waited for a CPU; None: the kernel does not tell.
    run_queue_s: Option<f64>,
    /// How its threads stood with the scheduler: the least of them.
    priority: Class,
    /// Of `cpu_s`, what went into waiting awake for requests about to be due.
    awake_s: f64,
    saturated: bool,
    threads: u64,
    debug: bool,
}

#[derive(Debug, Serialize)]
struct Hdr {
    due: String,
    sent: String,
    /// Of deliveries, from when their messages were due.
    deliveries: Option<String>,
    /// None: there is none in a closed loop.
    lag: Option<String>,
    #[serde(flatten)]
    phases: Told<String>,
}

#[derive(Debug, Serialize)]
struct Load {
    model: &'static str,
    /// Of a schedule the average.
    rate: Option<f64>,
    schedule: Vec<StepSpec>,
    arrivals: Option<Spread>,
    connections: u64,
    /// On each connection.
    streams: u64,
    protocol: &'static str,
    /// Of WebSockets: what is measured, bytes of each message, and messages of a room on their way at once.
    mode: Option<Mode>,
    message_bytes: Option<u64>,
    at_once: Option<u64>,
    /// Of gRPC: the path of the call, and who sends several messages.
    call: Option<String>,
    kind: Option<CallKind>,
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
    first_message_ms: Option<Latency>,
    deliveries: Option<Deliveries>,
    lag_ms: Percentiles,
    phases_ms: Told<Percentiles>,
    fastest_ms: Option<f64>,
    connections: ConnectionCounts,
    fairness: Option<Evenness>,
    streams: StreamCounts,
    mean_in_flight: Option<f64>,
    answered_before_read: u64,
    resent: u64,
    generator: Generator,
    sockets: Sockets,
    flags: Vec<&'static str>,
    series: Vec<Second>,
    /// Of a schedule.
    steps: Vec<StepResult>,
    /// Of several requests.
    by_request: Vec<RequestResult>,
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
/// Short-term index of fairness below which the median request is not what the median connection waits: as uneven as if
/// half of the connections got all the answers. Chance alone leaves 0.89 (see [`crate::record::Fairness`]), and workers
/// that hold ten connections each by chance 0.9. A gevent server under 64 connections had 0.22 to 0.40 in eight of nine
/// spans and 0.55 in one (0.79 to 0.94 over the whole span): half of the requests took 0.13 ms, and the median connection
/// waited 12 to 26 ms for each.
const UNFAIR: f64 = 0.5;

impl LoadResult {
    /// Writes down what all threads recorded together.
    pub fn new(
        spec: &LoadSpec,
        target: &Target,
        mut record: Record,
        series: Vec<Second>,
    ) -> LoadResult {
        let span = record.span.end.saturating_sub(record.span.start);
        let duration_s = seconds(span);
        let requests = record.outcomes.total();
        // A part's own figures are only of use when they can be added to the others'.
        let form: Form = match spec.part {
            Some(_) => Percentiles::with_histogram,
            None => Percentiles::of,
        };
        let due = form(&record.due);
        let lag_ms = form(&record.lag);
        let share = seconds(record.cpu.total()) / (duration_s * spec.threads as f64).max(1e-9);
        let said = target.conversation();
        let phases = Phases::of(&record);
        let flags = flags(spec, &record, &due, &lag_ms, share);
        LoadResult {
            schema: "velodrome/load/1",
            requests,
            ok: record.outcomes.of(Outcome::Ok),
            duration_s,
            throughput_rps: record.ok_in_span as f64 / duration_s.max(1e-9),
            outcomes: outcomes(&record.outcomes),
            latency_ms: Latency {
                due,
                sent: form(&record.sent),
            },
            first_message_ms: record
                .first
                .as_ref()
                .map(|first| Latency::of(form, &first.due, &first.sent)),
            deliveries: Deliveries::of(form, &record),
            lag_ms,
            phases_ms: phases.told(form),
            fastest_ms: Some(record.fastest)
                .filter(|&fastest| fastest != Nanos::MAX)
                .map(milliseconds),
            connections: ConnectionCounts {
                asked: spec.connections,
                opened: record.connections.opened,
                reopened: record.connections.reopened,
                answered: record.connections.answered,
            },
            fairness: record.fairness.as_deref().map(Evenness::of),
            streams: StreamCounts {
                asked: spec.connections * spec.streams,
                without_room: record.parked,
            },
            mean_in_flight: (span > 0).then(|| record.flight_time() as f64 / span as f64),
            answered_before_read: record.answered_early,
            resent: record.resent,
            generator: Generator {
                cpu_s: seconds(record.cpu.total()),
                cpu_user_s: seconds(record.cpu.user),
                cpu_sys_s: seconds(record.cpu.system),
                transport: Transport::of(spec, target, &record),
                run_queue_s: record.queued.map(seconds),
                priority: record.class,
                awake_s: seconds(record.awake),
                saturated: flags.contains(&"generator-saturated"),
                threads: spec.threads,
                debug: cfg!(debug_assertions),
            },
            sockets: record.sockets,
            flags,
            series,
            steps: StepResult::all(form, spec, &record),
            by_request: RequestResult::all(form, target.requests(), &record),
            hdr: Hdr {
                due: encode(&record.due.histogram),
                sent: encode(&record.sent.histogram),
                deliveries: record
                    .deliveries
                    .as_deref()
                    .map(|times| encode(&times.due.histogram)),
                lag: (!record.lag.histogram.is_empty()).then(|| encode(&record.lag.histogram)),
                phases: phases.told(|durations| encode(&durations.histogram)),
            },
            load: Load {
                model: spec.model(),
                rate: spec.mean_rate(),
                schedule: spec.schedule.clone(),
                arrivals: spec.is_open().then_some(spec.arrivals),
                connections: spec.connections,
                streams: spec.streams,
                protocol: target.protocol(),
                mode: said.map(|said| said.mode),
                message_bytes: said.and_then(Conversation::message_bytes),
                at_once: said
                    .filter(|said| said.mode == Mode::Broadcast)
                    .map(|said| said.at_once),
                call: target.plan().map(|plan| plan.path().to_owned()),
                kind: target.plan().map(Plan::kind),
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
    let capped = spec.is_open() && record.capped as f64 > requests as f64 * CAPPED;
    let unfair = record
        .fairness
        .as_deref()
        .and_then(Fairness::short_term)
        .is_some_and(|index| index < UNFAIR);
    // The 99th is the highest percentile that is always shown.
    let short = record.due.histogram.len() < 100 * BEYOND;
    [
        (cpu_share > SATURATED, "generator-saturated"),
        (lagged, "generator-lagged"),
        (capped, "capped-by-connections"),
        (record.parked > 0, "streams-without-room"),
        (unfair, "unfair"),
        (short, "too-short"),
        (cfg!(debug_assertions), "debug-build"),
    ]
    .into_iter()
    .filter_map(|(raised, name)| raised.then_some(name))
    .collect()
}

/// See the module; the fields are described in `docs/results.md`.
#[derive(Debug, Serialize)]
pub struct RequestResult {
    name: String,
    method: String,
    weight: f64,
    /// Of it that were sent.
    requests: u64,
    ok: u64,
    outcomes: BTreeMap<&'static str, u64>,
    latency_ms: Latency,
}

impl RequestResult {
    /// All of them, in their order; none where there is only one.
    pub fn all(form: Form, requests: Option<&Requests>, record: &Record) -> Vec<RequestResult> {
        let Some(requests) = requests else {
            return Vec::new();
        };
        let whole: f64 = requests.all.iter().map(|request| request.weight).sum();
        let each = requests.all.iter().zip(&record.by_request);
        each.map(|(asked, came)| RequestResult::of(form, asked, came, whole))
            .collect()
    }

    fn of(form: Form, asked: &Request, came: &Share, whole: f64) -> RequestResult {
        RequestResult {
            name: asked.name.clone(),
            method: asked.method.clone(),
            weight: asked.weight / whole,
            requests: came.outcomes.total(),
            ok: came.outcomes.of(Outcome::Ok),
            outcomes: outcomes(&came.outcomes),
            latency_ms: Latency::of(form, &came.due, &came.sent),
        }
    }
}

/// Histograms of the phases; None: not had.
pub struct Phases {
    connect: Option<Durations>,
    tls: Option<Durations>,
    first_byte: Option<Durations>,
    last_byte: Option<Durations>,
}

/// In whatever form they are told.
#[derive(Debug, Serialize)]
pub struct Told<T> {
    /// Until TCP stood, of every connection of the run.
    connect: Option<T>,
    /// From there until TLS stood.
    tls: Option<T>,
    /// From sent to the first byte of the answer, of measured requests.
    first_byte: Option<T>,
    /// From the first byte to the last.
    last_byte: Option<T>,
}

impl Phases {
    /// Those of a whole load.
    pub fn of(record: &Record) -> Phases {
        let pieces = record.pieces.as_deref();
        let none = crate::record::Pieces::default();
        let pieces = pieces.unwrap_or(&none);
        Phases {
            connect: had(record.standing.connect.clone()),
            tls: had(record.standing.tls.clone()),
            first_byte: had(Some(pieces.first_byte(&record.sent))),
            last_byte: had(Some(pieces.last_byte(&record.sent))),
        }
    }

    /// In another form.
    pub fn told<T>(&self, form: impl Fn(&Durations) -> T) -> Told<T> {
        let form = |durations: &Option<Durations>| durations.as_ref().map(&form);
        Told {
            connect: form(&self.connect),
            tls: form(&self.tls),
            first_byte: form(&self.first_byte),
            last_byte: form(&self.last_byte),
        }
    }
}

fn had(durations: Option<Durations>) -> Option<Durations> {
    durations.filter(|durations| !durations.histogram.is_empty())
}

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
    pub fn all(form: Form, spec: &LoadSpec, record: &Record) -> Vec<StepResult> {
        let span = record.span.end.saturating_sub(record.span.start);
        let mut at = 0;
        let mut found = Vec::new();
        for (asked, came) in spec.steps().iter().zip(record.steps.each()) {
            if at >= span {
                break;
            }
            found.push(StepResult::of(form, asked, came, at, span));
            at += asked.length;
        }
        found
    }

    fn of(form: Form, asked: &Step, came: &record::Step, at: Nanos, span: Nanos) -> StepResult {
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
            latency_ms: Latency::of(form, &share.due, &share.sent),
            lag_ms: form(&came.lag),
        }
    }
}

/// See the module.
#[derive(Debug, Serialize)]
struct Transport {
    transport: &'static str,
    transport_because: Because,
    /// Bytes nobody has to look at, of an average answer, when they made the load change its transport; None: it did not.
    unread_bytes: Option<u64>,
    /// Answers whose bodies the kernel dropped: only their length was seen.
    dropped_bodies: u64,
    /// Every how many-th body was compared whole with the right one, of requests that have one; None: none is known.
    compared_every: Option<u64>,
}

/// Why it is this transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Because {
    /// It was asked for by name.
    Asked,
    /// A ring cannot wait for a unix socket whose listen queue is full.
    UnixSocket,
    /// Requests come one by one: there are no batches for io_uring to make.
    OpenLoop,
    /// Answers have much that nobody looks at, which the kernel can drop over epoll.
    LargeAnswers,
    /// Requests follow answers, in batches.
    ClosedLoop,
    /// This system has no io_uring, or forbids it.
    NoIoUring,
}

impl Transport {
    fn of(spec: &LoadSpec, target: &Target, record: &Record) -> Transport {
        Transport {
            transport: record.transport,
            transport_because: because(spec, target, record),
            unread_bytes: record.changed_for,
            dropped_bodies: record.dropped_bodies,
            compared_every: compared_every(spec, target),
        }
    }
}

fn because(spec: &LoadSpec, target: &Target, record: &Record) -> Because {
    match spec.transport {
        TransportChoice::Epoll => Because::Asked,
        _ if target.endpoint.is_unix() => Because::UnixSocket,
        TransportChoice::IoUring => Because::Asked,
        TransportChoice::Auto if spec.is_open() => Because::OpenLoop,
        TransportChoice::Auto if record.changed_for.is_some() => Because::LargeAnswers,
        TransportChoice::Auto if record.transport == "io_uring" => Because::ClosedLoop,
        TransportChoice::Auto => Because::NoIoUring,
    }
}

/// Of answers over HTTP/1.1.
fn compared_every(spec: &LoadSpec, target: &Target) -> Option<u64> {
    let What::Http(requests) = &target.what else {
        return None;
    };
    let mut right = requests
        .all
        .iter()
        .filter_map(|request| request.right.body.as_ref());
    match requests.plain() {
        Some(_) => right.next().map(|body| spec.compares_every(body.len())),
        None => right.next().map(|_| spec.compares_every(0)),
    }
}

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
    /// Of a part of a load: the histogram they are read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdr: Option<String>,
}

/// How percentiles are told.
pub type Form = fn(&Durations) -> Percentiles;

/// How many samples must lie beyond a percentile before it is believed.
pub const BEYOND: u64 = 10;

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
            hdr: None,
        }
    }

    /// The same, with the histogram.
    pub fn with_histogram(durations: &Durations) -> Percentiles {
        Percentiles {
            hdr: (!durations.histogram.is_empty()).then(|| encode(&durations.histogram)),
            ..Percentiles::of(durations)
        }
    }
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
