//! What the protocols cost per answer, by themselves: canned streams, no socket.
//!
//! `cargo run --release --example answers` prints nanoseconds of this thread per answer, the best of seven rounds
//! (a neighbour on the machine makes rounds slower, never faster).

use std::hint::black_box;
use std::time::Instant;

use velodrome_engine::protocol::grpc::{Call, CallProgress, Expected, frame, head};
use velodrome_engine::protocol::http2::{Session, Settings, StreamEvent, hpack};
use velodrome_engine::protocol::websocket::{self, Upgrade, accept};

/// Requests at once on the connection.
const STREAMS: u32 = 50;
const BATCHES: u32 = 4_000;
const ROUNDS: usize = 7;

fn main() {
    let best = |round: fn() -> f64| (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min);
    println!(
        "gRPC unary over HTTP/2, {STREAMS} streams: {:.0} ns per call",
        best(grpc)
    );
    println!(
        "WebSocket echo of 84 bytes:        {:.0} ns per message",
        best(websocket)
    );
}

/// A frame of a server.
fn h2(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The answers to a batch of calls: fields are named in the table, as by a server that has answered before.
fn answers(first_stream: u32, blocks: [&[u8]; 2], message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..STREAMS {
        let stream = first_stream + 2 * number;
        h2(&mut out, 1, 4, stream, blocks[0]);
        h2(&mut out, 0, 0, stream, message);
        h2(&mut out, 1, 5, stream, blocks[1]);
    }
    out
}

/// Begins calls and reads their answers; nanoseconds per call.
fn grpc() -> f64 {
    let head = head(
        "http",
        "127.0.0.1:50051",
        "/helloworld.Greeter/SayHello",
        None,
        &[],
    )
    .unwrap();
    let (mut session, mut out) = (Session::new(Settings::default()), Vec::new());
    session.open(&mut out);
    session
        .feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &mut out, |_, _| {})
        .unwrap();
    let reply: Box<[u8]> = vec![b'x'; 100].into();
    let (request, message) = (frame(b"\x0a\x05world"), frame(&reply));
    let expected = Expected {
        messages: std::slice::from_ref(&reply),
        ..Expected::unary()
    };
    let mut learn = [Vec::new(), Vec::new()];
    hpack::indexed(&mut learn[0], 8);
    hpack::literal(&mut learn[0], b"content-type", b"application/grpc", true);
    hpack::literal(&mut learn[1], b"grpc-status", b"0", true);
    let mut calls: Vec<Call> = (0..STREAMS).map(|_| Call::new()).collect();
    let mut right = 0;
    let mut batch = |answers: &[u8]| {
        out.clear();
        for tag in 0..STREAMS {
            calls[tag as usize].begin(true);
            session.begin(tag, &head, &request, true, &mut out).unwrap();
        }
        session
            .feed(
                black_box(answers),
                &mut out,
                |tag, event: StreamEvent<'_>| {
                    if let CallProgress::Done(ended) = calls[tag as usize].feed(event, &expected) {
                        right += u32::from(ended.status == Some(0));
                    }
                },
            )
            .unwrap();
    };
    // The first answer fills the table: then entry 63 is the content type, and 62 the status, for all that follow.
    let mut first = answers(1, [&[0x88, 0xbf], &[0xbe]], &message);
    let spelt = {
        let mut one = Vec::new();
        h2(&mut one, 1, 4, 1, &learn[0]);
        h2(&mut one, 0, 0, 1, &message);
        h2(&mut one, 1, 5, 1, &learn[1]);
        one
    };
    let named = first.len() / STREAMS as usize;
    first.splice(..named, spelt);
    batch(&first);
    let streams: Vec<Vec<u8>> = (1..=BATCHES)
        .map(|number| answers(1 + 2 * STREAMS * number, [&[0x88, 0xbf], &[0xbe]], &message))
        .collect();
    let began = Instant::now();
    for stream in &streams {
        batch(stream);
    }
    let spent = began.elapsed();
    assert_eq!(right, STREAMS * (BATCHES + 1), "every call was right");
    spent.as_nanos() as f64 / f64::from(STREAMS * BATCHES)
}

/// Reads messages that came one by one; nanoseconds per message.
fn websocket() -> f64 {
    let mut upgrade = Upgrade::new("127.0.0.1:8000", "/", &[]).unwrap();
    let (mut session, mut out) = (websocket::Session::new(1 << 20), Vec::new());
    let key = session.open(&mut upgrade, &mut out);
    let answer = format!(
        "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
        accept(&key)
    );
    session.feed(answer.as_bytes(), &mut out, |_| {}).unwrap();
    let message = [&[0x81, 84][..], &[b'x'; 84]].concat();
    let (mut bytes, count) = (0, STREAMS * BATCHES);
    let began = Instant::now();
    for _ in 0..count {
        session
            .feed(black_box(&message), &mut out, |event| {
                if let websocket::Event::Data(piece) = event {
                    bytes += piece.bytes.len();
                }
            })
            .unwrap();
    }
    let spent = began.elapsed();
    assert_eq!(bytes, 84 * count as usize);
    spent.as_nanos() as f64 / f64::from(count)
}
