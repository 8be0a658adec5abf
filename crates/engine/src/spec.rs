//! What a load is asked to be: read from JSON, checked, and never wrong after that.

use serde::Deserialize;

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
    /// `http://host:port/path?query`.
    pub url: String,
    /// Connections at most (open loop), or exactly (closed loop).
    #[serde(default = "fifty")]
    pub connections: u64,
    /// Worker threads; connections and requests are dealt among them.
    #[serde(default = "one")]
    pub threads: u64,
    /// Length of the measured span. This or `requests`.
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
    /// Every n-th body is compared whole; lengths always are.
    #[serde(default = "one")]
    pub check_every: u64,
    /// See [`TransportChoice`].
    #[serde(default)]
    pub transport: TransportChoice,
    /// Hosts that may be loaded although they are not loopback.
    #[serde(default)]
    pub allow_target: Vec<String>,
    /// How many failures are kept as text.
    #[serde(default = "five")]
    pub max_examples: usize,
}

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

const DAY_S: f64 = 86_400.0;
/// Longest time-out and drain: the histograms end at one hour.
const HOUR_S: f64 = 3_600.0;

impl LoadSpec {
    /// Reads and checks a spec. Every fault is one sentence.
    pub fn from_json(text: &str) -> Result<LoadSpec, SpecError> {
        let spec: LoadSpec = serde_json::from_str(text)
            .map_err(|error| SpecError(format!("the load cannot be read: {error}")))?;
        spec.check()?;
        Ok(spec)
    }

    /// When the load ends. Only one of the two fields is set once `check` has passed.
    pub fn length(&self) -> Length {
        match (self.duration_s, self.requests) {
            (Some(duration), _) => Length::Span(nanos(duration)),
            (None, requests) => Length::Requests(requests.unwrap_or(1)),
        }
    }

    /// `open` or `closed`.
    pub fn model(&self) -> &'static str {
        if self.rate.is_some() {
            "open"
        } else {
            "closed"
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        // A Linux process cannot hold more than about a million descriptors (fs.nr_open).
        whole("connections", self.connections, 1, 1_000_000)?;
        whole("threads", self.threads, 1, 1_024)?;
        if self.threads > self.connections {
            return Err(SpecError(format!(
                "threads: {} threads for {} connections leaves some without any; give at most as many threads as connections",
                self.threads, self.connections
            )));
        }
        match (self.duration_s, self.requests) {
            (Some(duration), None) => time("duration_s", duration, 0.001, 7.0 * DAY_S)?,
            (None, Some(requests)) => whole("requests", requests, 1, 1_000_000_000_000)?,
            (None, None) => {
                return fault(
                    "neither duration_s nor requests says when the load ends; give one of them",
                );
            }
            (Some(_), Some(_)) => {
                return fault(
                    "duration_s and requests both say when the load ends; give one of them",
                );
            }
        }
        time("warmup_s", self.warmup_s, 0.0, DAY_S)?;
        time("timeout_s", self.timeout_s, 0.001, HOUR_S)?;
        time("drain_s", self.drain_s, 0.0, HOUR_S)?;
        if let Some(rate) = self.rate
            && !(rate.is_finite() && (1e-4..=1e7).contains(&rate))
        {
            return Err(SpecError(format!(
                "rate: {rate} is not a rate this can keep; give requests per second above 0 and up to 10000000"
            )));
        }
        whole("check_every", self.check_every, 1, u64::MAX)?;
        whole("max_examples", self.max_examples as u64, 0, 1_000)?;
        if let Some(status) = self.expect_status {
            // 1xx answers are interim: a request never ends with one.
            whole("expect_status", u64::from(status), 200, 999)?;
        }
        self.check_head()
    }

    fn check_head(&self) -> Result<(), SpecError> {
        if !is_token(&self.method) {
            return Err(SpecError(format!(
                "method: {:?} is not an HTTP method",
                self.method
            )));
        }
        if self.method == "CONNECT" {
            return fault("method: CONNECT makes a tunnel, and a tunnel has no answer to measure");
        }
        for (name, value) in &self.headers {
            if !is_token(name) {
                return Err(SpecError(format!(
                    "headers: {name:?} is not the name of a header field"
                )));
            }
            if value
                .bytes()
                .any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
            {
                return Err(SpecError(format!(
                    "headers: the value of {name} has a control character in it"
                )));
            }
            let framing = [
                "content-length",
                "transfer-encoding",
                "connection",
                "expect",
                "upgrade",
            ];
            if framing.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(SpecError(format!(
                    "headers: {name} is written by the generator itself; leave it out (for connections use keepalive)"
                )));
            }
        }
        Ok(())
    }
}

fn fault<T>(sentence: &str) -> Result<T, SpecError> {
    Err(SpecError(sentence.into()))
}

fn whole(field: &str, value: u64, least: u64, most: u64) -> Result<(), SpecError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SpecError(format!(
        "{field}: {value} is out of bounds; give {least} to {most}"
    )))
}

fn time(field: &str, value: f64, least: f64, most: f64) -> Result<(), SpecError> {
    if value.is_finite() && (least..=most).contains(&value) {
        return Ok(());
    }
    Err(SpecError(format!(
        "{field}: {value} is out of bounds; give {least} to {most} seconds"
    )))
}

/// A `token` of RFC 9110, section 5.6.2.
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

#[cfg(test)]
mod tests;
