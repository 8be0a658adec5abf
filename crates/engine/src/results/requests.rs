//! Several requests, each told by itself.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Latency, outcomes};
use crate::outcome::Outcome;
use crate::record::{Record, Share};
use crate::requests::{Request, Requests};

/// See the module; the fields are described in `docs/results.md`.
#[derive(Debug, Serialize)]
pub struct RequestResult {
    name: String,
    method: String,
    weight: f64,
    /// Of it that were sent.
    requests: u64,
    ok: u64,
    outcomes: BTreeMap<&'static str, u64>,
    latency_ms: Latency,
}

impl RequestResult {
    /// All of them, in their order; none where there is only one.
    pub fn all(requests: Option<&Requests>, record: &Record) -> Vec<RequestResult> {
        let Some(requests) = requests else {
            return Vec::new();
        };
        let whole: f64 = requests.all.iter().map(|request| request.weight).sum();
        let each = requests.all.iter().zip(&record.by_request);
        each.map(|(asked, came)| RequestResult::of(asked, came, whole))
            .collect()
    }

    fn of(asked: &Request, came: &Share, whole: f64) -> RequestResult {
        RequestResult {
            name: asked.name.clone(),
            method: asked.method.clone(),
            weight: asked.weight / whole,
            requests: came.outcomes.total(),
            ok: came.outcomes.of(Outcome::Ok),
            outcomes: outcomes(&came.outcomes),
            latency_ms: Latency::of(&came.due, &came.sent),
        }
    }
}
