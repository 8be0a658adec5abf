//! What the parser makes of streams: by table, cut in any way, and from bytes no server would send.

mod chunks;
mod drops;
mod faults;
mod hostile;
mod splits;
mod table;

use super::{Answer, BodyCheck, Fed, Http1, ProtocolError};

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
struct Heard {
    answers: Vec<Answer>,
    failed: Option<ProtocolError>,
}

/// Plays pieces of a stream, then a close, to a parser that asks the next thing as soon as it may.
fn play<'p>(asked: &[Asked], pieces: impl IntoIterator<Item = &'p [u8]>) -> Heard {
    let mut heard = Heard {
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
                Ok(Fed::More) => break,
                Ok(Fed::Done { consumed, answer }) => {
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
