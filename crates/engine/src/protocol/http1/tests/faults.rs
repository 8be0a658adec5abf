//! What a server does wrong, and what it is called.

use super::*;
use crate::protocol::http1::MAX_HEAD_BYTES;

#[test]
fn a_fault_is_told_by_its_name() {
    type Named = fn(&ProtocolError) -> bool;
    use ProtocolError as E;
    let head_too_large = [
        b"HTTP/1.1 200 OK\r\nX: ".as_slice(),
        &[b'x'; MAX_HEAD_BYTES],
    ]
    .concat();
    let too_many = [
        b"HTTP/1.1 200 OK\r\n".as_slice(),
        &b"A: b\r\n".repeat(101),
        b"\r\n",
    ]
    .concat();
    let chunked = |rest: &[u8]| {
        [
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            rest,
        ]
        .concat()
    };
    let long_extension = chunked(&[b"5;".as_slice(), &[b'x'; MAX_HEAD_BYTES + 1]].concat());
    let long_trailers = chunked(
        &[
            b"0\r\n".as_slice(),
            &b"A: b\r\n".repeat(MAX_HEAD_BYTES / 6 + 1),
        ]
        .concat(),
    );
    let rows: Vec<(Vec<u8>, Named)> = vec![
        (b"SSH-2.0-OpenSSH_9.6\r\n".to_vec(), |e| {
            e.to_string().contains("begins with 'SSH-2.0")
        }),
        (b"HTTP/2 200\r\n\r\n".to_vec(), |e| {
            matches!(e, E::BadHead { .. })
        }),
        (b"HTTP/1.1 099 Low\r\n\r\n".to_vec(), |e| {
            matches!(e, E::BadHead { .. })
        }),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_vec(), |e| {
            matches!(e, E::BadHead { .. })
        }),
        (head_too_large, |e| *e == E::HeadTooLarge),
        (too_many, |e| *e == E::TooManyHeaders),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n".to_vec(),
            |e| matches!(e, E::BadLength { .. }),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n".to_vec(),
            |e| matches!(e, E::BadLength { .. }),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n".to_vec(),
            |e| matches!(e, E::BadLength { .. }),
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n".to_vec(),
            |e| {
                *e == E::ConflictingLengths {
                    first: 5,
                    second: 6,
                }
            },
        ),
        (chunked(b"x\r\n"), |e| matches!(e, E::BadChunk(_))),
        (chunked(b"\r\n"), |e| matches!(e, E::BadChunk(_))),
        (chunked(b"1\rx"), |e| matches!(e, E::BadChunk(_))),
        (chunked(b"1\r\nxx"), |e| matches!(e, E::BadChunk(_))),
        (chunked(b"10000000000000000\r\n"), |e| {
            *e == E::ChunkOverflow
        }),
        (long_extension, |e| *e == E::ChunkLineTooLong),
        (long_trailers, |e| *e == E::ChunkLineTooLong),
    ];
    for (stream, named) in rows {
        let error = one(&stream, GET).expect_err("a fault");
        assert!(named(&error), "{error:?}");
        assert!(
            error.to_string().is_ascii() || error.to_string().contains('…'),
            "{error}"
        );
    }
}
