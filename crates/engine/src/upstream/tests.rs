//! A third party as its callers see it, over real sockets; and its parts without any.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::upstream::Upstream;
use crate::upstream::spec::{Latency, *};
mod callers;

struct Caller(pub BufReader<TcpStream>);

struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Caller {
    pub fn of(upstream: &Upstream) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", upstream.port())).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.say(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        self.hear(true)
    }

    pub fn hear(&mut self, body: bool) -> Reply {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(
                self.0.read_line(&mut head).unwrap(),
                0,
                "closed after {head:?}"
            );
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.map_or(0, |text| text.parse().unwrap());
        let mut bytes = vec![0; if body { length } else { 0 }];
        self.0.read_exact(&mut bytes).unwrap();
        Reply {
            status: head[9..12].parse().unwrap(),
            head,
            body: bytes,
        }
    }

    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }
}

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
