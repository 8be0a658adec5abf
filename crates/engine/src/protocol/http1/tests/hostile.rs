//! Bytes no server would send: nothing panics, nothing is kept beyond its bound, cuts change nothing.

use proptest::prelude::*;

use crate::protocol::http1::MAX_HEAD_BYTES;
use crate::protocol::http1::tests::*;

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
    while fed == Ok(Parsed::More) {
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

/// An answer as some server writes it, with what has to come out of it.
#[derive(Debug, Clone)]
struct Written {
    bytes: Vec<u8>,
    body: Vec<u8>,
    head: bool,
    status: u16,
    keep_alive: bool,
}

impl Written {
    fn asked(&self) -> Asked<'_> {
        Asked {
            head: self.head,
            compare: true,
            expected: Some(&self.body),
        }
    }

    fn answer(&self) -> Answer {
        let bodiless = self.head || matches!(self.status, 204 | 304);
        let (body_len, body) = match bodiless {
            true => (0, BodyCheck::Unchecked),
            false => (self.body.len() as u64, BodyCheck::Right),
        };
        Answer {
            status: self.status,
            keep_alive: self.keep_alive,
            body_len,
            body,
        }
    }
}

#[derive(Debug, Clone)]
enum Ending {
    Length,
    Chunks {
        sizes: Vec<usize>,
        extension: String,
        trailers: Vec<(String, String)>,
    },
}

fn ending() -> impl Strategy<Value = Ending> {
    let trailers = prop::collection::vec(("[A-Za-z-]{1,12}", "[ -~]{0,20}"), 0..3);
    let chunks = (
        prop::collection::vec(1_usize..40, 1..6),
        "(;[a-z]{1,5}(=[a-z]{1,3})?)?",
        trailers,
    )
        .prop_map(|(sizes, extension, trailers)| Ending::Chunks {
            sizes,
            extension,
            trailers,
        });
    prop_oneof![Just(Ending::Length), chunks]
}

prop_compose! {
    fn written()(
        status in prop::sample::select(vec![200_u16, 201, 204, 304, 404, 500]),
        body in prop::collection::vec(any::<u8>(), 0..300),
        ending in ending(),
        line in prop::sample::select(vec!["\r\n", "\n"]),
        interim in 0_usize..3,
        blank in any::<bool>(),
        extra in prop::collection::vec(("X-[A-Za-z-]{1,12}", "[!-~]([ -~]{0,30}[!-~])?"), 0..4),
        connection in prop::sample::select(vec!["", "Connection: close", "connection: x, CLOSE", "Connection: Keep-Alive"]),
        (version, head) in (0_u8..2, any::<bool>()),
    ) -> Written {
        let mut text = String::new();
        if blank { text.push_str(line); }
        for _ in 0..interim { text += &format!("HTTP/1.1 103 Early Hints{line}Link: </x>{line}{line}"); }
        text += &format!("HTTP/1.{version} {status} Some Reason{line}");
        for (name, value) in extra { text += &format!("{name}: {value}{line}"); }
        if !connection.is_empty() { text += &format!("{connection}{line}"); }
        match &ending {
            Ending::Length => text += &format!("Content-Length: {}{line}{line}", body.len()),
            Ending::Chunks { .. } => text += &format!("Transfer-Encoding: chunked{line}{line}"),
        }
        let mut bytes = text.into_bytes();
        if !head && !matches!(status, 204 | 304) { write_body(&mut bytes, &body, &ending, line); }
        let lower = connection.to_ascii_lowercase();
        let keep_alive = if version == 0 { lower.contains("keep-alive") } else { !lower.contains("close") };
        Written { bytes, body, head, status, keep_alive }
    }
}

fn write_body(bytes: &mut Vec<u8>, body: &[u8], ending: &Ending, line: &str) {
    let Ending::Chunks {
        sizes,
        extension,
        trailers,
    } = ending
    else {
        bytes.extend_from_slice(body);
        return;
    };
    let mut rest = body;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        bytes.extend_from_slice(format!("{:X}{extension}{line}", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(line.as_bytes());
        rest = after;
    }
    bytes.extend_from_slice(format!("0{line}").as_bytes());
    for (name, value) in trailers {
        bytes.extend_from_slice(format!("{name}: {value}{line}").as_bytes());
    }
    bytes.extend_from_slice(line.as_bytes());
}

/// Cuts a stream after the given numbers of bytes, over and over.
fn cut<'s>(stream: &'s [u8], sizes: &[usize]) -> Vec<&'s [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), stream);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

proptest! {
    #[test]
    fn any_cut_of_any_valid_stream_gives_the_same_answers(
        written in prop::collection::vec(written(), 1..4),
        sizes in prop::collection::vec(1_usize..90, 1..12),
    ) {
        let stream = written.iter().flat_map(|one| one.bytes.clone()).collect::<Vec<_>>();
        let asked = written.iter().map(Written::asked).collect::<Vec<_>>();
        let right = Seen { answers: written.iter().map(Written::answer).collect(), failed: None };
        prop_assert_eq!(&play(&asked, [stream.as_slice()]), &right, "whole: {}", stream.escape_ascii());
        prop_assert_eq!(&play(&asked, stream.chunks(1)), &right, "byte by byte: {}", stream.escape_ascii());
        prop_assert_eq!(&play(&asked, cut(&stream, &sizes)), &right, "cut: {}", stream.escape_ascii());
    }

    #[test]
    fn a_body_that_ends_with_the_connection_is_the_same_in_any_cut(
        body in prop::collection::vec(any::<u8>(), 0..300),
        sizes in prop::collection::vec(1_usize..90, 1..12),
    ) {
        let stream = [b"HTTP/1.0 200 OK\n\n".as_slice(), &body].concat();
        let answer = Answer { status: 200, keep_alive: false, body_len: body.len() as u64, body: BodyCheck::Right };
        let heard = play(&[Asked::expecting(&body)], cut(&stream, &sizes));
        prop_assert_eq!(heard, Seen { answers: vec![answer], failed: None });
    }
}
