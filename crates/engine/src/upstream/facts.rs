//! What a third party did: counted by each thread for itself, merged when asked.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::transport::os;

/// Counts of one thread.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    /// Requests received whole.
    pub requests: u64,
    pub answered: u64,
    /// Answers with status 500.
    pub errors: u64,
    /// Answers with status 400: what came was not a request.
    pub refused: u64,
    pub cpu_ns: u64,
    /// From when an answer was due to when it was written, nanoseconds.
    pub late: Histogram<u64>,
}

/// Answers later than this count as this late, about a minute.
const LATEST_NS: u64 = 1 << 36;

impl Counts {
    pub fn new() -> Self {
        // Two digits are 1 %: 35 kB a histogram. Bounds and digits are constants the library accepts.
        let late = Histogram::new_with_bounds(1, LATEST_NS, 2).expect("constant bounds");
        Self {
            requests: 0,
            answered: 0,
            errors: 0,
            refused: 0,
            cpu_ns: 0,
            late,
        }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.answered += other.answered;
        self.errors += other.errors;
        self.refused += other.refused;
        self.cpu_ns += other.cpu_ns;
        // Both have the same bounds, so nothing can be out of range.
        let _ = self.late.add(&other.late);
    }

    fn describe(&self) -> Map<String, Value> {
        let late = |value: u64| (!self.late.is_empty()).then_some(value as f64 / 1e6);
        let plain = json!({
            "requests": self.requests,
            "answered": self.answered,
            "errors": self.errors,
            "refused": self.refused,
            "cpu_s": self.cpu_ns as f64 / 1e9,
            "late_ms": {
                "p50": late(self.late.value_at_quantile(0.5)),
                "p99": late(self.late.value_at_quantile(0.99)),
                "max": late(self.late.max()),
            },
        });
        match plain {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// What one thread tells when it is asked.
#[derive(Debug)]
pub(super) struct Snapshot {
    total: Counts,
    since: Counts,
    since_ns: u64,
    active: u64,
    connections: u64,
}

/// The counting of one thread: in all, and since facts were last asked.
#[derive(Debug)]
pub(super) struct Tally {
    /// Up to when facts were last asked.
    before: Counts,
    pub since: Counts,
    asked: u64,
    cpu_asked: u64,
}

impl Tally {
    /// To be called on the thread whose CPU time counts.
    pub fn new() -> Self {
        let cpu_asked = os::cpu_time().total();
        Self {
            before: Counts::new(),
            since: Counts::new(),
            asked: os::monotonic(),
            cpu_asked,
        }
    }

    pub fn snapshot(&mut self, active: u64, connections: u64) -> Snapshot {
        let (now, cpu) = (os::monotonic(), os::cpu_time().total());
        let mut since = std::mem::replace(&mut self.since, Counts::new());
        since.cpu_ns = cpu.saturating_sub(self.cpu_asked);
        self.before.add(&since);
        let since_ns = now - self.asked;
        (self.asked, self.cpu_asked) = (now, cpu);
        Snapshot {
            total: self.before.clone(),
            since,
            since_ns,
            active,
            connections,
        }
    }
}

/// The facts of all threads as one JSON object.
pub(super) fn document(snapshots: &[Snapshot], stalls: u64, dead: usize) -> String {
    let (mut total, mut since) = (Counts::new(), Counts::new());
    for snapshot in snapshots {
        total.add(&snapshot.total);
        since.add(&snapshot.since);
    }
    let mut document = total.describe();
    let mut recent = since.describe();
    let span = snapshots
        .iter()
        .map(|snapshot| snapshot.since_ns)
        .max()
        .unwrap_or(0);
    recent.insert("span_s".to_owned(), json!(span as f64 / 1e9));
    document.insert("since".to_owned(), Value::Object(recent));
    document.insert(
        "active".to_owned(),
        json!(snapshots.iter().map(|s| s.active).sum::<u64>()),
    );
    document.insert(
        "connections".to_owned(),
        json!(snapshots.iter().map(|s| s.connections).sum::<u64>()),
    );
    document.insert("stalls".to_owned(), json!(stalls));
    if dead > 0 {
        document.insert(
            "failed".to_owned(),
            json!(format!("{dead} of its threads died")),
        );
    }
    Value::Object(document).to_string()
}
