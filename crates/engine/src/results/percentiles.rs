//! Percentiles, as far as the number of requests lets them be believed.

use serde::Serialize;

use crate::clock::MILLISECOND;
use crate::durations::Durations;
use crate::progress::milliseconds;

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
