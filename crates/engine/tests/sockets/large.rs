//! Large answers: dropped in the kernel where nobody looks at them, read and compared whole every now and then.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::load;
use crate::server::Server;

const BYTES: usize = 300_000;

fn head(length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

fn right(peer: &mut TcpStream, _: usize) -> bool {
    peer.write_all(&head(BYTES)).is_ok() && peer.write_all(&[b'x'; BYTES]).is_ok()
}

/// The right length, and one byte in the middle is another.
fn spoilt(peer: &mut TcpStream, _: usize) -> bool {
    let mut body = vec![b'x'; BYTES];
    body[BYTES / 2] = b'y';
    peer.write_all(&head(BYTES)).is_ok() && peer.write_all(&body).is_ok()
}

fn longer(peer: &mut TcpStream, _: usize) -> bool {
    peer.write_all(&head(BYTES + 1)).is_ok() && peer.write_all(&[b'x'; BYTES + 1]).is_ok()
}

fn torn(peer: &mut TcpStream, _: usize) -> bool {
    peer.write_all(&head(BYTES)).unwrap();
    peer.write_all(&[b'x'; BYTES / 2]).unwrap();
    false
}

fn outcome(result: &Value, name: &str) -> u64 {
    result["outcomes"][name].as_u64().unwrap()
}

#[test]
fn bodies_nobody_looks_at_are_dropped_and_the_result_says_so() {
    let server = Server::start(right);
    let fields = json!({"timeout_s": 10});
    let result = load(server.port, "auto", &fields, b"", None);
    assert_eq!(outcome(&result, "ok"), 60, "{result}");
    let told = &result["generator"];
    assert_eq!(told["transport"], "epoll", "it began with io_uring: {told}");
    assert_eq!(told["transport_because"], "large-answers");
    assert_eq!(told["unread_bytes"], BYTES);
    let dropped = told["dropped_bodies"].as_u64().unwrap();
    // The first 16 decide, and those in flight meanwhile are read as well.
    assert!((40..=44).contains(&dropped), "{told}");
    assert_eq!(told["compared_every"], Value::Null);
    assert_eq!(
        result["connections"]["reopened"], 0,
        "connections moved, none was made anew"
    );
}

#[test]
fn every_tenth_large_body_is_compared_whole() {
    for transport in ["auto", "epoll", "io_uring"] {
        let server = Server::start(spoilt);
        let fields = json!({"timeout_s": 10, "check_every": 10});
        let result = load(server.port, transport, &fields, b"", Some(&[b'x'; BYTES]));
        assert_eq!(outcome(&result, "wrong_body"), 6, "{transport}: {result}");
        assert_eq!(outcome(&result, "ok"), 54, "{transport}: {result}");
    }
}

#[test]
fn the_length_of_every_dropped_body_is_compared() {
    for transport in ["auto", "epoll"] {
        let server = Server::start(longer);
        let fields = json!({"timeout_s": 10, "check_every": 1000});
        let result = load(server.port, transport, &fields, b"", Some(&[b'x'; BYTES]));
        assert_eq!(outcome(&result, "wrong_body"), 60, "{transport}: {result}");
    }
}

#[test]
fn a_body_torn_while_it_is_dropped_is_a_reset() {
    for transport in ["auto", "epoll"] {
        let server = Server::start(torn);
        let fields = json!({"timeout_s": 10, "requests": 12});
        let result = load(server.port, transport, &fields, b"", None);
        assert_eq!(outcome(&result, "reset"), 12, "{transport}: {result}");
    }
}

#[test]
fn open_loops_and_fresh_connections_drop_bodies_as_well() {
    for fields in [
        json!({"timeout_s": 10, "rate": 300.0}),
        json!({"timeout_s": 10, "keepalive": false}),
    ] {
        let server = Server::start(right);
        let result = load(server.port, "auto", &fields, b"", None);
        assert_eq!(outcome(&result, "ok"), 60, "{result}");
        assert!(
            result["generator"]["dropped_bodies"].as_u64().unwrap() > 0,
            "{result}"
        );
    }
}
