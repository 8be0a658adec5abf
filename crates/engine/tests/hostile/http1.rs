//! Over HTTP/1.1.

use std::net::TcpStream;

use serde_json::json;

use crate::all_come_to;
use crate::peer::{forever, head, say};

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn comes_to(outcome: &str, says: &str, talk: fn(&mut TcpStream)) {
    all_come_to(outcome, says, "http", json!({}), talk);
}

#[test]
fn garbage_is_no_http() {
    comes_to("bad_protocol", "not HTTP/1", |peer| {
        head(peer);
        let garbage: Vec<u8> = (0..4096_u32).map(|n| (n * n % 251) as u8 | 0x80).collect();
        forever(peer, &garbage);
    });
}

#[test]
fn a_head_without_an_end_is_given_up() {
    comes_to("bad_protocol", "the head of the answer", |peer| {
        head(peer);
        say(peer, b"HTTP/1.1 200 OK\r\n");
        forever(peer, b"X-Filler: 0123456789\r\n");
    });
    comes_to("bad_protocol", "longer than", |peer| {
        head(peer);
        say(peer, b"HTTP/1.1 200 OK\r\nX-Filler: ");
        forever(peer, b"0123456789");
    });
}

#[test]
fn announcements_without_an_end_time_out() {
    comes_to("timeout", "the answer was not complete after", |peer| {
        head(peer);
        forever(peer, b"HTTP/1.1 100 Continue\r\n\r\n");
    });
    comes_to("timeout", "the answer was not complete after", |peer| {
        head(peer);
        forever(peer, b"\r\n");
    });
}

#[test]
fn a_body_of_a_terabyte_times_out_and_is_not_kept() {
    comes_to("timeout", "the answer was not complete after", |peer| {
        head(peer);
        say(
            peer,
            b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\n",
        );
        forever(peer, &[b'x'; 1 << 16]);
    });
    comes_to("timeout", "the answer was not complete after", |peer| {
        head(peer);
        say(peer, b"HTTP/1.1 200 OK\r\n\r\n");
        forever(peer, &[b'x'; 1 << 16]);
    });
}

#[test]
fn a_terabyte_that_ends_early_is_a_reset() {
    comes_to("reset", "in the middle of an answer", |peer| {
        head(peer);
        say(
            peer,
            b"HTTP/1.1 200 OK\r\nContent-Length: 1099511627776\r\n\r\nx",
        );
        let _ = peer.shutdown(std::net::Shutdown::Write);
    });
}

#[test]
fn a_length_that_is_none_is_told() {
    comes_to("bad_protocol", "not a number of bytes", |peer| {
        head(peer);
        say(
            peer,
            b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
        );
        forever(peer, b"x");
    });
}

#[test]
fn a_chunk_of_two_to_the_63rd_times_out_and_is_not_kept() {
    comes_to("timeout", "the answer was not complete after", |peer| {
        head(peer);
        say(peer, CHUNKED);
        say(peer, b"8000000000000000\r\n");
        forever(peer, &[b'x'; 1 << 16]);
    });
}

#[test]
fn a_chunk_beyond_64_bits_is_told() {
    comes_to("bad_protocol", "does not fit in 64 bits", |peer| {
        head(peer);
        say(peer, CHUNKED);
        forever(peer, b"f");
    });
}

#[test]
fn chunks_without_an_end_time_out() {
    comes_to("timeout", "the answer was not complete after", |peer| {
        head(peer);
        say(peer, CHUNKED);
        forever(peer, b"1\r\nx\r\n");
    });
    comes_to("timeout", "the answer was not complete after", |peer| {
        head(peer);
        say(peer, CHUNKED);
        forever(peer, b"0");
    });
}

#[test]
fn framing_without_an_end_is_given_up() {
    comes_to(
        "bad_protocol",
        "extensions of one chunk, or trailers",
        |peer| {
            head(peer);
            say(peer, CHUNKED);
            say(peer, b"1;");
            forever(peer, b"extension");
        },
    );
    comes_to(
        "bad_protocol",
        "extensions of one chunk, or trailers",
        |peer| {
            head(peer);
            say(peer, CHUNKED);
            say(peer, b"0\r\n");
            forever(peer, b"Trailer: x\r\n");
        },
    );
}
