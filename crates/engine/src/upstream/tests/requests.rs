//! Requests as clients write them, and bytes that are none.

use crate::protocol::http1::MAX_HEAD_BYTES;
use crate::upstream::replies::Persistence;
use crate::upstream::requests::*;
use proptest::prelude::*;

fn all(stream: &[u8], size: usize) -> Result<Vec<Heard>, NotARequest> {
    let mut requests = Requests::new();
    let mut heard = Vec::new();
    for mut piece in stream.chunks(size) {
        while !piece.is_empty() {
            let (used, what) = requests.hear(piece)?;
            assert!(used > 0);
            piece = &piece[used..];
            heard.extend((what != Heard::More).then_some(what));
        }
    }
    Ok(heard)
}

const PLAIN: Request = Request {
    latency: None,
    head_only: false,
    persistence: Persistence::Implied,
};

#[test]
fn requests_are_found_however_they_are_cut() {
    let close = Request {
        persistence: Persistence::Close,
        ..PLAIN
    };
    let rows: &[(&[u8], &[Request])] = &[
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &[PLAIN]),
        (b"GET / HTTP/1.1\n\nGET / HTTP/1.1\r\n\r\n", &[PLAIN, PLAIN]),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n\r\n",
            &[PLAIN, PLAIN],
        ),
        (
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            &[PLAIN],
        ),
        (
            b"GET /?a=b&velodrome-latency=75ms HTTP/1.1\r\n\r\n",
            &[Request {
                latency: Some(75_000_000),
                ..PLAIN
            }],
        ),
        (
            b"GET /prices?latency=p99&errors=0.5&latency=75ms&stall HTTP/1.1\r\n\r\n",
            &[PLAIN],
        ),
        (
            b"HEAD /?velodrome-latency=0.5s HTTP/1.1\r\n\r\n",
            &[Request {
                latency: Some(500_000_000),
                head_only: true,
                ..PLAIN
            }],
        ),
        (
            b"GET / HTTP/1.1\r\nconnection: foo, Close\r\n\r\n",
            &[close],
        ),
        (b"GET / HTTP/1.0\r\n\r\n", &[close]),
        (
            b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
            &[Request {
                persistence: Persistence::Told,
                ..PLAIN
            }],
        ),
    ];
    for (stream, requests) in rows {
        let expected: Vec<Heard> = requests.iter().copied().map(Heard::Whole).collect();
        for size in 1..=stream.len() {
            assert_eq!(
                all(stream, size).as_deref(),
                Ok(&expected[..]),
                "{} cut by {size}",
                stream.escape_ascii()
            );
        }
    }
}

#[test]
fn a_client_that_waits_for_100_is_told_from_one_that_does_not() {
    let head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    assert_eq!(all(head, 1000), Ok(vec![Heard::Waits]));
    assert_eq!(
        all(&[head.as_slice(), b"hi"].concat(), 1000),
        Ok(vec![Heard::Whole(PLAIN)])
    );
}

#[test]
fn what_is_not_a_request_is_refused() {
    let long = [b"GET / HTTP/1.1\r\nA: ".as_slice(), &[b'a'; MAX_HEAD_BYTES]].concat();
    let rows: [&[u8]; 5] = [
        b"\x16\x03\x01\x02",
        b"GET /?velodrome-latency=soon HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
        &long,
    ];
    for stream in rows {
        assert_eq!(
            all(stream, 4096),
            Err(NotARequest),
            "{}",
            stream[..30.min(stream.len())].escape_ascii()
        );
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(stream in prop::collection::vec(any::<u8>(), 0..300), size in 1_usize..40) {
        let _ = all(&stream, size);
    }
}
