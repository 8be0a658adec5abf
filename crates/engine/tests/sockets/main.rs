//! Whole loads over real sockets against small servers of known behaviour: both transports count the same.

mod chat;
mod fairness;
#[cfg(target_os = "linux")]
mod large;
#[cfg(target_os = "linux")]
mod large_mixes;
mod mixes;
mod schedules;
mod server;
mod websocket;

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use server::Server;
use velodrome_engine::engine;
use velodrome_engine::spec::LoadSpec;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn transports() -> &'static [&'static str] {
    if cfg!(target_os = "linux") {
        &["epoll", "io_uring"]
    } else {
        &["epoll"]
    }
}

/// Runs a load of 60 requests over 4 connections (changed by `fields`) and returns its document.
fn load(port: u16, transport: &str, fields: &Value, body: &[u8], expected: Option<&[u8]>) -> Value {
    let mut spec = json!({
        "url": format!("http://127.0.0.1:{port}/"), "connections": 4, "timeout_s": 0.5, "transport": transport
    });
    if fields.get("duration_s").is_none() {
        spec["requests"] = json!(60);
    }
    for (key, value) in fields.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
    let result = engine::run(&spec, body, expected, &mut |_| true).unwrap();
    serde_json::to_value(result).unwrap()
}

/// Asserts on all transports that a server's answers come to these outcomes, and to no others.
fn all_come_to(
    wanted: &[(&str, u64)],
    fields: Value,
    expected: Option<&[u8]>,
    serve: fn(&mut TcpStream, usize) -> bool,
) -> Vec<Value> {
    let run = |&transport: &&str| {
        let server = Server::start(serve);
        let result = load(server.port, transport, &fields, b"", expected);
        let name = if cfg!(target_os = "linux") {
            transport
        } else {
            "polling"
        };
        assert_eq!(result["generator"]["transport"], name);
        for (name, count) in result["outcomes"].as_object().unwrap() {
            let wanted = wanted
                .iter()
                .find(|(wanted, _)| wanted == name)
                .map_or(0, |(_, count)| *count);
            assert_eq!(count, wanted, "{name} over {transport}: {result}");
        }
        result
    };
    transports().iter().map(run).collect()
}

#[test]
fn keep_alive_uses_each_connection_again() {
    for result in all_come_to(&[("ok", 60)], json!({}), Some(b"ok"), |peer, _| {
        peer.write_all(OK).is_ok()
    }) {
        assert_eq!(
            result["connections"],
            json!({"asked": 4, "opened": 4, "reopened": 0, "answered": 4})
        );
        assert_eq!(
            result["latency_ms"]["due"]["p99.9"],
            Value::Null,
            "60 requests have no 99.9th percentile"
        );
        assert!(result["throughput_rps"].as_f64().unwrap() > 100.0);
    }
}

#[test]
fn a_server_that_closes_after_each_answer_is_served_too() {
    let close = |peer: &mut TcpStream, _| {
        peer.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
        false
    };
    for result in all_come_to(&[("ok", 60)], json!({}), Some(b"ok"), close) {
        assert_eq!(result["connections"]["reopened"], 56);
    }
    let delimited = |peer: &mut TcpStream, _| {
        peer.write_all(b"HTTP/1.0 200 OK\n\nok").unwrap();
        false
    };
    all_come_to(&[("ok", 60)], json!({}), Some(b"ok"), delimited);
    all_come_to(
        &[("ok", 60)],
        json!({"keepalive": false}),
        Some(b"ok"),
        |peer, _| peer.write_all(OK).is_ok(),
    );
}

#[test]
fn an_answer_in_chunks_split_anywhere_is_one_answer() {
    all_come_to(&[("ok", 60)], json!({}), Some(b"hello world"), |peer, _| {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n";
        answer.chunks(7).all(|part| peer.write_all(part).is_ok())
    });
}

#[test]
fn a_head_answer_has_a_length_and_no_body() {
    all_come_to(&[("ok", 60)], json!({"method": "HEAD"}), None, |peer, _| {
        peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n")
            .is_ok()
    });
}

#[test]
fn wrong_answers_are_told_apart() {
    let error = |peer: &mut TcpStream, _| {
        peer.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
            .is_ok()
    };
    for result in all_come_to(&[("bad_status", 60)], json!({}), None, error) {
        assert_eq!(
            result["examples"],
            json!([{"outcome": "bad_status", "text": "status 503 where 2xx is right"}])
        );
    }
    all_come_to(&[("ok", 60)], json!({"expect_status": 503}), None, error);
    all_come_to(&[("wrong_body", 60)], json!({}), Some(b"no"), |peer, _| {
        peer.write_all(OK).is_ok()
    });
    all_come_to(
        &[("bad_protocol", 4)],
        json!({"requests": 4}),
        None,
        |peer, _| peer.write_all(b"garbage\r\n\r\n").is_ok(),
    );
}

#[test]
fn a_close_or_reset_amid_the_answer_is_a_reset() {
    all_come_to(&[("reset", 8)], json!({"requests": 8}), None, |peer, _| {
        peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            .unwrap();
        false
    });
    all_come_to(&[("reset", 8)], json!({"requests": 8}), None, |peer, _| {
        server::reset(peer);
        false
    });
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let port = Server::start(|_, _| false).stop();
    for transport in transports() {
        for fields in [
            json!({"requests": 12}),
            json!({"requests": 12, "rate": 100.0}),
            json!({"requests": 12, "keepalive": false}),
        ] {
            let result = load(port, transport, &fields, b"", None);
            assert_eq!(result["outcomes"]["refused"], 12, "{result}");
            assert_eq!(result["requests"], 12);
            assert_eq!(result["latency_ms"]["due"]["p50"], Value::Null);
        }
    }
}

#[test]
fn a_server_that_says_nothing_times_out() {
    let silent = |_: &mut TcpStream, _| {
        std::thread::sleep(Duration::from_secs(2));
        false
    };
    for result in all_come_to(
        &[("timeout", 4)],
        json!({"requests": 4, "timeout_s": 0.2}),
        None,
        silent,
    ) {
        let age = result["latency_ms"]["due"]["p50"].as_f64().unwrap();
        assert!((200.0..300.0).contains(&age), "{age}");
    }
}

#[test]
fn twenty_megabytes_come_whole() {
    let result = all_come_to(
        &[("ok", 8)],
        json!({"requests": 8, "timeout_s": 20}),
        Some(&server::BIG),
        |peer, _| {
            peer.write_all(
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
                    server::BIG.len()
                )
                .as_bytes(),
            )
            .is_ok()
                && peer.write_all(&server::BIG).is_ok()
        },
    );
    assert_eq!(result.len(), transports().len());
}

#[test]
fn a_megabyte_is_uploaded_before_it_is_answered() {
    let body = vec![b'u'; 1 << 20];
    for transport in transports() {
        let server = Server::start(|peer, length| {
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{length:07}");
            peer.write_all(answer.as_bytes()).is_ok()
        });
        let fields = json!({"method": "POST", "timeout_s": 10});
        let result = load(server.port, transport, &fields, &body, Some(b"1048576"));
        assert_eq!(result["ok"], 60, "{result}");
        assert_eq!(result["answered_before_read"], 0);
    }
}

#[test]
fn an_answer_before_the_upload_was_read_is_told() {
    let body = vec![b'u'; 16 << 20];
    for transport in transports() {
        let server = Server::hasty();
        let fields = json!({"method": "POST", "requests": 4, "timeout_s": 10});
        let result = load(server.port, transport, &fields, &body, None);
        assert_eq!(result["ok"], 4, "{result}");
        assert_eq!(result["answered_before_read"], 4, "{result}");
    }
}

#[test]
fn threads_share_the_load_and_its_series_adds_up() {
    for transport in transports() {
        let server = Server::start(|peer, _| peer.write_all(OK).is_ok());
        let fields = json!({"duration_s": 1.3, "rate": 500.0, "threads": 3, "connections": 12, "warmup_s": 0.2});
        let result = load(server.port, transport, &fields, b"", None);
        assert_eq!(result["ok"], 650, "{result}");
        let series = result["series"].as_array().unwrap();
        assert_eq!(series.len(), 2);
        let sum: u64 = series
            .iter()
            .map(|second| second["ok"].as_u64().unwrap())
            .sum();
        let throughput = result["throughput_rps"].as_f64().unwrap();
        assert!(
            (throughput * 1.3 - sum as f64).abs() < 1.0,
            "{sum} {throughput}"
        );
    }
}

#[test]
fn an_event_that_says_no_ends_the_load_and_keeps_what_was_measured() {
    let server = Server::start(|peer, _| peer.write_all(OK).is_ok());
    let spec = json!({"url": format!("http://127.0.0.1:{}/", server.port), "connections": 2, "duration_s": 60});
    let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
    let mut events = Vec::new();
    let result = engine::run(&spec, b"", None, &mut |event| {
        let event: Value = serde_json::from_str(event).unwrap();
        events.push(event["event"].as_str().unwrap().to_owned());
        event["event"] != "tick" || event["requests"].as_u64() == Some(0)
    });
    let result = serde_json::to_value(result.unwrap()).unwrap();
    assert!(result["ok"].as_u64().unwrap() > 0);
    assert!(result["duration_s"].as_f64().unwrap() < 30.0);
    assert_eq!(events[..2], ["connected", "measuring"]);
    assert!(events.contains(&"span_ended".to_owned()), "{events:?}");
}

#[test]
fn the_wait_for_the_last_answers_is_ended_by_an_event_that_says_no() {
    let silent = |_: &mut TcpStream, _| {
        std::thread::sleep(Duration::from_secs(20));
        false
    };
    for transport in transports() {
        let server = Server::start(silent);
        let spec = json!({
            "url": format!("http://127.0.0.1:{}/", server.port), "connections": 2, "threads": 2, "duration_s": 0.1,
            "drain_s": 60, "timeout_s": 60, "transport": transport,
        });
        let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
        let (began, mut draining) = (Instant::now(), 0);
        let result = engine::run(&spec, b"", None, &mut |event| {
            draining += u32::from(event.contains(r#""phase":"drain""#));
            draining < 3
        });
        let result = serde_json::to_value(result.unwrap()).unwrap();
        assert_eq!(result["outcomes"]["unfinished"], 2);
        assert!(began.elapsed() < Duration::from_secs(10), "{transport}");
        std::mem::forget(server); // its threads still sleep
    }
}

#[test]
fn while_a_load_is_prepared_its_listener_is_asked_whether_it_goes_on() {
    // Takes connections and says nothing of its calls.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let url = format!("grpc://127.0.0.1:{port}/test.Echo/Unary");
    let spec = json!({"url": url, "connections": 1, "requests": 1, "grpc": {}});
    let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
    let (began, mut events) = (Instant::now(), Vec::new());
    let ended = engine::run(&spec, b"", None, &mut |event| {
        events.push(event.to_owned());
        events.len() < 3
    });
    assert!(matches!(ended, Err(engine::EngineError::Ended)));
    assert_eq!(events, [r#"{"event":"preparing"}"#; 3]);
    assert!(began.elapsed() < Duration::from_secs(5));
}
