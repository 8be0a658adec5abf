//! Streams as servers write them, each with the answer it means.

use super::*;

fn answer(status: u16, keep_alive: bool, body_len: u64, body: BodyCheck) -> Answer {
    Answer {
        status,
        keep_alive,
        body_len,
        body,
    }
}

#[test]
fn an_answer_is_read_whatever_way_its_body_ends() {
    let right = |keep_alive| answer(200, keep_alive, 5, BodyCheck::Right);
    let rows: &[(&str, &[u8], Answer)] = &[
        ("a length", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", right(true)),
        ("bare LF", b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", right(true)),
        ("LF and CRLF mixed", b"HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\nhello", right(true)),
        ("no reason", b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", right(true)),
        ("empty lines before", b"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", right(true)),
        ("one length twice", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5, 5\r\n\r\nhello", right(true)),
        ("close after", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", right(false)),
        ("Close in a list", b"HTTP/1.1 200 OK\r\nconnection: foo , CLOSE\r\nContent-Length: 5\r\n\r\nhello", right(false)),
        ("keep-alive told", b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", right(true)),
        ("1.0", b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", right(false)),
        ("1.0 kept", b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 5\r\n\r\nhello", right(true)),
        ("until close", b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nhello", right(false)),
        ("until close, 1.0, LF", b"HTTP/1.0 200 OK\n\nhello", right(false)),
        ("unknown coding", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 9\r\n\r\nhello", right(false)),
        ("chunked", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", right(true)),
        ("chunks, LF", b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhe\n003\nllo\n0\n\n", right(true)),
        (
            "chunked wins over a length",
            b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            right(true),
        ),
        (
            "extensions and trailers",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 ;a=\"b\"\r\nhello\r\n0;last\r\nDigest: x\r\nB: c\r\n\r\n",
            right(true),
        ),
        (
            "1xx before",
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            right(true),
        ),
    ];
    for (name, stream, expected) in rows {
        assert_eq!(
            one(stream, Asked::expecting(b"hello")),
            Ok(*expected),
            "{name}"
        );
    }
}

#[test]
fn some_answers_have_no_body_whatever_their_headers_say() {
    let head = Asked {
        head: true,
        ..Asked::expecting(b"hello")
    };
    let get = Asked::expecting(b"hello");
    let rows: &[(&[u8], Asked, u16, bool)] = &[
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            head,
            200,
            true,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            head,
            200,
            true,
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n", head, 200, true),
        (
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
            get,
            304,
            true,
        ),
        (
            b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
            get,
            204,
            false,
        ),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            get,
            101,
            false,
        ),
    ];
    for (stream, asked, status, keep_alive) in rows {
        let expected = answer(*status, *keep_alive, 0, BodyCheck::Unchecked);
        assert_eq!(
            one(stream, *asked),
            Ok(expected),
            "{}",
            stream.escape_ascii()
        );
    }
}

#[test]
fn length_is_always_compared_and_content_when_asked() {
    let stream = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let check = |expected: Option<&[u8]>, compare| {
        one(
            stream,
            Asked {
                head: false,
                compare,
                expected,
            },
        )
        .map(|answer| answer.body)
    };
    assert_eq!(check(None, true), Ok(BodyCheck::Unchecked));
    assert_eq!(check(Some(b"hello"), true), Ok(BodyCheck::Right));
    assert_eq!(check(Some(b"hellO"), true), Ok(BodyCheck::Wrong));
    assert_eq!(check(Some(b"hellO"), false), Ok(BodyCheck::Unchecked));
    assert_eq!(check(Some(b"hell"), false), Ok(BodyCheck::Wrong));
    assert_eq!(check(Some(b"hello!"), true), Ok(BodyCheck::Wrong));
    assert_eq!(
        one(
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            Asked::expecting(b"")
        )
        .unwrap()
        .body,
        BodyCheck::Right
    );
}

#[test]
fn bodies_of_220_kb_and_20_mb_are_compared_without_being_stored() {
    for size in [220_000, 20_000_000] {
        let body: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let mut stream = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes();
        stream.extend_from_slice(&body);
        let heard = play(&[Asked::expecting(&body)], stream.chunks(65_536));
        assert_eq!(heard.answers, [answer(200, true, size, BodyCheck::Right)]);
        let last = stream.len() - 1;
        stream[last] ^= 1;
        assert_eq!(
            play(&[Asked::expecting(&body)], stream.chunks(65_536)).answers[0].body,
            BodyCheck::Wrong
        );
    }
}

#[test]
fn bytes_the_kernel_dropped_count_as_body() {
    let expected = Some([b'x'; 1000].as_slice());
    let mut parser = Http1::new();
    parser.begin(false, false);
    assert_eq!(parser.skippable(), 0);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nxx";
    assert_eq!(parser.feed(head, expected), Ok(Parsed::More));
    assert_eq!(parser.skippable(), 998);
    assert_eq!(parser.skip(900, expected), None);
    assert_eq!(
        parser.skip(98, expected),
        Some(answer(200, true, 1000, BodyCheck::Unchecked))
    );
    assert!(parser.is_idle());
    parser.begin(false, true);
    assert_eq!(parser.feed(head, expected), Ok(Parsed::More));
    assert_eq!(parser.skippable(), 0, "a body to be compared must be seen");
}

#[test]
fn what_follows_an_answer_is_left_to_the_caller() {
    let mut parser = Http1::new();
    parser.begin(false, false);
    let stream = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 204 No Content\r\n\r\n";
    let Ok(Parsed::Done { consumed, .. }) = parser.feed(stream, None) else {
        panic!("not complete")
    };
    assert_eq!(&stream[consumed..consumed + 12], b"HTTP/1.1 204");
    assert_eq!(
        parser.feed(b"\r\n", None),
        Ok(Parsed::More),
        "a line end too many is forgiven"
    );
    let start = "HTTP/1.1 204 No Content\\r\\n\\r\\n".to_owned();
    assert_eq!(
        parser.feed(&stream[consumed..], None),
        Err(ProtocolError::Unsolicited { start })
    );
}

#[test]
fn a_close_means_what_the_moment_makes_of_it() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    for end in 1..whole.len() {
        let body_bytes = end.saturating_sub(whole.len() - 5) as u64;
        assert_eq!(
            one(&whole[..end], GET),
            Err(ProtocolError::EarlyClose { body_bytes }),
            "after {end} bytes"
        );
    }
    assert_eq!(
        play(&[GET], [&b""[..]]),
        Seen {
            answers: vec![],
            failed: None
        }
    );
    assert_eq!(
        play(&[GET], [&b"\r\n"[..]]),
        Seen {
            answers: vec![],
            failed: None
        }
    );
    let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(
        one(interim, GET),
        Err(ProtocolError::EarlyClose { body_bytes: 0 })
    );
    let chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    assert_eq!(
        one(chunk, GET),
        Err(ProtocolError::EarlyClose { body_bytes: 5 })
    );
}
