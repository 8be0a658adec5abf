//! Several requests by weight, and requests that differ each time, as the server reads them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Server;
use crate::{load, transports};

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Says what was asked: `GET /items/7` is answered with `item 7`, a POST with its body.
fn shop(line: &str, body: &str) -> (String, bool) {
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let answer = match (method, path.strip_prefix("/items/")) {
        ("GET", Some(item)) => ok(&format!("item {item}")),
        ("POST", None) => format!(
            "HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ),
        _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into(),
    };
    (answer, true)
}

fn mix() -> Value {
    json!([
        {"name": "item", "weight": 6, "path": "/items/{{random 10..99}}", "expect_contains": "item "},
        {"name": "cart", "weight": 3, "method": "POST", "path": "/cart", "body": {"text": "{\"n\": {{n}}}"}, "expect_status": 201},
        {"name": "lost", "weight": 1, "path": "/nowhere"}
    ])
}

#[test]
fn each_request_of_a_mix_is_told_by_itself() {
    for transport in transports() {
        let server = Server::saying(shop);
        let fields =
            json!({"mix": mix(), "template": true, "requests": 600, "threads": 2, "timeout_s": 5});
        let result = load(server.port, transport, &fields, b"", None);
        let rows = result["by_request"].as_array().unwrap();
        let sent: Vec<u64> = rows
            .iter()
            .map(|row| row["requests"].as_u64().unwrap())
            .collect();
        assert_eq!(sent.iter().sum::<u64>(), 600, "{result}");
        // The deviations are 12, 11 and 7.
        for (count, wanted) in sent.iter().zip([360, 180, 60]) {
            assert!(count.abs_diff(wanted) < 50, "{sent:?}");
        }
        assert_eq!(rows[0]["ok"], sent[0], "{rows:?}");
        assert_eq!(rows[1]["ok"], sent[1], "{rows:?}");
        assert_eq!(rows[2]["outcomes"]["bad_status"], sent[2], "{rows:?}");
        assert_eq!(result["ok"], sent[0] + sent[1]);
        assert!(rows[0]["latency_ms"]["sent"]["p50"].as_f64().unwrap() > 0.0);
        assert_eq!(rows[0]["weight"], 0.6);
    }
}

#[test]
fn a_body_that_differs_each_time_comes_whole_and_so_does_its_answer() {
    for transport in transports() {
        let server = Server::saying(shop);
        let body = format!("{{{{n}}}}{}", "x".repeat(200_000));
        let fields = json!({"template": true, "method": "POST", "requests": 40, "timeout_s": 5, "expect_contains": "9x"});
        let result = load(server.port, transport, &fields, body.as_bytes(), None);
        assert_eq!(
            result["ok"], 4,
            "9, 19, 29 and 39 of 40 are right: {result}"
        );
        assert_eq!(result["outcomes"]["wrong_body"], 36);
        assert_eq!(
            result["examples"][0]["text"],
            "a body of 200001 bytes without \"9x\" in it"
        );
        assert_eq!(result["by_request"], json!([]), "one request has no name");
    }
}

#[test]
fn each_connection_tells_the_cookies_it_was_given() {
    for transport in transports() {
        for keepalive in [true, false] {
            let server = Server::greeting(0);
            let fields = json!({"cookies": true, "connections": 3, "keepalive": keepalive});
            let result = load(server.port, transport, &fields, b"", None);
            assert_eq!(result["outcomes"]["ok"], 60, "{result}");
            // A stranger is greeted with 201 and a number of its own, a friend with 200.
            let strangers = json!({"cookies": true, "connections": 3, "keepalive": keepalive, "expect_status": 201});
            let result = load(server.port, transport, &strangers, b"", None);
            assert_eq!(
                result["outcomes"]["ok"], 3,
                "each came as a stranger once: {result}"
            );
            assert_eq!(result["outcomes"]["bad_status"], 57);
        }
    }
}

/// Closes a connection once in a while without an answer, as a server does that finds it idle.
fn fickle(line: &str, _: &str) -> (String, bool) {
    if line.contains("/items/3 ") {
        return (String::new(), false);
    }
    (ok(line), true)
}

#[test]
fn a_request_that_is_sent_again_is_the_same_one_and_only_where_that_does_no_harm() {
    for transport in transports() {
        let server = Server::saying(fickle);
        let mix = |method| json!([{"name": "it", "method": method, "path": "/items/{{n}}"}]);
        let fields =
            |method| json!({"mix": mix(method), "template": true, "requests": 8, "connections": 1});
        let result = load(server.port, transport, &fields("GET"), b"", None);
        assert_eq!(result["outcomes"]["reset"], 1, "{result}");
        assert_eq!(result["by_request"][0]["requests"], 8);
        // Request 3 meets a close, goes out again as request 3, and meets another.
        let again = || load(server.port, transport, &fields("GET"), b"", None);
        let result = soon(again, |result| result["resent"] == 1);
        assert_eq!(result["connections"]["reopened"], 2, "{result}");
        let result = load(server.port, transport, &fields("POST"), b"", None);
        assert_eq!(result["outcomes"]["reset"], 1, "{result}");
        assert_eq!(result["connections"]["reopened"], 1, "{result}");
        assert_eq!(result["resent"], 0, "{result}");
    }
}

/// Loads until a result is `seen`: on a busy machine the close of a server that closes at once may come late.
fn soon(load: impl Fn() -> Value, seen: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..9 {
        let result = load();
        if seen(&result) {
            return result;
        }
    }
    load()
}

/// Closes a connection in the place of every other answer to item 3.
fn twitchy(line: &str, _: &str) -> (String, bool) {
    static CLOSED: AtomicBool = AtomicBool::new(false);
    if line.contains("/items/3 ") && !CLOSED.fetch_xor(true, Ordering::SeqCst) {
        return (String::new(), false);
    }
    (ok(line), true)
}

/// Works on item 3 until its watchdog ends it.
fn crashing(line: &str, _: &str) -> (String, bool) {
    if line.contains("/items/3 ") {
        std::thread::sleep(Duration::from_millis(300));
        return (String::new(), false);
    }
    (ok(line), true)
}

#[test]
fn a_close_at_once_is_sent_again_and_a_crash_at_work_is_not() {
    let fields = json!({
        "mix": [{"name": "it", "path": "/items/{{n}}"}], "template": true, "requests": 8, "connections": 1
    });
    for transport in transports() {
        let server = Server::saying(twitchy);
        let again = || load(server.port, transport, &fields, b"", None);
        let result = soon(again, |result| result["ok"] == 8 && result["resent"] == 1);
        assert_eq!(result["ok"], 8, "{result}");
        assert_eq!(result["resent"], 1, "{result}");
        assert_eq!(result["connections"]["reopened"], 1, "{result}");
        let server = Server::saying(crashing);
        let result = load(server.port, transport, &fields, b"", None);
        assert_eq!(result["ok"], 7, "{result}");
        assert_eq!(result["outcomes"]["reset"], 1, "{result}");
        assert_eq!(result["resent"], 0, "{result}");
        assert_eq!(
            result["examples"][0]["text"],
            "the server closed the connection without an answer"
        );
    }
}
