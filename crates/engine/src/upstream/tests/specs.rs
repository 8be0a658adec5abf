//! Specifications, right and wrong.

use crate::upstream::latency::Latency;
use crate::upstream::spec::*;

#[test]
fn an_empty_specification_is_a_third_party_that_answers_at_once() {
    let spec = Spec::parse("{}").unwrap();
    assert_eq!(
        (
            spec.host.as_str(),
            spec.port,
            spec.body.clone(),
            spec.threads,
            spec.seed
        ),
        ("127.0.0.1", 0, Body::Filler(64), 1, 1)
    );
    assert_eq!(
        (spec.latency, spec.errors, spec.stall),
        (Latency::Fixed(0), 0.0, None)
    );
    assert_eq!(
        Spec::parse(r#"{"stall": null, "latency": null}"#)
            .unwrap()
            .stall,
        None
    );
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = r#"{"port": 70000, "latency": "soon", "errors": 2, "stall": {"every_s": 1, "for_s": 1, "x": 1},
        "body": -1, "threads": 0, "seed": 1.5, "host": 4, "latencies": "1ms"}"#;
    let problems = Spec::parse(text).unwrap_err().join("; ");
    for part in [
        "port is 70000",
        "latency: 'soon'",
        "errors is 2",
        "stall: 'x'",
        "body is -1",
        "threads is 0",
    ] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
    for part in [
        "seed is 1.5",
        "host is 4",
        "'latencies' is not one of host, port",
    ] {
        assert!(problems.contains(part), "{part} in {problems}");
    }
    let never_ends = Spec::parse(r#"{"stall": {"every_s": 1, "for_s": 1}}"#)
        .unwrap_err()
        .join("; ");
    assert!(never_ends.contains("ends before the next"), "{never_ends}");
}

#[test]
fn a_body_is_a_size_a_text_or_bytes_and_its_type_cannot_end_a_line() {
    let body = |text: &str| Spec::parse(text).map(|spec| (spec.body, spec.content_type));
    let json = r#"{"body": {"text": "{\"ok\": 1}"}, "type": "application/json"}"#;
    assert_eq!(
        body(json),
        Ok((
            Body::Told(br#"{"ok": 1}"#.to_vec()),
            "application/json".to_owned()
        ))
    );
    assert_eq!(
        body(r#"{"body": {"base64": "/wA="}}"#).unwrap().0,
        Body::Told(vec![255, 0])
    );
    for (wrong, said) in [
        (r#"{"type": "a/b\r\nSet-Cookie: x"}"#, "type is"),
        (r#"{"body": {"base64": "?"}}"#, "not base64"),
        (r#"{"body": {"file": "x"}}"#, "body: "),
        (r#"{"body": "ok"}"#, "body is"),
    ] {
        let problems = body(wrong).unwrap_err().join("; ");
        assert!(problems.contains(said), "{wrong}: {problems}");
    }
}

#[test]
fn no_text_makes_it_panic() {
    for text in [
        "",
        "[]",
        "{",
        "null",
        "1e999",
        r#"{"errors": 1e999}"#,
        r#"{"stall": 5}"#,
        r#"{"latency": "("}"#,
    ] {
        assert!(Spec::parse(text).is_err(), "{text}");
    }
    for latency in [
        "-1ms",
        "1e9s",
        "NaNs",
        "uniform(2ms,1ms)",
        "uniform()",
        "zipf(1)",
        "lognormal(1ms,x)",
        "5",
        "1ms)",
    ] {
        let text = serde_json::json!({ "latency": latency }).to_string();
        assert!(Spec::parse(&text).is_err(), "{latency}");
    }
}
