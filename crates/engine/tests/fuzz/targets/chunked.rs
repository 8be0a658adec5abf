//! Any bytes as a body in chunks, whole and in pieces, against the plainest reader there could be: both tell the same
//! body, the same end, or that it is wrong.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::protocol::http1::{Answer, BodyCheck, Http1, Parsed, ProtocolError};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What a stream comes to.
#[derive(Debug, PartialEq)]
enum Read {
    /// A body, and how many bytes its framing took.
    Whole(Vec<u8>, usize),
    More,
    Wrong,
}

/// RFC 9112, section 7.1, over all of a stream at once. A lone LF ends a line too.
fn plainly(stream: &[u8]) -> Read {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let digits = stream[at..]
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let text = std::str::from_utf8(&stream[at..at + digits]).unwrap();
        let Ok(size) = u64::from_str_radix(if text.is_empty() { "0" } else { text }, 16) else {
            return Read::Wrong;
        };
        at += digits;
        match (digits, &stream[at..]) {
            (_, []) => return Read::More,
            (0, _) => return Read::Wrong,
            (_, [b';' | b' ' | b'\t', ..]) => match stream[at..].iter().position(|b| *b == b'\n') {
                Some(end) => at += end + 1,
                None => return Read::More,
            },
            (_, rest) => match line_end(rest) {
                Ok(used) => at += used,
                Err(read) => return read,
            },
        }
        if size == 0 {
            return trailers(stream, at, body);
        }
        let here = size.min((stream.len() - at) as u64) as usize;
        body.extend_from_slice(&stream[at..at + here]);
        at += here;
        if (here as u64) < size {
            return Read::More;
        }
        match line_end(&stream[at..]) {
            Ok(used) => at += used,
            Err(read) => return read,
        }
    }
}

fn trailers(stream: &[u8], mut at: usize, body: Vec<u8>) -> Read {
    loop {
        match stream[at..] {
            [] => return Read::More,
            [b'\r' | b'\n', ..] => {
                return match line_end(&stream[at..]) {
                    Ok(used) => Read::Whole(body, at + used),
                    Err(read) => read,
                };
            }
            _ => match stream[at..].iter().position(|byte| *byte == b'\n') {
                Some(end) => at += end + 1,
                None => return Read::More,
            },
        }
    }
}

/// Bytes of the line end at the beginning.
fn line_end(rest: &[u8]) -> Result<usize, Read> {
    match rest {
        [] | [b'\r'] => Err(Read::More),
        [b'\n', ..] => Ok(1),
        [b'\r', b'\n', ..] => Ok(2),
        _ => Err(Read::Wrong),
    }
}

/// What the parser makes of pieces of so many bytes; all bytes used until the end.
fn parsed(
    stream: &[u8],
    size: usize,
    expected: &[u8],
) -> Result<Option<(Answer, usize)>, ProtocolError> {
    let mut parser = Http1::new();
    parser.begin(false, true);
    assert_eq!(parser.feed(HEAD, Some(expected)), Ok(Parsed::More));
    let mut before = 0;
    for piece in stream.chunks(size) {
        if let Parsed::Done { consumed, answer } = parser.feed(piece, Some(expected))? {
            return Ok(Some((answer, before + consumed)));
        }
        before += piece.len();
    }
    assert!(matches!(
        parser.eof(Some(expected)),
        Err(ProtocolError::EarlyClose { .. })
    ));
    Ok(None)
}

pub fn check(bytes: &[u8]) {
    let input = <(u8, &[u8])>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok((size, stream)) = input else { return };
    // Extensions and trailers have a bound, which the plain reader does not.
    let stream = &stream[..stream.len().min(16_000)];
    let right = plainly(stream);
    let expected = match &right {
        Read::Whole(body, _) => body.as_slice(),
        _ => b"",
    };
    for size in [stream.len().max(1), usize::from(size) + 1] {
        match (&right, parsed(stream, size, expected)) {
            (Read::Whole(body, used), Ok(Some((answer, consumed)))) => {
                assert_eq!(consumed, *used);
                assert_eq!(answer.body_len, body.len() as u64);
                assert_eq!(answer.body, BodyCheck::Right);
            }
            (Read::More, Ok(None)) | (Read::Wrong, Err(_)) => {}
            (right, read) => panic!("{read:?} where {right:?} is right"),
        }
    }
}
