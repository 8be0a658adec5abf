//! How evenly connections are served: against servers whose manners are known.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chat::Chat;
use crate::server::Server;
use crate::{load, transports};

const CONNECTIONS: u64 = 16;
/// By then a client on a busy machine has mostly sent its next request.
const SOON: Duration = Duration::from_millis(50);

fn flags(result: &Value) -> Vec<&str> {
    let flags = result["flags"].as_array().unwrap();
    flags.iter().filter_map(Value::as_str).collect()
}

fn number(result: &Value, name: &str) -> f64 {
    result["fairness"][name].as_f64().unwrap()
}

#[test]
fn a_server_that_starves_connections_is_flagged_and_one_that_takes_turns_is_not() {
    for transport in transports() {
        for (burst, threads, fair) in [(1, 1, true), (200, 1, false), (200, 2, false)] {
            let server = Server::in_bursts(burst, SOON);
            let fields = json!({
                "connections": CONNECTIONS, "requests": 12_800, "threads": threads, "timeout_s": 30
            });
            let result = load(server.port, transport, &fields, b"", Some(b"ok"));
            let fairness = &result["fairness"];
            assert_eq!(fairness["connections"], CONNECTIONS);
            assert_eq!(
                (&fairness["answers"], &result["ok"]),
                (&json!(12_800), &json!(12_800))
            );
            let short = number(&result, "jain_short_term");
            assert_eq!(flags(&result).contains(&"unfair"), !fair, "{fairness}");
            // A client that is late on a busy machine loses a turn.
            assert_eq!(short > 0.75, fair, "{fairness}");
            // The span gives all of them as much: it is on the way that they are starved.
            assert!(short <= number(&result, "jain") + 0.01, "{fairness}");
            if !fair {
                // Of 16 that are served one after the other each waits for 15 others, and the median request for none.
                let p50 = result["latency_ms"]["due"]["p50"].as_f64().unwrap();
                assert!(
                    number(&result, "median_connection_ms") > 3.0 * p50,
                    "{p50} {fairness}"
                );
            }
        }
    }
}

#[test]
fn a_connection_that_gets_nothing_has_the_least() {
    for transport in transports() {
        // All requests are those of whoever comes first.
        let server = Server::in_bursts(usize::MAX, Duration::from_secs(20));
        let fields = json!({"connections": 4, "duration_s": 0.5, "timeout_s": 30, "drain_s": 0.1});
        let result = load(server.port, transport, &fields, b"", Some(b"ok"));
        let fairness = &result["fairness"];
        assert_eq!(
            (&fairness["least"], &fairness["most"]),
            (&json!(0), &fairness["answers"])
        );
        assert!((number(&result, "jain") - 0.25).abs() < 1e-9, "{fairness}");
        assert_eq!(fairness["median_connection_ms"], Value::Null);
        assert!(flags(&result).contains(&"unfair"));
        std::mem::forget(server); // its threads still wait for their turns
    }
}

#[test]
fn messages_of_websockets_count_for_their_connection_and_those_to_a_room_for_none() {
    let chat = Chat::start();
    for transport in transports() {
        let url = format!("ws://127.0.0.1:{}/echo", chat.port);
        let fields = json!({"url": url, "connections": 3, "requests": 90});
        let result = load(chat.port, transport, &fields, b"hello", None);
        assert_eq!(result["fairness"]["connections"], 3, "{result}");
        assert_eq!(result["fairness"]["answers"], result["ok"]);
        let url = format!("ws://127.0.0.1:{}/room", chat.port);
        let fields = json!({
            "url": url, "connections": 3, "requests": 9,
            "websocket": {"mode": "broadcast", "message_bytes": 16}
        });
        let result = load(chat.port, transport, &fields, b"", None);
        assert_eq!(result["fairness"], Value::Null);
    }
}

#[test]
fn an_open_loop_chooses_its_connections_itself() {
    let server = Server::in_bursts(1, SOON);
    let fields = json!({"rate": 1_000, "requests": 50});
    let result = load(server.port, "epoll", &fields, b"", Some(b"ok"));
    assert_eq!(result["fairness"], Value::Null);
}
