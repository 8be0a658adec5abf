//! Any bytes, whole and in pieces, through the parser: no panic, and the same answers either way.

#![no_main]

use libfuzzer_sys::fuzz_target;
use velodrome_engine::protocol::http1::{Answer, Fed, Http1};

fn answers(stream: &[u8], size: usize, head: bool) -> Vec<Answer> {
    let expected = Some(b"hello".as_slice());
    let mut parser = Http1::new();
    let mut all = Vec::new();
    parser.begin(head, true);
    for mut piece in stream.chunks(size) {
        while !piece.is_empty() {
            match parser.feed(piece, expected) {
                Ok(Fed::More) => break,
                Ok(Fed::Done { consumed, answer }) => {
                    assert!(consumed > 0);
                    all.push(answer);
                    piece = &piece[consumed..];
                    parser.begin(head, true);
                }
                Err(_) => return all,
            }
        }
    }
    all.extend(parser.eof(expected).ok().flatten());
    all
}

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (size, head, stream) = input;
    let whole = answers(stream, stream.len().max(1), head);
    assert_eq!(whole, answers(stream, usize::from(size) + 1, head));
});
