//! WebSockets over real sockets, against a server by others.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::chat::Chat;
use crate::{load, transports};

/// Goodbyes come after the load: waits until there are so many.
fn goodbyes(chat: &Chat, count: usize) -> Vec<u16> {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let goodbyes = chat.goodbyes.lock().unwrap().clone();
        if goodbyes.len() >= count || Instant::now() > deadline {
            return goodbyes;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn messages_come_back_on_connections_that_stay() {
    for transport in transports() {
        let chat = Chat::start();
        let url = format!("ws://127.0.0.1:{}/echo", chat.port);
        for body in [&b"hello"[..], b"\xff\xfe binary", &[b'x'; 200_000]] {
            let result = load(
                chat.port,
                transport,
                &json!({"url": url, "websocket": {}}),
                body,
                None,
            );
            assert_eq!(result["ok"], 60, "{transport}: {result}");
            assert_eq!(result["connections"]["opened"], 4);
            let said = &result["load"];
            assert_eq!(
                (&said["protocol"], &said["mode"]),
                (&json!("websocket"), &json!("echo"))
            );
            assert_eq!(said["message_bytes"], body.len());
        }
        assert_eq!(
            goodbyes(&chat, 12),
            [1000; 12],
            "each connection is closed with a word"
        );
    }
}

#[test]
fn to_connect_is_a_connection_for_each_request() {
    for transport in transports() {
        let chat = Chat::start();
        let url = format!("ws://127.0.0.1:{}/echo", chat.port);
        let fields = json!({"url": url, "websocket": {"mode": "connect"}});
        let result = load(chat.port, transport, &fields, b"", None);
        assert_eq!(result["ok"], 60, "{transport}: {result}");
        assert_eq!(
            (
                &result["connections"]["opened"],
                &result["connections"]["reopened"]
            ),
            (&json!(4), &json!(56))
        );
        assert_eq!(result["load"]["message_bytes"], json!(null));
        assert_eq!(goodbyes(&chat, 60), [1000; 60]);
    }
}

#[test]
fn all_members_of_a_room_get_each_message() {
    for transport in transports() {
        let chat = Chat::start();
        let url = format!("ws://127.0.0.1:{}/room", chat.port);
        let fields = json!({
            "url": url, "connections": 10, "timeout_s": 5, "websocket": {"mode": "broadcast", "message_bytes": 100}
        });
        let result = load(chat.port, transport, &fields, b"", None);
        assert_eq!(result["ok"], 60, "{transport}: {result}");
        let deliveries = &result["deliveries"];
        assert_eq!(
            (&deliveries["count"], &deliveries["again"]),
            (&json!(600), &json!(0))
        );
        let (each, last) = (
            &deliveries["latency_ms"]["sent"],
            &result["latency_ms"]["sent"],
        );
        assert!(each["p50"].as_f64() <= last["p50"].as_f64(), "{result}");
        assert!(each["max"].as_f64() <= last["max"].as_f64(), "{result}");
        assert!(result["hdr"]["deliveries"].is_string());
        assert_eq!(result["load"]["at_once"], 1);
        assert_eq!(goodbyes(&chat, 10), [1000; 10]);
    }
}

#[test]
fn what_is_no_websocket_load_is_refused_with_the_reason() {
    use velodrome_engine::engine;
    use velodrome_engine::spec::LoadSpec;
    let rows = [
        (r#""url": "ws://127.0.0.1:1/", "streams": 2"#, "streams"),
        (
            r#""url": "http://127.0.0.1:1/", "websocket": {}"#,
            "begins with ws://",
        ),
        (
            r#""url": "grpc://127.0.0.1:1/a.B/C", "websocket": {}"#,
            "begins with ws://",
        ),
        (
            r#""url": "ws://127.0.0.1:1/", "grpc": {}"#,
            "begins with grpc://",
        ),
        (r#""url": "ws://127.0.0.1:1/", "method": "POST""#, "a GET"),
        (
            r#""url": "ws://127.0.0.1:1/", "method": "POST", "websocket": {}"#,
            "a GET",
        ),
        (
            r#""url": "ws://127.0.0.1:1/", "websocket": {"mode": "shout"}"#,
            "unknown variant",
        ),
        (
            r#""url": "ws://127.0.0.1:1/", "websocket": {"at_once": 2}"#,
            "at_once is for broadcast",
        ),
        (
            r#""url": "ws://127.0.0.1:1/", "threads": 2, "websocket": {"mode": "broadcast"}"#,
            "heard by one thread",
        ),
        (
            r#""url": "ws://127.0.0.1:1/", "websocket": {"mode": "broadcast", "message_bytes": 15}"#,
            "16 bytes at least",
        ),
        (
            r#""url": "ws://127.0.0.1:1/", "websocket": {"mode": "connect", "message_bytes": 15}"#,
            "connect: a message has no effect",
        ),
        (
            r#""url": "ws://127.0.0.1:1/", "headers": [["Sec-WebSocket-Key", "x"]]"#,
            "Sec-WebSocket-Key",
        ),
    ];
    for (fields, why) in rows {
        let json = format!(r#"{{"duration_s": 1, {fields}}}"#);
        let error = match LoadSpec::from_json(&json) {
            Ok(spec) => engine::run(&spec, b"", None, &mut |_| true)
                .unwrap_err()
                .to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(why), "{fields}: {error}");
    }
}
