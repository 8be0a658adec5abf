//! Bytes no server would send: nothing panics, nothing is kept beyond its bound, cuts change nothing.

use super::*;
use crate::protocol::http1::MAX_HEAD_BYTES;
use proptest::prelude::*;

/// Fragments from which streams are put together that get deep into the parser before they go wrong.
const SHARDS: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 200\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 N\r\n\r\n",
    b"HTTP/1.1 101 S\r\n\r\n",
    b"Content-Length: 3\r\n",
    b"Content-Length: 18446744073709551615\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"A: b\r\n c\r\n",
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"3\r\nabc\r\n",
    b"ffffffffffffffff\r\n",
    b"0\r\n\r\n",
    b"0;x\r\nT: r\r\n\r\n",
    b"abc",
    b"\0",
    b"\xff\x80",
    b":",
];

fn shards() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(SHARDS), 0..24).prop_map(|shards| shards.concat())
}

/// A fault may be found a little earlier or later in another cut; that it is found may not depend on it,
/// nor may the answers before it.
fn same_in_pieces(stream: &[u8], size: usize) -> Result<(), TestCaseError> {
    let asked = [
        Asked::expecting(b"abc"),
        GET,
        Asked { head: true, ..GET },
        GET,
        GET,
        GET,
    ];
    let whole = play(&asked, [stream]);
    let pieces = play(&asked, stream.chunks(size));
    prop_assert_eq!(&whole.answers, &pieces.answers, "{}", stream.escape_ascii());
    prop_assert_eq!(
        whole.failed.is_some(),
        pieces.failed.is_some(),
        "{}",
        stream.escape_ascii()
    );
    Ok(())
}

proptest! {
    #[test]
    fn random_bytes_never_panic(stream in prop::collection::vec(any::<u8>(), 0..400), size in 1_usize..50) {
        same_in_pieces(&stream, size)?;
    }

    #[test]
    fn nearly_right_streams_never_panic(stream in shards(), size in 1_usize..50) {
        same_in_pieces(&stream, size)?;
    }
}

#[test]
fn a_head_that_never_ends_is_given_up_at_its_bound() {
    let mut parser = Http1::new();
    parser.begin(false, false);
    let mut fed = parser.feed(b"HTTP/1.1 200 OK\r\n", None);
    let mut lines = 0;
    while fed == Ok(Fed::More) {
        fed = parser.feed(b"X-Filler: 0123456789\r\n", None);
        lines += 1;
        assert!(parser.partial.memory() <= 2 * (MAX_HEAD_BYTES + 1));
    }
    assert_eq!(fed, Err(ProtocolError::HeadTooLarge));
    assert_eq!((lines * 22 + 17) / MAX_HEAD_BYTES, 1);
    assert_eq!(parser.partial.memory(), 0, "the memory is given back");
}

#[test]
fn a_parser_of_one_connection_is_small() {
    assert!(
        size_of::<Http1>() <= 96,
        "{} bytes, times 10 000 connections",
        size_of::<Http1>()
    );
}
