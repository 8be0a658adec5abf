//! Specs as users get them wrong.

use super::*;

fn reason(fields: &str) -> String {
    let json = format!(r#"{{"url": "http://127.0.0.1/"{fields}}}"#);
    LoadSpec::from_json(&json)
        .map(|_| String::new())
        .unwrap_or_else(|error| error.0)
}

#[test]
fn defaults_are_those_of_the_contract() {
    let spec = LoadSpec::from_json(r#"{"url": "http://127.0.0.1/", "duration_s": 1}"#).unwrap();
    assert_eq!(
        (spec.connections, spec.threads, spec.check_every),
        (50, 1, None)
    );
    let (small, large) = (spec.compares_every(84), spec.compares_every(220_000));
    assert_eq!(
        (small, large),
        (1, 100),
        "all small bodies, some large ones"
    );
    assert_eq!(
        (spec.timeout_s, spec.drain_s, spec.warmup_s),
        (10.0, 2.0, 0.0)
    );
    assert!(spec.keepalive && spec.rate.is_none());
    assert_eq!(spec.length(), Length::Span(1_000_000_000));
}

#[test]
fn a_schedule_says_how_long_a_load_is_and_its_last_rate_goes_on() {
    let steps = r#"[{"rate": 100, "duration_s": 2}, {"rate": 100, "to_rate": 0, "duration_s": 4}]"#;
    let read = |more: &str| {
        let json = format!(r#"{{"url": "http://127.0.0.1/", "schedule": {steps}{more}}}"#);
        LoadSpec::from_json(&json)
    };
    let spec = read("").unwrap();
    assert_eq!(
        (spec.length(), spec.mean_rate(), spec.model()),
        (Length::Span(6_000_000_000), Some(400.0 / 6.0), "open")
    );
    let longer = read(r#", "duration_s": 8, "warmup_s": 1"#).unwrap();
    assert_eq!(longer.length(), Length::Span(8_000_000_000));
    assert_eq!(
        longer.steps().len(),
        3,
        "what is held at the end is a step of its own"
    );
    assert_eq!(longer.mean_rate(), Some(50.0));
    assert!(read(r#", "duration_s": 5.9"#).is_err());
}

#[test]
fn every_absurd_value_is_named_in_one_sentence() {
    let rows = [
        ("", "neither duration_s nor requests"),
        (r#", "duration_s": 1, "requests": 5"#, "both"),
        (r#", "duration_s": 0"#, "duration_s: 0"),
        (r#", "duration_s": -1"#, "duration_s: -1"),
        (r#", "duration_s": 1e300"#, "duration_s"),
        (r#", "requests": 0"#, "requests: 0"),
        (r#", "requests": -3"#, "the load cannot be read"),
        (r#", "duration_s": 1, "connections": 0"#, "connections: 0"),
        (
            r#", "duration_s": 1, "connections": 2000000"#,
            "connections: 2000000",
        ),
        (
            r#", "duration_s": 1, "connections": 2, "threads": 3"#,
            "threads: 3 threads for 2 connections",
        ),
        (r#", "duration_s": 1, "rate": 0"#, "rate: 0"),
        (r#", "duration_s": 1, "rate": -5"#, "rate: -5"),
        (r#", "duration_s": 1, "rate": 1e12"#, "rate"),
        (r#", "duration_s": 1, "timeout_s": 0"#, "timeout_s: 0"),
        (r#", "duration_s": 1, "warmup_s": -1"#, "warmup_s: -1"),
        (
            r#", "duration_s": 1, "expect_status": 42"#,
            "expect_status: 42",
        ),
        (r#", "duration_s": 1, "check_every": 0"#, "check_every: 0"),
        (r#", "duration_s": 1, "method": "GE T""#, "method"),
        (r#", "duration_s": 1, "headers": [["A b", "c"]]"#, "headers"),
        (
            r#", "duration_s": 1, "headers": [["A", "c\r\nB: d"]]"#,
            "control character",
        ),
        (
            r#", "duration_s": 1, "headers": [["Content-Length", "7"]]"#,
            "written by the generator itself",
        ),
        (
            r#", "rate": 5, "schedule": [{"rate": 1, "duration_s": 1}]"#,
            "rate and schedule both",
        ),
        (
            r#", "requests": 5, "schedule": [{"rate": 1, "duration_s": 1}]"#,
            "a schedule ends by its time",
        ),
        (
            r#", "schedule": [{"rate": -1, "duration_s": 1}]"#,
            "schedule: rate: -1",
        ),
        (
            r#", "schedule": [{"rate": 1, "duration_s": 0}]"#,
            "schedule: duration_s: 0",
        ),
        (
            r#", "schedule": [{"rate": 0, "duration_s": 1}]"#,
            "nothing would be sent",
        ),
        (r#", "duration_s": 1, "colour": "red""#, "colour"),
        (r#", "duration_s": 1, "transport": "pigeon""#, "pigeon"),
    ];
    for (fields, wanted) in rows {
        assert!(
            reason(fields).contains(wanted),
            "{fields}: {}",
            reason(fields)
        );
    }
}
