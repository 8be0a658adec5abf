//! Histograms of durations.
//!
//! One holds 1 ns to 1 h with three significant digits in 33 x 1024 counters (270 kB); recording is an index computation
//! and one addition.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};

use crate::clock::{Nanos, SECOND};

/// The longest duration a histogram tells apart; what is longer is recorded as this.
pub const LONGEST: Nanos = 3_600 * SECOND;
/// A histogram of durations together with their exact largest.
#[derive(Clone, Debug)]
pub struct Durations {
    /// The counters, nanoseconds.
    pub histogram: Histogram<u64>,
    /// The largest, not rounded to a bucket.
    pub max: Nanos,
}

impl Default for Durations {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3);
        Durations {
            histogram: histogram.expect("the bounds are constants that are in order"),
            max: 0,
        }
    }
}

impl Durations {
    /// Records one duration.
    #[inline]
    pub fn record(&mut self, duration: Nanos) {
        self.histogram.saturating_record(duration);
        self.max = self.max.max(duration);
    }

    /// Records the same duration so many times.
    pub fn record_many(&mut self, duration: Nanos, count: u64) {
        self.histogram.saturating_record_n(duration, count);
        self.max = self.max.max(duration);
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Durations) {
        self.histogram
            .add(&other.histogram)
            .expect("both have the same bounds");
        self.max = self.max.max(other.max);
    }
}

impl Durations {
    /// Adds those of another thread that are needed no more; where there are none on one side, nothing is touched.
    pub fn merge(&mut self, other: Durations) {
        if self.histogram.is_empty() {
            *self = other;
        } else if !other.histogram.is_empty() {
            self.add(&other);
        }
    }
}

/// HdrHistogram's own exchange format: V2, deflated, base64.
pub fn encode<T: Counter>(histogram: &Histogram<T>) -> String {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("a histogram of these bounds fits the format, and a Vec takes every byte");
    STANDARD.encode(bytes)
}

/// Adds up histograms in that format, each with its exact largest if that is known. None: there are none.
///
/// # Errors
/// One is no such histogram, or they have other bounds; in words.
pub fn sum(parts: &[(String, Option<Nanos>)]) -> Result<Option<Durations>, String> {
    let mut total: Option<Durations> = None;
    for (text, max) in parts {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| format!("no base64: {error}"))?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("no histogram: {error}"))?;
        let max = max.unwrap_or_else(|| histogram.value_at_quantile(1.0));
        let part = Durations { histogram, max };
        match &mut total {
            None => total = Some(part),
            Some(sum) if bounds(sum) == bounds(&part) => sum.add(&part),
            Some(_) => return Err("histograms of other bounds".to_owned()),
        }
    }
    Ok(total)
}

fn bounds(durations: &Durations) -> (u64, u64, u8) {
    let histogram = &durations.histogram;
    (histogram.low(), histogram.high(), histogram.sigfig())
}

/// Latencies of a slice, with two digits: small enough (18 kB) to be handed on four times a second.
pub type Coarse = Histogram<u32>;

/// An empty histogram for a slice.
pub fn coarse() -> Coarse {
    Histogram::new_with_bounds(1, LONGEST, 2).expect("the bounds are constants that are in order")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sum_of_parts_is_the_histogram_of_all(
            samples in prop::collection::vec((0u64..4_000_000_000_000, 0usize..5), 1..400),
        ) {
            let mut whole = Durations::default();
            let mut parts = vec![Durations::default(); 5];
            for &(sample, part) in &samples {
                whole.record(sample);
                parts[part].record(sample);
            }
            let sent: Vec<_> = parts
                .iter()
                .map(|part| (encode(&part.histogram), Some(part.max)))
                .collect();
            let found = sum(&sent).unwrap().unwrap();
            prop_assert_eq!(encode(&found.histogram), encode(&whole.histogram));
            prop_assert_eq!(found.max, whole.max);
        }
    }

    #[test]
    fn what_is_no_histogram_is_said() {
        assert!(sum(&[("?".into(), None)]).unwrap_err().contains("base64"));
        assert!(
            sum(&[("AAAA".into(), None)])
                .unwrap_err()
                .contains("histogram")
        );
        let (fine, rough) = (encode(&Durations::default().histogram), encode(&coarse()));
        assert!(
            sum(&[(fine, None), (rough, None)])
                .unwrap_err()
                .contains("bounds")
        );
        assert!(sum(&[]).unwrap().is_none());
    }
}
