//! What a link is asked to be.

use serde::Deserialize;

use crate::clock::{Nanos, SECOND};

/// TCP gives up a connection whose handshake takes minutes.
const LONGEST_DELAY: Nanos = 60 * SECOND;

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// How long a packet travels, nanoseconds.
    pub delay_ns: Nanos,
    /// By how much that varies, either side, nanoseconds.
    #[serde(default)]
    pub jitter_ns: Nanos,
    /// Of the bottleneck, 10^6 bits of IP packets per second; None: there is no bottleneck.
    #[serde(default)]
    pub rate_mbit: Option<f64>,
    /// How many packets may wait before the bottleneck; None: all that come.
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// Share of packets that is lost, 0 to 1.
    #[serde(default)]
    pub loss: f64,
}

/// Both directions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spec {
    /// From the client to the server.
    pub there: Way,
    /// From the server to the client.
    pub back: Way,
    /// Of loss and jitter.
    pub seed: u64,
}

impl Spec {
    /// Reads and checks; an error is the rest of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let spec: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (name, way) in [("there", &spec.there), ("back", &spec.back)] {
            way.check().map_err(|fault| format!("{name}.{fault}"))?;
        }
        Ok(spec)
    }
}

impl Way {
    fn check(&self) -> Result<(), String> {
        if self.delay_ns > LONGEST_DELAY {
            return Err(format!("delay_ns is {}, over a minute", self.delay_ns));
        }
        if self.jitter_ns > self.delay_ns {
            return Err(
                "jitter_ns is more than delay_ns: no packet arrives before it is sent".to_owned(),
            );
        }
        if self
            .rate_mbit
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0))
        {
            return Err("rate_mbit is not above 0".to_owned());
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(format!("loss is {}, not a share from 0 to 1", self.loss));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(there: &str) -> Result<Spec, String> {
        Spec::parse(&format!(
            r#"{{"there": {there}, "back": {{"delay_ns": 0}}, "seed": 1}}"#
        ))
    }

    #[test]
    fn a_link_is_read_and_nonsense_refused() {
        let spec = parse(r#"{"delay_ns": 5, "rate_mbit": 1.5, "queue_packets": 7, "loss": 0.25}"#);
        let wanted = Way {
            delay_ns: 5,
            jitter_ns: 0,
            rate_mbit: Some(1.5),
            queue_packets: Some(7),
            loss: 0.25,
        };
        assert_eq!(spec.unwrap().there, wanted);
        let rows = [
            (r#"{"delay_ns": 5, "jitter_ns": 6}"#, "there.jitter_ns"),
            (r#"{"delay_ns": 60000000001}"#, "there.delay_ns"),
            (r#"{"delay_ns": 0, "rate_mbit": 0}"#, "there.rate_mbit"),
            (r#"{"delay_ns": 0, "loss": 1.5}"#, "there.loss"),
            (r#"{"delay_ns": 0, "los": 0.5}"#, "unknown field"),
            (r#"{"delay_ns": -1}"#, "invalid value"),
            ("{}", "missing field"),
        ];
        for (there, fault) in rows {
            let said = parse(there).unwrap_err();
            assert!(said.contains(fault), "{there}: {said}");
        }
    }
}
