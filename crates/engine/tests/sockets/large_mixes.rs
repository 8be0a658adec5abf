//! Large answers among small ones, to several requests or to one that differs each time: right ones, and wrong ones.

use serde_json::{Value, json};

use crate::load;
use crate::server::Server;

const BYTES: usize = 300_000;

fn announcing(announced: usize, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n{body}")
}

fn ok(body: &str) -> String {
    announcing(body.len(), body)
}

/// The number in `GET /large/7 HTTP/1.1`; None: a small answer is asked for.
fn number(line: &str) -> Option<usize> {
    let path = line.split(' ').nth(1).unwrap();
    path.strip_prefix("/large/")
        .map(|number| number.parse().unwrap())
}

/// 300 kB, or 5 bytes.
fn right(line: &str, _: &str) -> (String, bool) {
    match number(line) {
        Some(_) => (ok(&"x".repeat(BYTES)), true),
        None => (ok("small"), true),
    }
}

/// Each fifth large answer ends half-way through, and so does its connection.
fn torn(line: &str, body: &str) -> (String, bool) {
    match number(line) {
        Some(number) if number.is_multiple_of(5) => {
            (announcing(BYTES, &"x".repeat(BYTES / 2)), false)
        }
        _ => right(line, body),
    }
}

/// Each third large answer has another byte in the middle.
fn spoilt(line: &str, body: &str) -> (String, bool) {
    match number(line) {
        Some(number) if number.is_multiple_of(3) => {
            let half = "x".repeat(BYTES / 2);
            (ok(&format!("{half}y{}", &half[1..])), true)
        }
        _ => right(line, body),
    }
}

/// Each fourth large answer is a byte longer than its head says.
fn longer(line: &str, body: &str) -> (String, bool) {
    match number(line) {
        Some(number) if number.is_multiple_of(4) => {
            (announcing(BYTES, &"x".repeat(BYTES + 1)), true)
        }
        _ => right(line, body),
    }
}

/// The same as `right`, in one chunk.
fn in_chunks(_: &str, _: &str) -> (String, bool) {
    let body = "x".repeat(BYTES);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{BYTES:x}\r\n{body}\r\n0\r\n\r\n"
    );
    (answer, true)
}

/// One request that is filled in anew: the server sees its number.
fn counted() -> Value {
    json!({"mix": [{"name": "large", "path": "/large/{{n}}"}], "template": true, "timeout_s": 10})
}

fn run(server: &Server, transport: &str, fields: &Value) -> Value {
    load(server.port, transport, fields, b"", None)
}

fn count(of: &Value, name: &str) -> u64 {
    of["outcomes"][name].as_u64().unwrap()
}

fn dropped(result: &Value) -> u64 {
    result["generator"]["dropped_bodies"].as_u64().unwrap()
}

#[test]
fn bodies_of_a_request_that_is_filled_in_anew_are_dropped() {
    for (transport, least) in [("auto", 40), ("epoll", 56)] {
        let server = Server::saying(right);
        let result = run(&server, transport, &counted());
        assert_eq!(count(&result, "ok"), 60, "{result}");
        let told = &result["generator"];
        assert_eq!(told["transport"], "epoll");
        assert!((least..=60).contains(&dropped(&result)), "{told}");
        assert_eq!(result["connections"]["reopened"], 0);
        let because = json!({"auto": "large-answers", "epoll": "asked"})[transport].clone();
        assert_eq!(told["transport_because"], because, "{told}");
    }
}

#[test]
fn of_a_mix_only_the_large_answers_nobody_looks_at_are_dropped() {
    for transport in ["auto", "epoll", "io_uring"] {
        let server = Server::saying(right);
        let mix = json!([
            {"name": "large", "path": "/large/{{n}}"},
            {"name": "small", "path": "/small", "weight": 2, "expect_body": {"text": "small"}},
            {"name": "read", "path": "/large/{{n}}", "expect_contains": "x"}
        ]);
        let fields = json!({"mix": mix, "template": true, "timeout_s": 10, "requests": 240});
        let result = run(&server, transport, &fields);
        assert_eq!(count(&result, "ok"), 240, "{result}");
        let large = result["by_request"][0]["requests"].as_u64().unwrap();
        assert!((30..90).contains(&large), "{result}");
        assert_eq!(result["generator"]["compared_every"], 1);
        match transport {
            "auto" => assert!((1..=large).contains(&dropped(&result)), "{result}"),
            // Nobody knew of the first of each connection that it would be large.
            "epoll" => assert!((large - 4..=large).contains(&dropped(&result)), "{result}"),
            _ => assert_eq!(dropped(&result), 0, "{result}"),
        }
    }
}

#[test]
fn nothing_is_dropped_where_every_answer_has_to_be_read() {
    let right: fn(&str, &str) -> (String, bool) = right;
    let each = json!([{"name": "it", "path": "/large/{{n}}", "expect_contains": "x"}]);
    let whole =
        json!([{"name": "it", "path": "/large/{{n}}", "expect_body": {"text": "x".repeat(BYTES)}}]);
    let none = json!([{"name": "it", "path": "/large/{{n}}"}]);
    let small = json!([{"name": "it", "path": "/small"}]);
    for (mix, answer) in [
        (each, right),
        (whole, right),
        (none, in_chunks),
        (small, right),
    ] {
        let server = Server::saying(answer);
        let fields = json!({"mix": mix, "template": true, "timeout_s": 10});
        let result = run(&server, "auto", &fields);
        assert_eq!(count(&result, "ok"), 60, "{result}");
        assert_eq!(dropped(&result), 0, "{result}");
        let told = &result["generator"];
        assert_eq!(told["transport"], "io_uring", "{told}");
        assert_eq!(told["transport_because"], "closed-loop");
        assert_eq!(told["unread_bytes"], Value::Null);
    }
}

#[test]
fn answers_torn_now_and_then_are_resets_and_never_right() {
    for transport in ["auto", "epoll", "io_uring"] {
        let server = Server::saying(torn);
        let result = run(&server, transport, &counted());
        assert_eq!(count(&result, "reset"), 12, "{transport}: {result}");
        assert_eq!(count(&result, "ok"), 48, "{transport}: {result}");
    }
}

#[test]
fn answers_longer_than_announced_are_noticed_though_they_are_dropped() {
    for transport in ["auto", "epoll", "io_uring"] {
        let server = Server::saying(longer);
        // With pauses between requests, a byte too many is there before the next one goes out.
        let mut fields = counted();
        fields["rate"] = json!(200.0);
        fields["connections"] = json!(1);
        let result = run(&server, transport, &fields);
        assert_eq!(
            count(&result, "ok") + count(&result, "bad_protocol"),
            60,
            "{result}"
        );
        let bad = count(&result, "bad_protocol");
        assert!((1..=15).contains(&bad), "{transport}: {result}");
    }
}

#[test]
fn another_content_is_found_where_bodies_are_compared_and_only_there() {
    let asked = |more: Value| {
        let mut request = json!({"name": "large", "path": "/large/{{n}}"});
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([request])
    };
    let whole = json!({"expect_body": {"text": "x".repeat(BYTES)}});
    for transport in ["auto", "epoll", "io_uring"] {
        let server = Server::saying(spoilt);
        // 0, 3, 6, … of 60 are spoilt; every tenth is looked at: 0 and 30 are both.
        for (mix, check_every, wrong) in [
            (asked(whole.clone()), 1, 20),
            (asked(whole.clone()), 10, 2),
            (asked(json!({})), 1, 0),
        ] {
            let fields =
                json!({"mix": mix, "template": true, "timeout_s": 10, "check_every": check_every});
            let result = run(&server, transport, &fields);
            assert_eq!(count(&result, "wrong_body"), wrong, "{transport}: {result}");
            assert_eq!(count(&result, "ok"), 60 - wrong, "{transport}: {result}");
        }
    }
}

#[test]
fn cookies_of_answers_whose_bodies_are_dropped_are_told_again() {
    for transport in ["auto", "epoll"] {
        let server = Server::greeting(BYTES);
        let fields =
            json!({"cookies": true, "connections": 3, "expect_status": 200, "timeout_s": 10});
        let result = load(server.port, transport, &fields, b"", None);
        assert_eq!(
            count(&result, "bad_status"),
            3,
            "each came as a stranger once: {result}"
        );
        assert_eq!(count(&result, "ok"), 57, "{result}");
        assert!(dropped(&result) >= 40, "{result}");
    }
}
