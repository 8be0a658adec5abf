//! Over WebSockets. No peer here reads what it is answered.

use std::net::TcpStream;

use serde_json::json;
use velodrome_engine::protocol::websocket::accept;

use crate::all_come_to;
use crate::peer::{forever, head, say};

fn comes_to(outcome: &str, says: &str, talk: fn(&mut TcpStream)) {
    let fields = json!({"websocket": {"message_bytes": 1 << 20}});
    all_come_to(outcome, says, "ws", fields, talk);
}

/// The opening handshake, as it should be.
fn greet(peer: &mut TcpStream) {
    let request = head(peer);
    let key = request
        .lines()
        .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
        .unwrap_or_default();
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accept(key.as_bytes())
    );
    say(peer, answer.as_bytes());
}

#[test]
fn a_handshake_without_an_end_is_given_up() {
    comes_to("bad_protocol", "longer than", |peer| {
        head(peer);
        say(peer, b"HTTP/1.1 101 S\r\nX-Filler: ");
        forever(peer, b"0123456789");
    });
}

#[test]
fn garbage_is_no_frame() {
    comes_to("bad_protocol", "bad frame", |peer| {
        greet(peer);
        forever(peer, b"\xff\xfe\xfd\xfc");
    });
}

#[test]
fn a_frame_of_two_to_the_63rd_is_refused() {
    comes_to(
        "bad_protocol",
        "its length is not written as it must be",
        |peer| {
            greet(peer);
            say(peer, b"\x82\x7f\x80\0\0\0\0\0\0\0");
            forever(peer, b"x");
        },
    );
}

#[test]
fn a_frame_just_below_it_is_refused_at_once() {
    comes_to("bad_protocol", "larger than", |peer| {
        greet(peer);
        say(peer, b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff");
        forever(peer, b"x");
    });
}

#[test]
fn a_message_in_pieces_without_an_end_is_given_up() {
    comes_to("bad_protocol", "larger than", |peer| {
        greet(peer);
        say(peer, b"\x02\0");
        forever(peer, &[&b"\0\x7d"[..], &[b'x'; 125]].concat());
    });
}

#[test]
fn floods_of_frames_that_carry_nothing_are_given_up() {
    comes_to("bad_protocol", "floods the connection", |peer| {
        greet(peer);
        forever(peer, b"\x89\0");
    });
    comes_to("bad_protocol", "floods the connection", |peer| {
        greet(peer);
        say(peer, b"\x02\0");
        forever(peer, b"\0\0");
    });
}

#[test]
fn questions_between_the_pieces_of_a_message_fill_no_memory() {
    comes_to("bad_protocol", "", |peer| {
        greet(peer);
        say(peer, b"\x02\0");
        forever(peer, &[&b"\x89\x7d"[..], &[b'?'; 125], b"\0\x01x"].concat());
    });
}
