//! What a relay did, from one time it is asked to the next.

use serde_json::{Value, json};

use crate::clock::{Nanos, seconds};
use crate::durations::Durations;
use crate::results::encode;

/// Of one direction. Packets are counted as they would be on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Sent into the link.
    pub packets: u64,
    pub bytes: u64,
    /// By chance.
    pub lost: u64,
    /// The queue was full.
    pub dropped: u64,
    /// The device at the other end refused them, or there were more under way than memory is given for.
    pub undelivered: u64,
}

/// Of both.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub there: Counts,
    pub back: Counts,
    /// How much later packets came out than they should have, at most.
    pub late: Durations,
    pub cpu: Nanos,
}

impl Facts {
    /// The counts of line 0 or 1.
    pub fn way(&mut self, number: usize) -> &mut Counts {
        if number == 0 {
            &mut self.there
        } else {
            &mut self.back
        }
    }

    pub fn to_json(&self) -> String {
        let late = &self.late.histogram;
        let known = |value: u64| (!late.is_empty()).then_some(value as f64 / 1e6);
        json!({
            "there": self.there.describe(),
            "back": self.back.describe(),
            "late_ms": {
                "p50": known(late.value_at_quantile(0.5)),
                "p99": known(late.value_at_quantile(0.99)),
                "max": known(self.late.max),
            },
            "hdr_late": encode(&self.late),
            "cpu_s": seconds(self.cpu),
        })
        .to_string()
    }
}

impl Counts {
    fn describe(self) -> Value {
        json!({
            "packets": self.packets,
            "bytes": self.bytes,
            "lost": self.lost,
            "dropped": self.dropped,
            "undelivered": self.undelivered,
        })
    }
}
