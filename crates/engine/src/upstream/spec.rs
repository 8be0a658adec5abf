//! What a third party is asked to be; all that is wrong with it is told at once.

use std::f64::consts::TAU;
use std::fs;

use serde_json::{Map, Value};

use crate::chance::chance;
use crate::spec::Content;
use crate::upstream::shard::Stall;

/// A checked specification.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spec {
    pub host: String,
    pub port: u16,
    pub latency: Latency,
    /// Share of requests answered 500.
    pub errors: f64,
    pub stall: Option<Stall>,
    /// Of a right answer.
    pub body: Body,
    pub content_type: String,
    pub threads: u32,
    pub seed: u64,
}

/// What a right answer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes of a text that says nothing.
    Filler(usize),
    Told(Vec<u8>),
}

const FIELDS: [&str; 9] = [
    "host", "port", "latency", "errors", "stall", "body", "type", "threads", "seed",
];

/// The body is kept twice in memory and written whole; more is another test than a third party's latency.
const LARGEST_BODY: u64 = 100_000_000;

/// More threads than any machine has CPUs help nobody.
const MOST_THREADS: u64 = 256;

/// 100 days: what is longer can be left out.
const LONGEST_STALL_S: f64 = 8.64e6;

impl Spec {
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        let fields = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(vec!["its specification is not a JSON object".to_owned()]),
            Err(error) => return Err(vec![format!("its specification is not JSON ({error})")]),
        };
        let mut reader = Reader {
            fields,
            problems: Vec::new(),
        };
        reader.unknown(&FIELDS);
        let spec = Self {
            host: reader.text("host", "127.0.0.1"),
            port: reader.whole("port", 0, 0, u64::from(u16::MAX)) as u16,
            latency: reader.latency(),
            errors: reader.number("errors", 0.0, 0.0, 1.0),
            stall: reader.stall(),
            body: reader.body(),
            content_type: reader.content_type(),
            threads: reader.whole("threads", 1, 1, MOST_THREADS) as u32,
            seed: reader.whole("seed", 1, 0, u64::MAX),
        };
        if reader.problems.is_empty() {
            Ok(spec)
        } else {
            Err(reader.problems)
        }
    }
}

/// Takes fields out of an object; whatever is wrong is noted and a default put in its place.
struct Reader {
    fields: Map<String, Value>,
    problems: Vec<String>,
}

impl Reader {
    fn unknown(&mut self, known: &[&str]) {
        for name in self
            .fields
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
        {
            self.problems
                .push(format!("'{name}' is not one of {}", known.join(", ")));
        }
    }

    fn given(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str, default: &str) -> String {
        match self.given(name) {
            None => default.to_owned(),
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(other) => {
                self.problems
                    .push(format!("{name} is {other}; give a text"));
                default.to_owned()
            }
        }
    }

    fn whole(&mut self, name: &str, default: u64, low: u64, high: u64) -> u64 {
        let Some(value) = self.given(name) else {
            return default;
        };
        match value.as_u64() {
            Some(number) if (low..=high).contains(&number) => number,
            _ => {
                self.problems.push(format!(
                    "{name} is {value}; give a whole number from {low} to {high}"
                ));
                default
            }
        }
    }

    fn number(&mut self, name: &str, default: f64, low: f64, high: f64) -> f64 {
        let Some(value) = self.given(name) else {
            return default;
        };
        match value.as_f64() {
            Some(number) if (low..=high).contains(&number) => number,
            _ => {
                self.problems.push(format!(
                    "{name} is {value}; give a number from {low} to {high}"
                ));
                default
            }
        }
    }

    fn body(&mut self) -> Body {
        let Some(value @ Value::Object(_)) = self.given("body") else {
            return Body::Filler(self.whole("body", 64, 0, LARGEST_BODY) as usize);
        };
        let told = serde_json::from_value::<Content>(value.clone())
            .map_err(|error| format!("body: {error}"))
            .and_then(|content| content.bytes("body").map_err(|error| error.to_string()));
        match told {
            Ok(bytes) if bytes.len() as u64 <= LARGEST_BODY => Body::Told(bytes),
            Ok(bytes) => {
                self.problems.push(format!(
                    "body is of {} bytes; give {LARGEST_BODY} at most",
                    bytes.len()
                ));
                Body::Filler(0)
            }
            Err(problem) => {
                self.problems.push(problem);
                Body::Filler(0)
            }
        }
    }

    /// It stands in the head of every answer: nothing in it may end the line.
    fn content_type(&mut self) -> String {
        let text = self.text("type", "text/plain");
        if text.bytes().any(|byte| !(b' '..=b'~').contains(&byte)) {
            self.problems.push(format!(
                "type is {text:?}; give one such as application/json"
            ));
        }
        text
    }

    fn latency(&mut self) -> Latency {
        let text = self.text("latency", "0");
        Latency::parse(&text).unwrap_or_else(|problem| {
            self.problems.push(format!("latency: {problem}"));
            Latency::Fixed(0)
        })
    }

    fn stall(&mut self) -> Option<Stall> {
        let value = self.given("stall")?.clone();
        let Value::Object(fields) = value else {
            self.problems.push(format!(
                "stall is {value}; give {{\"every_s\":…,\"for_s\":…}} or null"
            ));
            return None;
        };
        let mut inner = Self {
            fields,
            problems: Vec::new(),
        };
        inner.unknown(&["every_s", "for_s"]);
        let every = inner.number("every_s", 0.0, 0.0, LONGEST_STALL_S);
        let hold = inner.number("for_s", 0.0, 0.0, LONGEST_STALL_S);
        let nanos = |seconds: f64| (seconds * 1e9).round() as u64;
        let stall = Stall {
            every: nanos(every),
            hold: nanos(hold),
        };
        if inner.problems.is_empty() && (stall.hold == 0 || stall.hold >= stall.every) {
            inner.problems.push(format!("for_s is {hold} and every_s is {every}; a stall is above 0 s and ends before the next"));
        }
        let sound = inner.problems.is_empty();
        self.problems.extend(
            inner
                .problems
                .into_iter()
                .map(|problem| format!("stall: {problem}")),
        );
        sound.then_some(stall)
    }
}

/// Beyond an hour a latency is a slip of the pen, and the sum with a clock could no longer be taken for granted.
const LONGEST_S: f64 = 3600.0;

/// A distribution of latencies, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Latency {
    Fixed(u64),
    Uniform { low: u64, high: u64 },
    Exponential { mean: u64 },
    LogNormal { median: u64, sigma: f64 },
    Listed(Vec<u64>),
}

impl Latency {
    /// Reads a latency as users write it (see the top of this file).
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some((name, arguments)) =
            text.strip_suffix(')').and_then(|call| call.split_once('('))
        {
            let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
            return distribution(name.trim(), &arguments);
        }
        if text
            .starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.'))
            && !text.contains('/')
            && fs::metadata(text).is_err()
        {
            return duration(text).map(Self::Fixed);
        }
        listed(text)
    }

    /// The latency of request `n`, nanoseconds.
    #[must_use]
    pub fn sample(&self, seed: u64, n: u64) -> u64 {
        let longest = LONGEST_S * 1e9;
        match self {
            Self::Fixed(latency) => *latency,
            Self::Uniform { low, high } => low + ((high - low) as f64 * chance(seed, n, 0)) as u64,
            Self::Exponential { mean } => {
                (-(1.0 - chance(seed, n, 0)).ln() * *mean as f64).min(longest) as u64
            }
            Self::LogNormal { median, sigma } => {
                ((sigma * normal(seed, n)).exp() * *median as f64).min(longest) as u64
            }
            // The cast is exact: a share below 1 of a length.
            Self::Listed(all) => all[(chance(seed, n, 0) * all.len() as f64) as usize],
        }
    }
}

/// A standard normal number (Box and Muller 1958, <https://doi.org/10.1214/aoms/1177706645>).
fn normal(seed: u64, n: u64) -> f64 {
    let radius = (-2.0 * (1.0 - chance(seed, n, 0)).ln()).sqrt();
    radius * (TAU * chance(seed, n, 1)).cos()
}

fn distribution(name: &str, arguments: &[&str]) -> Result<Latency, String> {
    match (name, arguments) {
        ("uniform", [low, high]) => match (duration(low)?, duration(high)?) {
            (low, high) if low <= high => Ok(Latency::Uniform { low, high }),
            _ => Err(format!(
                "uniform({low},{high}) has its lower end above its upper"
            )),
        },
        ("exponential", [mean]) => Ok(Latency::Exponential {
            mean: duration(mean)?,
        }),
        ("lognormal", [median, sigma]) => match sigma.parse::<f64>() {
            Ok(number) if (0.0..=5.0).contains(&number) => Ok(Latency::LogNormal {
                median: duration(median)?,
                sigma: number,
            }),
            _ => Err(format!(
                "the sigma of lognormal is '{sigma}'; give a number from 0 to 5"
            )),
        },
        ("uniform", _) => Err("uniform takes two durations: uniform(10ms,20ms)".to_owned()),
        ("exponential", _) => Err("exponential takes its mean: exponential(50ms)".to_owned()),
        ("lognormal", _) => Err("lognormal takes median and sigma: lognormal(50ms,0.4)".to_owned()),
        _ => Err(format!(
            "'{name}' is not a distribution; there are uniform, exponential and lognormal"
        )),
    }
}

/// Reads a duration, `1.5s`, `200ms`, `150us` or `10ns`, as nanoseconds; 0 needs no unit.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub fn duration(text: &str) -> Result<u64, String> {
    let digits = text
        .find(|at: char| at.is_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" | "μs" => 1e-6,
        "ns" => 1e-9,
        "" if number.trim().parse() == Ok(0.0) => 1.0,
        _ => {
            return Err(format!(
                "'{text}' is not a duration; give one like 200ms, 1.5s or 150us"
            ));
        }
    };
    match number.trim().parse::<f64>().map(|number| number * seconds) {
        Ok(seconds) if (0.0..=LONGEST_S).contains(&seconds) => Ok((seconds * 1e9).round() as u64),
        Ok(_) => Err(format!("'{text}' is not from 0 to {LONGEST_S} s")),
        Err(_) => Err(format!(
            "'{text}' is not a duration; give one like 200ms, 1.5s or 150us"
        )),
    }
}

/// Reads a file of latencies. A number without a unit is milliseconds; empty lines and `# comments` are passed over.
fn listed(path: &str) -> Result<Latency, String> {
    let text = fs::read_to_string(path).map_err(|error| {
        format!(
            "'{path}' is not a duration (200ms), not a distribution (uniform, exponential, lognormal) and not a \
             file that can be read ({error})"
        )
    })?;
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let bare = line.parse::<f64>().is_ok();
        let latency = if bare {
            duration(&format!("{line}ms"))
        } else {
            duration(line)
        };
        all.push(latency.map_err(|problem| format!("{path}, line {}: {problem}", number + 1))?);
    }
    if all.is_empty() {
        Err(format!("{path} lists no latency"))
    } else {
        Ok(Latency::Listed(all))
    }
}
