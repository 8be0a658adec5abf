//! What a load is asked to be: read from JSON, checked, and never wrong after that.

mod check;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::clock::{Nanos, nanos, seconds};
use crate::pace::{Schedule, Spread, Step};
use crate::spec::check::{check_fields, check_method, check_rate, fault, time, whole};

/// Raised when a load cannot be run as asked: one sentence that says what is wrong.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SpecError(pub String);

/// Which transport carries the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportChoice {
    /// The fastest that this system allows.
    #[default]
    Auto,
    /// io_uring or an error.
    IoUring,
    /// epoll (the fallback transport where there is no epoll).
    Epoll,
}

/// The whole load as its JSON spells it; every field but `url` has a default.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// `http://host:port/path?query`, `grpc://host:port/package.Service/Method`, or `https`, `grpcs`.
    pub url: String,
    /// Connections at most (open loop), or exactly (closed loop).
    #[serde(default = "fifty")]
    pub connections: u64,
    /// `connections` may be fewer, where the limit of open files allows no more.
    #[serde(default)]
    pub fewer_connections: bool,
    /// Requests that each connection carries at once; more than 1 over HTTP/2 only.
    #[serde(default = "one")]
    pub streams: u64,
    /// Worker threads; connections and requests are dealt among them.
    #[serde(default = "one")]
    pub threads: u64,
    /// Length of the measured span. This or `requests`; none of both: that of the schedule.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// How many measured requests. This or `duration_s`.
    #[serde(default)]
    pub requests: Option<u64>,
    /// Load before the measured span, recorded nowhere.
    #[serde(default)]
    pub warmup_s: f64,
    /// Requests per second of an open loop; none: closed loop.
    #[serde(default)]
    pub rate: Option<f64>,
    /// An open loop whose rate changes; the last rate goes on as long as the load does.
    #[serde(default)]
    pub schedule: Vec<StepSpec>,
    /// How an open loop's arrivals are spread.
    #[serde(default)]
    pub arrivals: Spread,
    /// Draws Poisson arrivals.
    #[serde(default = "one")]
    pub seed: u64,
    /// Whether connections serve more than one request.
    #[serde(default = "yes")]
    pub keepalive: bool,
    /// Method of every request.
    #[serde(default = "get")]
    pub method: String,
    /// Further header fields.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// A request unanswered this long after it was sent has failed.
    #[serde(default = "ten")]
    pub timeout_s: f64,
    /// How long requests are waited for after the span.
    #[serde(default = "two")]
    pub drain_s: f64,
    /// The right status; none: any 2xx.
    #[serde(default)]
    pub expect_status: Option<u16>,
    /// What the right body has in it, anywhere.
    #[serde(default)]
    pub expect_contains: Option<String>,
    /// Several requests by weight, instead of one.
    #[serde(default)]
    pub mix: Vec<RequestSpec>,
    /// Paths, header values and bodies are templates.
    #[serde(default)]
    pub template: bool,
    /// Every n-th body is compared whole; lengths always are. None: see [`LoadSpec::compares_every`].
    #[serde(default)]
    pub check_every: Option<u64>,
    /// The call, of a gRPC load.
    #[serde(default)]
    pub grpc: Option<CallSpec>,
    /// How WebSockets are loaded.
    #[serde(default)]
    pub websocket: Option<WebSocketSpec>,
    /// Each connection keeps the cookies that the server sets, and tells them again.
    #[serde(default)]
    pub cookies: bool,
    /// HTTP/2 instead of HTTP/1.1: without asking over http, by ALPN over https.
    #[serde(default)]
    pub http2: bool,
    /// Accept any certificate.
    #[serde(default)]
    pub insecure: bool,
    /// File with certificates of authorities to trust; none: those the system trusts.
    #[serde(default)]
    pub cacert: Option<std::path::PathBuf>,
    /// What else is to be said of TLS.
    #[serde(default)]
    pub tls: TlsSpec,
    /// See [`TransportChoice`].
    #[serde(default)]
    pub transport: TransportChoice,
    /// Connect to this socket in the file system instead of to the URL's host.
    #[serde(default)]
    pub unix: Option<std::path::PathBuf>,
    /// Connect elsewhere than the URL says: `HOST:PORT:ADDRESS:PORT`, the first that is about it.
    #[serde(default)]
    pub connect_to: Vec<String>,
    /// Hosts that may be loaded although they are not loopback.
    #[serde(default)]
    pub allow_target: Vec<String>,
    /// How many failures are kept as text.
    #[serde(default = "five")]
    pub max_examples: usize,
    /// This is one part of several that make one load; none: it is the whole. See [`PartSpec`].
    #[serde(default)]
    pub part: Option<PartSpec>,
}

/// One part of a load that several engines carry together: of its requests each `of`-th, from `number` on.
///
/// Rate, schedule, count and seed are those of the whole load; threads and connections are the part's own. A part gets
/// ready, and begins at the moment that it hears then ([`crate::engine::run_part`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartSpec {
    /// From 0.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

/// More are no load, but a mistake.
const MOST_PARTS: u64 = 100_000;

impl PartSpec {
    fn check(&self, load: &LoadSpec) -> Result<(), SpecError> {
        whole("part: of", self.of, 1, MOST_PARTS)?;
        whole("part: number", self.number, 0, self.of - 1)?;
        let room = load.websocket.as_ref();
        if self.of > 1 && room.is_some_and(|said| said.mode == Mode::Broadcast) {
            return fault(
                "part: the members of a room are heard by one engine; load a room from one machine",
            );
        }
        Ok(())
    }
}

/// Which requests of a load one thread has: `first`, `first + step`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Number of its first request.
    pub first: u64,
    /// Lanes of the whole load.
    pub step: u64,
}

/// Below, a comparison costs next to nothing beside the copying.
const LARGE_BODY: usize = 64 * 1024;

fn one() -> u64 {
    1
}
fn two() -> f64 {
    2.0
}
fn five() -> usize {
    5
}
fn ten() -> f64 {
    10.0
}
fn fifty() -> u64 {
    50
}
fn yes() -> bool {
    true
}
fn get() -> String {
    "GET".into()
}

/// When a load ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After this long.
    Span(Nanos),
    /// After this many measured requests.
    Requests(u64),
}

impl LoadSpec {
    /// Reads and checks a spec. Every fault is one sentence.
    pub fn from_json(text: &str) -> Result<LoadSpec, SpecError> {
        let mut spec: LoadSpec = serde_json::from_str(text)
            .map_err(|error| SpecError(format!("the load cannot be read: {error}")))?;
        spec.check()?;
        if spec.websocket.as_ref().map(|asked| asked.mode) == Some(Mode::Connect) {
            // Each request is a connection of its own.
            spec.keepalive = false;
        }
        Ok(spec)
    }

    /// When the load ends. Only one of the two fields is set once `check` has passed.
    pub fn length(&self) -> Length {
        match (self.duration_s, self.requests) {
            (Some(duration), _) => Length::Span(nanos(duration)),
            (None, Some(requests)) => Length::Requests(requests),
            (None, None) => Length::Span(self.steps().iter().map(|step| step.length).sum()),
        }
    }

    /// Every how many-th body is compared whole, where the right one has so many bytes. A large one is compared now and
    /// then unless asked for: to read all of them would cost most of what the generator has, and the server's share.
    pub fn compares_every(&self, right: usize) -> u64 {
        let usual = if right < LARGE_BODY { 1 } else { 100 };
        self.check_every.unwrap_or(usual)
    }

    /// `open` or `closed`.
    pub fn model(&self) -> &'static str {
        if self.is_open() { "open" } else { "closed" }
    }
}

#[cfg(test)]
mod tests;

/// Which call is made, with which messages. Either they are encoded already (`kind` is told: the load's body and
/// expected body are then messages, each with its prefix, as they stand on the wire), or they are JSON and described by
/// `.proto` files or by the server itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSpec {
    /// `package.Service/Method`; none: the path of the URL.
    #[serde(default)]
    pub call: Option<String>,
    /// Who sends several messages; none: the description of the call says it.
    #[serde(default)]
    pub kind: Option<CallKind>,
    /// Files that describe the call; none, and no `kind`: the server is asked (reflection).
    #[serde(default)]
    pub proto: Vec<PathBuf>,
    /// Folders in which their imports are looked for.
    #[serde(default)]
    pub include: Vec<PathBuf>,
    /// The message as JSON, or a list of them; none: one without fields.
    #[serde(default)]
    pub data: Option<String>,
    /// How many messages a call sends.
    #[serde(default)]
    pub messages: Option<u64>,
    /// The right answer as JSON; of a call with several, all of them as a list, or the one that each is like.
    #[serde(default)]
    pub expect_data: Option<String>,
}

/// More messages in a call are a mistake, or a load of days.
const MOST_MESSAGES: u64 = 1_000_000;

impl CallSpec {
    fn check(&self) -> Result<(), SpecError> {
        let described = !self.proto.is_empty()
            || self.data.is_some()
            || self.messages.is_some()
            || self.expect_data.is_some();
        if self.kind.is_some() && described {
            return check::fault(
                "grpc: kind says that the messages are encoded already, so proto, data, messages and expect_data do not go with it",
            );
        }
        if let Some(messages) = self.messages {
            check::whole("messages", messages, 1, MOST_MESSAGES)?;
        }
        Ok(())
    }
}

/// What is asked as often as its weight says. What is left out is as in the load itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// What results call it.
    pub name: String,
    /// How often, compared with the others.
    #[serde(default = "once")]
    pub weight: f64,
    /// None: that of the load.
    #[serde(default)]
    pub method: Option<String>,
    /// Path and query; none: those of the URL.
    #[serde(default)]
    pub path: Option<String>,
    /// Besides those of the load; one of the same name is instead of it.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// None: that of the load.
    #[serde(default)]
    pub body: Option<Content>,
    /// The right status; none: that of the load.
    #[serde(default)]
    pub expect_status: Option<u16>,
    /// The right body, compared whole.
    #[serde(default)]
    pub expect_body: Option<Content>,
    /// What the right body has in it.
    #[serde(default)]
    pub expect_contains: Option<String>,
}

fn once() -> f64 {
    1.0
}

/// Bytes in JSON: text, or base64 where they are none.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// As it stands.
    Text(String),
    /// Encoded.
    Base64(String),
}

impl Content {
    /// The bytes; `field` is what to call them in a fault.
    pub fn bytes(&self, field: &str) -> Result<Vec<u8>, SpecError> {
        match self {
            Content::Text(text) => Ok(text.clone().into_bytes()),
            Content::Base64(text) => STANDARD
                .decode(text)
                .map_err(|error| SpecError(format!("{field}: this is not base64: {error}"))),
        }
    }
}

/// Each is told by itself, with two histograms of its own.
const MOST_REQUESTS: usize = 500;

impl LoadSpec {
    fn check_mix(&self) -> Result<(), SpecError> {
        if self.mix.len() > MOST_REQUESTS {
            return Err(SpecError(format!(
                "mix: {} requests are too many, each is told by itself; give at most {MOST_REQUESTS}",
                self.mix.len()
            )));
        }
        for (number, request) in self.mix.iter().enumerate() {
            let fault = |why: &str| Err(SpecError(format!("{}: {why}", request.label())));
            let named = request.name.trim();
            if named.is_empty() {
                return Err(SpecError(format!("request {}: it has no name", number + 1)));
            }
            if self.mix[..number]
                .iter()
                .any(|other| other.name == request.name)
            {
                return fault("another one has this name");
            }
            if !(request.weight.is_finite() && request.weight > 0.0) {
                return fault(&format!(
                    "weight: {} is no weight; give a number above 0",
                    request.weight
                ));
            }
            let in_request =
                |fault: SpecError| SpecError(format!("{}: {}", request.label(), fault.0));
            if let Some(method) = &request.method {
                check_method(method).map_err(in_request)?;
            }
            check_fields(&request.headers).map_err(in_request)?;
            if let Some(status) = request.expect_status {
                whole("expect_status", u64::from(status), 200, 999).map_err(in_request)?;
            }
        }
        Ok(())
    }
}

impl RequestSpec {
    /// As faults name it.
    pub fn label(&self) -> String {
        format!("request {:?}", self.name)
    }
}

/// A piece of a schedule: one rate, or a ramp to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Requests per second at its beginning.
    pub rate: f64,
    /// At its end; none: the rate does not change.
    #[serde(default)]
    pub to_rate: Option<f64>,
    /// How long it takes.
    pub duration_s: f64,
}

/// Each step is told by itself, with three histograms of its own.
const MOST_STEPS: usize = 500;

impl StepSpec {
    fn step(&self) -> Step {
        Step {
            from: self.rate,
            to: self.to_rate.unwrap_or(self.rate),
            length: nanos(self.duration_s),
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        for rate in [Some(self.rate), self.to_rate].into_iter().flatten() {
            // Nothing may be sent for a while, and a ramp may begin or end there.
            if rate != 0.0 {
                check_rate("schedule: rate", rate)?;
            }
        }
        time("schedule: duration_s", self.duration_s, 0.001, 86_400.0)
    }
}

impl LoadSpec {
    fn check_schedule(&self) -> Result<(), SpecError> {
        if self.schedule.is_empty() {
            return Ok(());
        }
        if self.rate.is_some() {
            return fault("rate and schedule both say when requests are due; give one of them");
        }
        if self.requests.is_some() {
            return fault("requests: a schedule ends by its time; leave out the count");
        }
        if self.schedule.len() > MOST_STEPS {
            return Err(SpecError(format!(
                "schedule: {} steps are too many, each is told by itself; give at most {MOST_STEPS}",
                self.schedule.len()
            )));
        }
        self.schedule.iter().try_for_each(StepSpec::check)?;
        let steps: Vec<Step> = self.schedule.iter().map(StepSpec::step).collect();
        if steps.iter().all(|step| step.requests() == 0.0) {
            return fault("schedule: all its rates are 0, so nothing would be sent");
        }
        let whole = seconds(steps.iter().map(|step| step.length).sum());
        match self.duration_s {
            Some(duration) if nanos(duration) < nanos(whole) => Err(SpecError(format!(
                "duration_s: {duration} s is shorter than the schedule, which takes {whole} s; leave it out, or give more"
            ))),
            _ => Ok(()),
        }
    }

    /// The steps of a load whose rate changes; the last one is longer where the load is.
    #[must_use]
    pub fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = self.schedule.iter().map(StepSpec::step).collect();
        let whole: u64 = steps.iter().map(|step| step.length).sum();
        let held = self.duration_s.map_or(0, nanos).saturating_sub(whole);
        if let Some(last) = steps.last().copied()
            && held > 0
        {
            steps.push(Step {
                from: last.to,
                to: last.to,
                length: held,
            });
        }
        steps
    }

    /// The lane of a thread. All lanes of all parts have each request once, however many threads each part has: those of
    /// part `number` are the requests whose numbers leave `number` when divided by `of`.
    #[must_use]
    pub fn lane(&self, thread: u64) -> Lane {
        let PartSpec { number, of } = self.part.unwrap_or(PartSpec { number: 0, of: 1 });
        Lane {
            first: number + of * thread,
            step: of * self.threads,
        }
    }

    /// When requests are due; None in closed loop. Its time begins with the warm-up, which has the first rate.
    #[must_use]
    pub fn pace(&self) -> Option<Schedule> {
        if let Some(rate) = self.rate {
            return Some(Schedule::constant(rate));
        }
        let mut steps = self.steps();
        let first = steps.first()?.from;
        if self.warmup_s > 0.0 {
            let warmup = Step {
                from: first,
                to: first,
                length: nanos(self.warmup_s),
            };
            steps.insert(0, warmup);
        }
        Some(Schedule::new(&steps))
    }

    /// Requests per second of an open loop, on average; None in closed loop.
    #[must_use]
    pub fn mean_rate(&self) -> Option<f64> {
        if self.schedule.is_empty() {
            return self.rate;
        }
        let steps = self.steps();
        let whole: u64 = steps.iter().map(|step| step.length).sum();
        Some(steps.iter().map(Step::requests).sum::<f64>() / seconds(whole))
    }

    /// Whether requests fall due whatever the server does.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rate.is_some() || !self.schedule.is_empty()
    }
}

/// The least version that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Version {
    /// TLS 1.2, the oldest there is here.
    #[default]
    #[serde(rename = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    Tls13,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSpec {
    /// The name that is asked for, and that the certificate must have; none: the URL's host.
    #[serde(default)]
    pub sni: Option<String>,
    /// Protocols that are offered (ALPN); none: the one that is spoken. An empty list offers nothing.
    #[serde(default)]
    pub alpn: Option<Vec<String>>,
    /// File with this side's own certificate, those above it behind it.
    #[serde(default)]
    pub cert: Option<PathBuf>,
    /// File with its key; none: it is in the same file.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// See [`Version`].
    #[serde(default)]
    pub minimum: Version,
}

impl TlsSpec {
    fn check(&self) -> Result<(), SpecError> {
        if self.key.is_some() && self.cert.is_none() {
            return fault("tls: key is that of a certificate; give cert too");
        }
        for name in self.alpn.iter().flatten() {
            // RFC 7301, section 3.1.
            if name.is_empty() || name.len() > 255 {
                return Err(SpecError(format!(
                    "tls: alpn: {name:?} is no name of a protocol"
                )));
            }
        }
        Ok(())
    }
}

/// What is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A message on a connection that stays, until it comes back.
    #[default]
    Echo,
    /// A connection, until the opening handshake is done.
    Connect,
    /// A message that one member of a room sends, until all members have it.
    Broadcast,
}

/// How WebSockets are loaded; the message is the body of the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSocketSpec {
    /// See [`Mode`].
    #[serde(default)]
    pub mode: Mode,
    /// Instead of a body: a message of so many bytes.
    #[serde(default)]
    pub message_bytes: Option<u64>,
    /// Broadcast: messages on their way at once, at most. None: 1 in closed loop, 1000 in open loop.
    #[serde(default)]
    pub at_once: Option<u64>,
}

/// Larger messages are an upload.
const MOST_MESSAGE_BYTES: u64 = 1 << 30;
const OPEN_AT_ONCE: u64 = 1_000;

impl WebSocketSpec {
    /// Messages of a room on their way at once.
    #[must_use]
    pub fn at_once(&self, open: bool) -> u64 {
        self.at_once.unwrap_or(if open { OPEN_AT_ONCE } else { 1 })
    }

    /// What of the load does not go with it.
    pub fn check(&self, load: &LoadSpec) -> Result<(), SpecError> {
        if let Some(bytes) = self.message_bytes {
            whole("message_bytes", bytes, 1, MOST_MESSAGE_BYTES)?;
        }
        if let Some(at_once) = self.at_once {
            whole("at_once", at_once, 1, 1_000_000)?;
            if self.mode != Mode::Broadcast {
                return fault(
                    "websocket: at_once is for broadcast; elsewhere each connection has one message on its way",
                );
            }
        }
        if self.mode == Mode::Broadcast && load.threads > 1 {
            return fault(
                "websocket: all members of a room are heard by one thread; leave threads at 1",
            );
        }
        if self.mode == Mode::Broadcast && !load.keepalive {
            return fault("websocket: the members of a room stay; leave keepalive at true");
        }
        if load.method != "GET" || load.expect_status.is_some() {
            return fault(
                "websocket: an opening handshake is a GET and its right status is 101; leave out method and expect_status",
            );
        }
        Ok(())
    }
}

/// Who sends messages in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// One message there, one back.
    #[default]
    Unary,
    /// One message there, any number back.
    ServerStreaming,
    /// Several messages there, one back.
    ClientStreaming,
    /// Several messages there, each answered before the next is sent.
    Bidirectional,
}

impl CallKind {
    /// Whether a request may have several messages.
    pub fn sends_many(self) -> bool {
        matches!(self, CallKind::ClientStreaming | CallKind::Bidirectional)
    }

    /// Whether an answer may have several messages.
    pub fn receives_many(self) -> bool {
        matches!(self, CallKind::ServerStreaming | CallKind::Bidirectional)
    }
}
