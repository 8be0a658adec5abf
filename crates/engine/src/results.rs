//! The result of a load, as schema `velodrome/load/1`.

mod percentiles;
mod phases;
mod requests;
mod steps;
mod transport;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::calls::Plan;
use crate::clock::{Nanos, seconds};
use crate::conversation::Conversation;
use crate::durations::Durations;
use crate::outcome::{Outcome, Outcomes};
use crate::pace::Spread;
use crate::progress::{Second, milliseconds};
use crate::protocol::grpc::Kind;
use crate::record::{self, Record, RoomCounts, Sockets};
use crate::spec::{LoadSpec, Mode, StepSpec};
use crate::target::Target;
use crate::transport::priority::Class;
use percentiles::BEYOND;
pub use percentiles::Percentiles;
use phases::{Phases, Told};
use requests::RequestResult;
use steps::StepResult;
use transport::Transport;

#[derive(Debug, Serialize)]
struct Latency {
    due: Percentiles,
    sent: Percentiles,
}

impl Latency {
    fn of(due: &Durations, sent: &Durations) -> Latency {
        Latency {
            due: Percentiles::of(due),
            sent: Percentiles::of(sent),
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
    fn of(record: &Record) -> Option<Deliveries> {
        let beside = record.room?;
        let empty = record::Deliveries::default();
        let times = record.deliveries.as_deref().unwrap_or(&empty);
        Some(Deliveries {
            count: times.due.histogram.len(),
            latency_ms: Latency::of(&times.due, &times.sent),
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
    kind: Option<Kind>,
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
        let due = Percentiles::of(&record.due);
        let lag_ms = Percentiles::of(&record.lag);
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
                sent: Percentiles::of(&record.sent),
            },
            first_message_ms: record
                .first
                .as_ref()
                .map(|first| Latency::of(&first.due, &first.sent)),
            deliveries: Deliveries::of(&record),
            lag_ms,
            phases_ms: phases.percentiles(),
            fastest_ms: Some(record.fastest)
                .filter(|&fastest| fastest != Nanos::MAX)
                .map(milliseconds),
            connections: ConnectionCounts {
                asked: spec.connections,
                opened: record.connections.opened,
                reopened: record.connections.reopened,
                answered: record.connections.answered,
            },
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
            steps: StepResult::all(spec, &record),
            by_request: RequestResult::all(target.requests(), &record),
            hdr: Hdr {
                due: encode(&record.due),
                sent: encode(&record.sent),
                deliveries: record.deliveries.as_deref().map(|times| encode(&times.due)),
                lag: (!record.lag.histogram.is_empty()).then(|| encode(&record.lag)),
                phases: phases.told(encode),
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
    // The 99th is the highest percentile that is always shown.
    let short = record.due.histogram.len() < 100 * BEYOND;
    [
        (cpu_share > SATURATED, "generator-saturated"),
        (lagged, "generator-lagged"),
        (capped, "capped-by-connections"),
        (record.parked > 0, "streams-without-room"),
        (short, "too-short"),
        (cfg!(debug_assertions), "debug-build"),
    ]
    .into_iter()
    .filter_map(|(raised, name)| raised.then_some(name))
    .collect()
}

/// HdrHistogram's own exchange format: V2, deflated, base64.
pub(crate) fn encode(durations: &Durations) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&durations.histogram, &mut bytes)
        .expect("a histogram of these bounds fits the format, and a Vec takes every byte");
    STANDARD.encode(bytes)
}
