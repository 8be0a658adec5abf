//! Loads of gRPC calls over real sockets against a server by others: both transports count the same.

mod description;
mod security;
mod server;

use description::{Said, framed};
use serde_json::{Value, json};
use server::{Manners, Server};
use velodrome_engine::engine;
use velodrome_engine::spec::LoadSpec;

fn transports() -> &'static [&'static str] {
    if cfg!(target_os = "linux") {
        &["epoll", "io_uring"]
    } else {
        &["epoll"]
    }
}

/// Runs a load of 60 calls over 2 connections of 3 streams, changed by `fields`.
fn load(url: &str, fields: &Value, body: &[u8], expected: Option<&[u8]>) -> Result<Value, String> {
    let mut spec = json!({
        "url": url, "connections": 2, "streams": 3, "requests": 60, "timeout_s": 10, "grpc": {"kind": "unary"}
    });
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let spec = LoadSpec::from_json(&spec.to_string()).map_err(|error| error.0)?;
    engine::run(&spec, body, expected, &mut |_| true)
        .map(|result| serde_json::to_value(result).unwrap())
        .map_err(|error| error.to_string())
}

fn echo(server: &Server, method: &str) -> String {
    format!("grpc://127.0.0.1:{}/test.Echo/{method}", server.port)
}

fn said(text: &str) -> bytes::Bytes {
    framed(&Said { text: text.into() })
}

#[test]
fn calls_are_made_over_the_connections_asked_for_and_no_others() {
    for transport in transports() {
        let server = Server::start(Manners::default());
        let message = said("hello");
        let fields = json!({"transport": transport});
        let result = load(&echo(&server, "Unary"), &fields, &message, Some(&message)).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
        assert_eq!(
            result["connections"],
            json!({"asked": 2, "opened": 2, "reopened": 0, "answered": 2})
        );
        assert_eq!(result["streams"], json!({"asked": 6, "without_room": 0}));
        // A connection has what its three streams have.
        assert_eq!(result["fairness"]["connections"], 2);
        assert_eq!(result["fairness"]["answers"], 60);
        assert_eq!((server.calls(), server.connections()), (60, 2));
        assert_eq!(result["load"]["call"], "/test.Echo/Unary");
    }
}

#[test]
fn a_megabyte_goes_and_comes_whole_through_windows_of_64_kilobytes() {
    let message = said(&"velodrome ".repeat(100_000));
    for transport in transports() {
        let server = Server::start(Manners::default());
        let fields = json!({"transport": transport, "requests": 24, "timeout_s": 30});
        let result = load(&echo(&server, "Unary"), &fields, &message, Some(&message)).unwrap();
        assert_eq!(result["ok"], 24, "{result}");
        assert_eq!(result["answered_before_read"], 0);
    }
}

#[test]
fn an_upload_of_many_messages_is_answered_once() {
    let messages = [said("a"), said(&"b".repeat(70_000)), said("c")].concat();
    let right = said(&messages.len().to_string());
    for transport in transports() {
        let server = Server::start(Manners::default());
        let fields = json!({"transport": transport, "grpc": {"kind": "client_streaming"}});
        let result = load(&echo(&server, "Collect"), &fields, &messages, Some(&right)).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
    }
}

#[test]
fn the_first_of_several_messages_is_timed_apart_from_the_last() {
    let server = Server::start(Manners::default());
    let message = said("again");
    let right = [&message[..], &message, &message].concat();
    let fields = json!({"requests": 12, "grpc": {"kind": "server_streaming"}});
    let result = load(&echo(&server, "Repeat"), &fields, &message, Some(&right)).unwrap();
    assert_eq!(result["ok"], 12, "{result}");
    let first = result["first_message_ms"]["sent"]["p50"].as_f64().unwrap();
    let last = result["latency_ms"]["sent"]["p50"].as_f64().unwrap();
    assert!(last > 60.0 && first < last - 30.0, "{first} {last}");
}

#[test]
fn a_conversation_goes_to_and_fro() {
    for transport in transports() {
        let server = Server::start(Manners::default());
        let messages = [said("one"), said("two"), said(&"three".repeat(20_000))].concat();
        let fields = json!({"transport": transport, "grpc": {"kind": "bidirectional"}});
        let result = load(&echo(&server, "Chat"), &fields, &messages, Some(&messages)).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
    }
}

#[test]
fn goaway_loses_no_call() {
    for transport in transports() {
        let server = Server::start(Manners {
            leaves_after: Some(10),
            ..Manners::default()
        });
        let message = said("bye");
        let fields = json!({"transport": transport});
        let result = load(&echo(&server, "Unary"), &fields, &message, Some(&message)).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
        let reopened = result["connections"]["reopened"].as_u64().unwrap();
        assert!((2..=6).contains(&reopened), "{result}");
        assert_eq!(server.connections(), 2 + reopened);
    }
}

#[test]
fn streams_beyond_what_the_server_allows_carry_nothing_and_that_is_told() {
    for transport in transports() {
        let server = Server::start(Manners {
            streams: Some(2),
            ..Manners::default()
        });
        let message = said("few");
        let fields = json!({"transport": transport, "streams": 5});
        let result = load(&echo(&server, "Unary"), &fields, &message, Some(&message)).unwrap();
        assert_eq!(result["ok"], 60, "{result}");
        assert_eq!(result["streams"], json!({"asked": 10, "without_room": 6}));
        assert!(
            result["flags"].to_string().contains("streams-without-room"),
            "{result}"
        );
    }
}

#[test]
fn a_call_that_is_not_answered_is_reset_and_its_connection_kept() {
    for transport in transports() {
        let server = Server::start(Manners::default());
        let fields = json!({"transport": transport, "requests": 6, "timeout_s": 0.3});
        let result = load(&echo(&server, "Never"), &fields, &said("?"), None).unwrap();
        assert_eq!(result["outcomes"]["timeout"], 6, "{result}");
        assert_eq!(result["connections"]["reopened"], 0);
        assert_eq!(server.connections(), 2);
    }
}

#[test]
fn a_status_that_is_not_ok_is_told_by_its_name() {
    let server = Server::start(Manners::default());
    let url = echo(&server, "Nothing");
    let result = load(&url, &json!({}), &said("x"), None).unwrap();
    assert_eq!(result["outcomes"]["bad_status"], 60);
    assert_eq!(
        result["examples"][0]["text"],
        "grpc-status 12 UNIMPLEMENTED"
    );
}

#[test]
fn an_open_loop_over_many_streams_keeps_its_rate() {
    for transport in transports() {
        let server = Server::start(Manners::default());
        let message = said("tick");
        let fields = json!({"transport": transport, "rate": 500, "requests": 250, "threads": 2, "streams": 50});
        let result = load(&echo(&server, "Unary"), &fields, &message, Some(&message)).unwrap();
        assert_eq!(
            (&result["ok"], &result["requests"]),
            (&json!(250), &json!(250)),
            "{result}"
        );
        assert_eq!(result["connections"]["opened"], 2, "one for each thread");
    }
}

#[test]
fn a_server_describes_its_calls_in_either_version_of_reflection() {
    for name in [
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ] {
        let server = Server::start(Manners {
            reflects: Some(name),
            ..Manners::default()
        });
        let call = |method: &str, grpc: Value| {
            load(&echo(&server, method), &json!({"grpc": grpc}), b"", None)
        };
        let text = r#"{"text": "{{n}} {{random}}"}"#;
        let result = call("Unary", json!({"data": text})).unwrap();
        assert_eq!(
            (&result["ok"], &result["load"]["kind"]),
            (&json!(60), &json!("unary"))
        );
        let same =
            json!({"data": "{\"text\": \"a\"}", "messages": 4, "expect_data": "{\"text\": \"a\"}"});
        let result = call("Chat", same).unwrap();
        assert_eq!(
            (&result["ok"], &result["load"]["kind"]),
            (&json!(60), &json!("bidirectional"))
        );
        let wrong = json!({"data": "{\"text\": \"a\"}", "expect_data": "{\"text\": \"b\"}"});
        let result = call("Unary", wrong).unwrap();
        assert_eq!(result["outcomes"]["wrong_body"], 60);
        assert!(
            result["examples"][0]["text"]
                .as_str()
                .unwrap()
                .contains(r#"{"text":"a"}"#),
            "{result}"
        );
        let error = call("Unari", json!({})).unwrap_err();
        assert!(
            error.contains(
                "no test.Echo/Unari. Nearest: test.Echo/Unary. There are: test.Echo/Chat"
            ),
            "{error}"
        );
        let error = load(
            &format!("grpc://127.0.0.1:{}/test.Ecco/Unary", server.port),
            &json!({"grpc": {}}),
            b"",
            None,
        );
        let error = error.unwrap_err();
        assert!(
            error.contains("no test.Ecco/Unary. Nearest: test.Echo/Unary"),
            "{error}"
        );
    }
}

#[test]
fn a_server_that_does_not_describe_itself_is_told_with_the_cure() {
    let server = Server::start(Manners::default());
    let error = load(&echo(&server, "Unary"), &json!({"grpc": {}}), b"", None).unwrap_err();
    assert!(
        error.contains("does not describe its calls") && error.contains("--proto"),
        "{error}"
    );
    let port = server.port;
    drop(server);
    let url = format!("grpc://127.0.0.1:{port}/test.Echo/Unary");
    let error = load(&url, &json!({"grpc": {}}), b"", None).unwrap_err();
    assert!(
        error.contains("cannot be asked to describe its calls: Connection refused"),
        "{error}"
    );
}
