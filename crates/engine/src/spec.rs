//! What a load is asked to be: read from JSON, checked, and never wrong after that.

mod call;
mod check;
mod request;
mod schedule;
mod tls;
mod websocket;

use serde::Deserialize;

pub use call::CallSpec;
pub use request::{Content, RequestSpec};
pub use schedule::StepSpec;
pub use tls::{TlsSpec, Version};
pub use websocket::{Mode, WebSocketSpec};

use crate::clock::{Nanos, nanos};
use crate::pace::Spread;

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
