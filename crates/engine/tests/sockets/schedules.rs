//! Loads whose rate changes, as the server sees them come.

use std::io::Write;

use serde_json::{Value, json};

use crate::server::Server;
use crate::{OK, load, transports};

fn numbers(steps: &Value, field: &str) -> Vec<f64> {
    let steps = steps.as_array().unwrap();
    steps
        .iter()
        .map(|step| step[field].as_f64().unwrap())
        .collect()
}

#[test]
fn steps_are_sent_and_told_one_by_one() {
    for transport in transports() {
        let server = Server::start(|peer, _| peer.write_all(OK).is_ok());
        let fields = json!({
            "duration_s": 0.9, "threads": 2, "warmup_s": 0.1,
            "schedule": [{"rate": 100, "duration_s": 0.2}, {"rate": 500, "duration_s": 0.4}]
        });
        let result = load(server.port, transport, &fields, b"", None);
        assert_eq!(result["ok"], 20 + 200 + 150, "{result}");
        let steps = &result["steps"];
        assert_eq!(numbers(steps, "requests"), [20.0, 200.0, 150.0], "{steps}");
        assert_eq!(numbers(steps, "at_s"), [0.0, 0.2, 0.6]);
        assert_eq!(numbers(steps, "rate"), [100.0, 500.0, 500.0]);
        let median = steps[1]["latency_ms"]["sent"]["p50"].as_f64().unwrap();
        assert!((0.0..200.0).contains(&median) && median > 0.0, "{steps}");
        assert!(steps[0]["lag_ms"]["p50"].is_number(), "{steps}");
        assert_eq!(steps[2]["outcomes"]["ok"], 150);
        let rate = result["load"]["rate"].as_f64().unwrap();
        assert!((rate - 370.0 / 0.9).abs() < 1e-9, "{rate}");
    }
}

#[test]
fn a_ramp_of_independent_users_sends_what_its_rate_says() {
    let server = Server::start(|peer, _| peer.write_all(OK).is_ok());
    let fields = json!({
        "arrivals": "poisson", "duration_s": 1.0,
        "schedule": [{"rate": 0, "to_rate": 1000, "duration_s": 0.5}, {"rate": 1000, "to_rate": 0, "duration_s": 0.5}]
    });
    let result = load(server.port, "epoll", &fields, b"", None);
    let counts = numbers(&result["steps"], "requests");
    assert_eq!(result["requests"].as_f64().unwrap(), counts[0] + counts[1]);
    // 250 each, with a deviation of 16.
    assert!(
        counts.iter().all(|count| (170.0..330.0).contains(count)),
        "{counts:?}"
    );
    assert_eq!(result["ok"], result["requests"]);
}
