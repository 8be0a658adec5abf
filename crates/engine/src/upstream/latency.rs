//! How long an answer takes: a pure function of the seed and the number of the request.
//!
//! `200ms` · `uniform(10ms,20ms)` · `exponential(50ms)` (mean) · `lognormal(50ms,0.4)` (median, sigma) ·
//! the path of a file with one latency per line, of which each request gets one at random.

use std::f64::consts::TAU;
use std::fs;

use crate::chance::chance;

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
