//! Over HTTP/2, with gRPC on it. No peer here reads what it is answered.

use std::io::Read;
use std::net::TcpStream;

use serde_json::json;
use velodrome_engine::protocol::http2::hpack::{indexed, literal};

use crate::peer::{forever, say};
use crate::{all_come_to, load, transports};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;
/// The first of a client.
const STREAM: u32 = 1;

/// What a peer does with a connection.
type Talk = fn(&mut TcpStream);

fn comes_to(outcome: &str, says: &str, talk: Talk) {
    let fields = json!({"grpc": {"kind": "unary"}});
    all_come_to(outcome, says, "grpc", fields, talk);
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Greets, and waits for the first request, so that nothing comes for a stream that is not there yet.
fn greet(peer: &mut TcpStream) {
    say(peer, &frame(SETTINGS, 0, 0, &[]));
    if peer.read_exact(&mut [0; 24]).is_ok() {
        request(peer);
    }
}

/// Waits for the next request: its stream. None: the client leaves.
fn request(peer: &mut TcpStream) -> Option<u32> {
    let mut header = [0; 9];
    loop {
        peer.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        peer.read_exact(&mut vec![0; length as usize]).ok()?;
        if header[3] == HEADERS {
            let [.., a, b, c, d] = header;
            return Some(u32::from_be_bytes([a, b, c, d]));
        }
    }
}

/// Answers each request with 200, this `content-length` and four bytes.
fn tell_of(peer: &mut TcpStream, length: &[u8]) {
    let mut block = vec![0x88];
    literal(&mut block, b"content-length", length, false);
    say(peer, &frame(SETTINGS, 0, 0, &[]));
    if peer.read_exact(&mut [0; 24]).is_err() {
        return;
    }
    while let Some(stream) = request(peer) {
        say(peer, &frame(HEADERS, END_HEADERS, stream, &block));
        say(peer, &frame(DATA, END_STREAM, stream, b"four"));
    }
}

#[test]
fn a_body_of_another_length_than_told_is_malformed() {
    let rows: [(&str, Talk); 3] = [
        ("is 5, and its body ended after 4 bytes", |peer| {
            tell_of(peer, b"5");
        }),
        ("is 3, and its body ended after 4 bytes", |peer| {
            tell_of(peer, b"3");
        }),
        ("is not one number", |peer| tell_of(peer, b"-4")),
    ];
    for (says, talk) in rows {
        let fields = json!({"http2": true});
        all_come_to("bad_protocol", says, "http", fields, talk);
    }
}

/// The head of a right answer.
fn right_head() -> Vec<u8> {
    let mut block = Vec::new();
    indexed(&mut block, 8);
    literal(&mut block, b"content-type", b"application/grpc", false);
    frame(HEADERS, END_HEADERS, STREAM, &block)
}

#[test]
fn garbage_is_no_http2() {
    comes_to("bad_protocol", "does not speak HTTP/2", |peer| {
        let garbage: Vec<u8> = (0..4096_u32).map(|n| (n * n % 251) as u8 | 0x80).collect();
        forever(peer, &garbage);
    });
}

#[test]
fn a_frame_of_16_megabytes_is_refused() {
    comes_to(
        "bad_protocol",
        "16777215 bytes where 16384 are allowed",
        |peer| {
            greet(peer);
            say(peer, b"\xff\xff\xff\x00\x00\x00\x00\x00\x01");
            forever(peer, b"x");
        },
    );
}

#[test]
fn a_header_block_that_unpacks_to_much_is_given_up() {
    comes_to("bad_protocol", "when unpacked", |peer| {
        greet(peer);
        let mut bomb = Vec::new();
        literal(&mut bomb, b"x", &[b'v'; 4000], true);
        bomb.extend([0x80 | 62; 8000]);
        say(peer, &frame(HEADERS, END_HEADERS, STREAM, &bomb));
    });
}

#[test]
fn headers_without_an_end_are_given_up() {
    comes_to("bad_protocol", "header block", |peer| {
        greet(peer);
        say(peer, &frame(HEADERS, 0, STREAM, &[0x88]));
        forever(peer, &frame(CONTINUATION, 0, STREAM, &[0; 16_384]));
    });
    comes_to("bad_protocol", "CONTINUATION and like frames", |peer| {
        greet(peer);
        say(peer, &frame(HEADERS, 0, STREAM, &[0x88]));
        forever(peer, &frame(CONTINUATION, 0, STREAM, &[]));
    });
}

#[test]
fn a_flood_of_settings_is_given_up() {
    comes_to("bad_protocol", "SETTINGS and like frames", |peer| {
        greet(peer);
        forever(peer, &frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]));
    });
}

#[test]
fn a_flood_of_pings_is_given_up() {
    comes_to("bad_protocol", "PING and like frames", |peer| {
        greet(peer);
        forever(peer, &frame(PING, 0, 0, b"12345678"));
    });
}

#[test]
fn a_flood_of_wider_windows_does_not_hold_the_time_out_up() {
    comes_to("timeout", "no answer within", |peer| {
        greet(peer);
        forever(peer, &frame(WINDOW_UPDATE, 0, STREAM, &[0, 0, 0, 1]));
    });
}

#[test]
fn a_flood_of_unknown_frames_is_given_up() {
    comes_to("bad_protocol", "frames", |peer| {
        greet(peer);
        forever(peer, &frame(0x42, 0, 0, &[]));
    });
}

#[test]
fn a_stream_that_is_reset_again_and_again_is_one_reset() {
    comes_to("reset", "", |peer| {
        say(peer, &frame(SETTINGS, 0, 0, &[]));
        if peer.read_exact(&mut [0; 24]).is_err() {
            return;
        }
        while let Some(stream) = request(peer) {
            let reset = frame(RST_STREAM, 0, stream, &[0, 0, 0, 2]);
            say(peer, &reset.repeat(1000));
        }
    });
}

#[test]
fn a_flood_of_resets_of_another_stream_is_given_up() {
    // A connection's first request is reset, and the flood waits for the second: begun before it, the flood could end
    // the connection while no request is in flight on it, as the scheduler likes.
    for transport in transports() {
        let fields = json!({"grpc": {"kind": "unary"}, "connections": 1, "timeout_s": 10});
        let result = load("grpc", transport, &fields, b"", |peer| {
            greet(peer);
            let reset = frame(RST_STREAM, 0, STREAM, &[0, 0, 0, 2]);
            say(peer, &reset);
            if request(peer).is_some() {
                forever(peer, &reset);
            }
        });
        assert_eq!(result["outcomes"]["reset"], 2, "over {transport}: {result}");
        assert_eq!(
            result["outcomes"]["bad_protocol"], 2,
            "over {transport}: {result}"
        );
        let examples = result["examples"].to_string();
        assert!(
            examples.contains("RST_STREAM and like frames"),
            "{examples}"
        );
    }
}

#[test]
fn questions_between_the_bytes_of_an_answer_fill_no_memory() {
    comes_to("bad_protocol", "", |peer| {
        greet(peer);
        say(peer, &right_head());
        say(peer, &frame(DATA, 0, STREAM, b"\0\xff\xff\xff\xff"));
        let both = [frame(PING, 0, 0, b"12345678"), frame(DATA, 0, STREAM, b"x")];
        forever(peer, &both.concat());
    });
}

#[test]
fn a_message_of_four_gigabytes_times_out_and_is_not_kept() {
    comes_to("timeout", "the answer was not complete after", |peer| {
        greet(peer);
        say(peer, &right_head());
        say(peer, &frame(DATA, 0, STREAM, b"\0\xff\xff\xff\xff"));
        forever(peer, &frame(DATA, 0, STREAM, &[b'x'; 16_000]));
    });
}

#[test]
fn messages_without_an_end_time_out() {
    comes_to("timeout", "the answer was not complete after", |peer| {
        greet(peer);
        say(peer, &right_head());
        forever(peer, &frame(DATA, 0, STREAM, b"\0\0\0\0\0"));
    });
}
