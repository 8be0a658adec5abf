//! Plain requests over HTTP/2.

use serde_json::{Value, json};

use crate::server::{At, Server};
use crate::{load, transports};

fn url(server: &Server, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", server.port)
}

fn with(fields: Value) -> Value {
    let mut all = json!({"http2": true});
    for (key, value) in fields.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

#[test]
fn requests_share_the_connections_asked_for() {
    for transport in transports() {
        let server = Server::start(At::Port, true, None);
        let fields = with(json!({"transport": transport, "streams": 5}));
        let result = load(&url(&server, "/items/7"), &fields, b"", Some(b"item 7")).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
        assert_eq!(server.connections(), 2);
        assert_eq!(result["load"]["protocol"], "http2");
        assert_eq!(result["streams"], json!({"asked": 10, "without_room": 0}));
    }
}

#[test]
fn wrong_answers_are_told_apart() {
    let server = Server::start(At::Port, true, None);
    let result = load(&url(&server, "/nowhere"), &with(json!({})), b"", None).unwrap();
    assert_eq!(result["outcomes"]["bad_status"], 60, "{result}");
    assert_eq!(
        result["examples"][0]["text"],
        "status 404 where 2xx is right"
    );
    let result = load(
        &url(&server, "/items/7"),
        &with(json!({})),
        b"",
        Some(b"item 8"),
    )
    .unwrap();
    assert_eq!(result["outcomes"]["wrong_body"], 60, "{result}");
    let head = with(json!({"method": "HEAD"}));
    let result = load(&url(&server, "/items/7"), &head, b"", Some(b"item 7")).unwrap();
    assert_eq!(result["ok"], 60, "{result}");
}

#[test]
fn a_close_at_once_is_sent_again_and_a_crash_at_work_is_not() {
    for transport in transports() {
        let server = Server::start(At::Port, true, None);
        let fields = with(json!({"transport": transport, "connections": 1, "requests": 6}));
        // On a busy machine a close at once may come late.
        let at_once = || load(&url(&server, "/crash/0"), &fields, b"", None).unwrap();
        let seen = (0..10)
            .map(|_| at_once())
            .find(|result| result["ok"] == 6)
            .unwrap_or_else(at_once);
        assert_eq!(seen["ok"], 6, "{seen}");
        assert_eq!(seen["resent"], 2, "{seen}");
        let late = load(&url(&server, "/crash/300"), &fields, b"", None).unwrap();
        assert_eq!(late["ok"], 4, "{late}");
        assert_eq!(late["outcomes"]["reset"], 2, "{late}");
        assert_eq!(late["resent"], 0, "{late}");
    }
}

#[test]
fn a_body_is_sent_with_its_length_and_comes_back() {
    for transport in transports() {
        let server = Server::start(At::Port, true, None);
        let body = vec![b'u'; 300_000];
        let fields = with(json!({"method": "POST", "transport": transport, "streams": 3}));
        let result = load(&url(&server, "/cart"), &fields, &body, Some(&body)).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
    }
}

#[test]
fn a_mix_of_templates_is_filled_in_head_and_body() {
    let mix = json!([
        {"name": "item", "path": "/items/{{random 100..999}}", "expect_contains": "item ", "headers": [["X-N", "{{n}}"]]},
        {"name": "cart", "method": "POST", "path": "/cart", "body": {"text": "{{uuid}}{{n}}"}, "expect_status": 201},
        {"name": "fixed", "path": "/items/7", "expect_body": {"text": "item 7"}}
    ]);
    for transport in transports() {
        let server = Server::start(At::Port, true, None);
        let fields = with(
            json!({"mix": mix, "template": true, "streams": 4, "requests": 300, "transport": transport}),
        );
        let result = load(&url(&server, "/"), &fields, b"", None).unwrap();
        assert_eq!(result["ok"], 300, "{result}");
        let rows = result["by_request"].as_array().unwrap();
        let sent: u64 = rows
            .iter()
            .map(|row| row["requests"].as_u64().unwrap())
            .sum();
        assert_eq!(sent, 300);
        assert!(
            rows.iter().all(|row| row["ok"].as_u64().unwrap() > 50),
            "{rows:?}"
        );
    }
}

#[test]
fn a_server_that_speaks_http1_only_is_told_as_such() {
    let server = Server::start(At::Port, false, None);
    let fields = with(json!({"requests": 4, "timeout_s": 0.5}));
    let result = load(&url(&server, "/items/7"), &fields, b"", None).unwrap();
    assert_eq!(result["ok"], 0, "{result}");
    assert!(result["examples"][0]["text"].is_string(), "{result}");
}

#[test]
fn what_http2_cannot_carry_is_one_sentence() {
    let rows = [
        (
            "http://127.0.0.1:1/",
            with(json!({"headers": [["Keep-Alive", "5"]]})),
            "leave it out for HTTP/2",
        ),
        (
            "ws://127.0.0.1:1/",
            with(json!({})),
            "WebSockets are opened over HTTP/1.1",
        ),
        (
            "grpc://127.0.0.1:1/a/b",
            with(json!({})),
            "gRPC is HTTP/2 by itself",
        ),
        (
            "http://127.0.0.1:1/",
            json!({"streams": 2}),
            "more at once need grpc:// or HTTP/2",
        ),
    ];
    for (url, fields, wanted) in rows {
        let fault = load(url, &fields, b"", None).unwrap_err();
        assert!(fault.contains(wanted), "{fault}");
    }
}
