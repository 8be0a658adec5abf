//! What the parser makes of streams: by table, cut in any way, and from bytes no server would send.

mod drops;
mod hostile;
mod table;

use proptest::prelude::*;

use crate::protocol::http1::chunked::Chunks;
use crate::protocol::http1::{Answer, BodyCheck, Http1, MAX_HEAD_BYTES, Parsed, ProtocolError};

/// What was asked: the method and the right body.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    head: bool,
    compare: bool,
    expected: Option<&'a [u8]>,
}

const GET: Asked = Asked {
    head: false,
    compare: true,
    expected: None,
};

impl<'a> Asked<'a> {
    const fn expecting(expected: &'a [u8]) -> Self {
        Self {
            expected: Some(expected),
            ..GET
        }
    }
}

/// All that came out of a connection: its answers, the number of surplus bytes, how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    answers: Vec<Answer>,
    failed: Option<ProtocolError>,
}

/// Plays pieces of a stream, then a close, to a parser that asks the next thing as soon as it may.
fn play<'p>(asked: &[Asked], pieces: impl IntoIterator<Item = &'p [u8]>) -> Seen {
    let mut heard = Seen {
        answers: Vec::new(),
        failed: None,
    };
    let mut parser = Http1::new();
    let mut turn = asked.iter();
    let mut now = turn.next().copied().unwrap_or(GET);
    parser.begin(now.head, now.compare);
    for mut piece in pieces {
        while !piece.is_empty() {
            match parser.feed(piece, now.expected) {
                Ok(Parsed::More) => break,
                Ok(Parsed::Done { consumed, answer }) => {
                    assert!(
                        consumed > 0 && consumed <= piece.len(),
                        "consumed {consumed} of {}",
                        piece.len()
                    );
                    heard.answers.push(answer);
                    piece = &piece[consumed..];
                    if let Some(next) = turn.next() {
                        now = *next;
                        parser.begin(now.head, now.compare);
                    }
                }
                Err(error) => {
                    heard.failed = Some(error);
                    assert!(parser.is_idle());
                    return heard;
                }
            }
        }
    }
    match parser.eof(now.expected) {
        Ok(answer) => heard.answers.extend(answer),
        Err(error) => heard.failed = Some(error),
    }
    assert!(parser.is_idle());
    heard
}

/// One answer in one piece.
fn one(stream: &[u8], asked: Asked) -> Result<Answer, ProtocolError> {
    let heard = play(&[asked], [stream]);
    match heard.failed {
        Some(error) => Err(error),
        None => Ok(heard.answers[0]),
    }
}

#[derive(Debug, Clone)]
struct Chunk {
    data: Vec<u8>,
    zeros: usize,
    upper: bool,
    extension: String,
    line: &'static str,
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["\r\n", "\n"])
}

prop_compose! {
    fn chunk(most: usize)(
        data in prop::collection::vec(any::<u8>(), 1..most),
        zeros in 0_usize..20,
        upper in any::<bool>(),
        extension in "([;\t ][ -~]{0,20})?",
        line in line(),
    ) -> Chunk {
        Chunk { data, zeros, upper, extension, line }
    }
}

impl Chunk {
    fn write(&self, out: &mut Vec<u8>) {
        let size = match self.upper {
            true => format!("{:X}", self.data.len()),
            false => format!("{:x}", self.data.len()),
        };
        let zeros = "0".repeat(self.zeros);
        out.extend(format!("{zeros}{size}{}{}", self.extension, self.line).bytes());
        out.extend(&self.data);
        out.extend(self.line.bytes());
    }
}

/// The data, and at which byte the body ended.
fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> (Vec<u8>, Option<usize>) {
    let (mut chunks, mut data, mut before) = (Chunks::new(), Vec::new(), 0);
    for piece in pieces {
        let (used, complete) = chunks
            .feed(piece, |bytes| data.extend_from_slice(bytes))
            .unwrap();
        if complete {
            return (data, Some(before + used));
        }
        assert_eq!(used, piece.len());
        before += used;
    }
    (data, None)
}

proptest! {
    #[test]
    fn any_cut_of_any_valid_body_gives_the_same_data_and_the_same_end(
        chunks in prop::collection::vec(chunk(60), 0..8),
        (zeros, end) in (1_usize..5, line()),
        trailers in prop::collection::vec("[A-Za-z-]{1,12}:[ -~]{0,20}", 0..3),
        behind in prop::collection::vec(any::<u8>(), 0..20),
        sizes in prop::collection::vec(1_usize..90, 1..12),
    ) {
        let mut stream = Vec::new();
        chunks.iter().for_each(|chunk| chunk.write(&mut stream));
        stream.extend(format!("{}{end}", "0".repeat(zeros)).bytes());
        for trailer in trailers {
            stream.extend(format!("{trailer}{end}").bytes());
        }
        stream.extend(end.bytes());
        let data: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
        let right = (data, Some(stream.len()));
        stream.extend(behind);
        prop_assert_eq!(&read([stream.as_slice()]), &right, "whole: {}", stream.escape_ascii());
        prop_assert_eq!(&read(stream.chunks(1)), &right, "byte by byte: {}", stream.escape_ascii());
        let (mut rest, mut pieces) = (stream.as_slice(), Vec::new());
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(&read(pieces), &right, "cut: {}", stream.escape_ascii());
    }
}

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
