//! The head of an answer: status, how the body ends, whether the connection goes on.

use super::error::ProtocolError;
use super::{MAX_HEAD_BYTES, MAX_HEADERS};
use httparse::{Error, Header, ParserConfig, Response, Status};
use std::mem::MaybeUninit;

/// How the end of the body is found (RFC 9112, section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// 1xx: another head follows.
    Interim,
    /// HEAD, 204, 304 and 101 have no body whatever their headers say.
    Nothing,
    Length(u64),
    Chunked,
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub status: u16,
    /// Bytes of the head, the empty line included.
    pub len: usize,
    pub keep_alive: bool,
    pub framing: Framing,
}

/// What the header lines say that matters here.
#[derive(Default)]
struct Said {
    length: Option<u64>,
    /// `Some(true)`: chunked is the last transfer coding; `Some(false)`: another one is.
    chunked: Option<bool>,
    close: bool,
    keep_alive: bool,
}

/// Parses a head at the beginning of `bytes`; `None` if it is incomplete.
pub(super) fn parse(bytes: &[u8], head_request: bool) -> Result<Option<Head>, ProtocolError> {
    let mut lines = [const { MaybeUninit::<Header>::uninit() }; MAX_HEADERS];
    let mut response = Response::new(&mut []);
    let mut config = ParserConfig::default();
    // RFC 9112, sections 5.1 and 5.2: a user agent reads over both faults instead of refusing them.
    config.allow_obsolete_multiline_headers_in_responses(true);
    config.allow_spaces_after_header_name_in_responses(true);
    let len = match config.parse_response_with_uninit_headers(&mut response, bytes, &mut lines) {
        Ok(Status::Complete(len)) if len <= MAX_HEAD_BYTES => len,
        Ok(Status::Complete(_)) => return Err(ProtocolError::HeadTooLarge),
        Ok(Status::Partial) => return Ok(None),
        Err(Error::TooManyHeaders) => return Err(ProtocolError::TooManyHeaders),
        Err(error) => return Err(ProtocolError::bad_head(&error.to_string(), bytes)),
    };
    let status = response.code.unwrap_or(0);
    if status < 100 {
        return Err(ProtocolError::bad_head("the status is below 100", bytes));
    }
    let said = listen(response.headers)?;
    let framing = framing(status, head_request, &said);
    let persists = if response.version == Some(0) {
        said.keep_alive
    } else {
        true
    };
    let keep_alive = persists && !said.close && framing != Framing::UntilClose && status != 101;
    Ok(Some(Head {
        status,
        len,
        keep_alive,
        framing,
    }))
}

/// The beginning of a head that came in several segments. It is parsed once, when its end is there: a server
/// that sends single bytes costs no more than one that sends lines.
#[derive(Debug)]
pub(super) struct Partial(Vec<u8>);

impl Partial {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives the memory back.
    pub fn forget(&mut self) {
        if self.0.capacity() > 0 {
            self.0 = Vec::new();
        }
    }

    #[cfg(test)]
    pub const fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// Keeps what `bytes` has of the head; returns how many of them that were, and the head if it is complete.
    pub fn gather(
        &mut self,
        bytes: &[u8],
        head_request: bool,
    ) -> Result<(usize, Option<Head>), ProtocolError> {
        let before = self.0.len();
        let fits = bytes.len().min(MAX_HEAD_BYTES + 1 - before);
        self.0.extend_from_slice(&bytes[..fits]);
        let Some(end) = end(&self.0, before) else {
            return match self.0.len() {
                0..=MAX_HEAD_BYTES => Ok((fits, None)),
                _ => Err(ProtocolError::HeadTooLarge),
            };
        };
        let gathered = std::mem::take(&mut self.0);
        match parse(&gathered[..end], head_request)? {
            Some(head) => Ok((end - before, Some(head))),
            None => Err(ProtocolError::bad_head("it ends within a line", &gathered)),
        }
    }
}

/// Finds the end of a head (one past its empty line) in what was gathered, of which the first `searched`
/// bytes hold none. Lines may end with a bare LF: two servers in the field write them.
fn end(gathered: &[u8], searched: usize) -> Option<usize> {
    // The line end before the empty line may be up to two bytes back: "\n\r" came, "\n" comes.
    let from = searched.saturating_sub(2);
    memchr::memchr_iter(b'\n', &gathered[from..])
        .map(|offset| from + offset + 1)
        .find_map(|after| match gathered[after..] {
            [b'\n', ..] => Some(after + 1),
            [b'\r', b'\n', ..] => Some(after + 2),
            _ => None,
        })
}

fn framing(status: u16, head_request: bool, said: &Said) -> Framing {
    match (status, said) {
        (101 | 204 | 304, _) => Framing::Nothing,
        (100..=199, _) => Framing::Interim,
        _ if head_request => Framing::Nothing,
        (
            _,
            Said {
                chunked: Some(true),
                ..
            },
        ) => Framing::Chunked,
        (
            _,
            Said {
                chunked: Some(false),
                ..
            },
        ) => Framing::UntilClose,
        (
            _,
            Said {
                length: Some(length),
                ..
            },
        ) => Framing::Length(*length),
        _ => Framing::UntilClose,
    }
}

fn listen(lines: &[Header]) -> Result<Said, ProtocolError> {
    let mut said = Said::default();
    for line in lines {
        // The length of the name tells the three headers that matter from nearly all others.
        match line.name.len() {
            14 if line.name.eq_ignore_ascii_case("content-length") => {
                length(line.value, &mut said)?
            }
            10 if line.name.eq_ignore_ascii_case("connection") => {
                said.close |= tokens(line.value).any(|token| token.eq_ignore_ascii_case(b"close"));
                said.keep_alive |=
                    tokens(line.value).any(|token| token.eq_ignore_ascii_case(b"keep-alive"));
            }
            17 if line.name.eq_ignore_ascii_case("transfer-encoding") => {
                // Several lines are one list; the last coding of all decides.
                if let Some(last) = tokens(line.value).last() {
                    said.chunked = Some(last.eq_ignore_ascii_case(b"chunked"));
                }
            }
            _ => {}
        }
    }
    Ok(said)
}

/// Reads a Content-Length; the same number several times is one number (RFC 9110, section 8.6).
fn length(value: &[u8], said: &mut Said) -> Result<(), ProtocolError> {
    let bad = || ProtocolError::BadLength {
        value: super::error::excerpt(value),
    };
    for token in value.split(|byte| *byte == b',') {
        let number = digits(token.trim_ascii()).ok_or_else(bad)?;
        match said.length {
            Some(first) if first != number => {
                return Err(ProtocolError::ConflictingLengths {
                    first,
                    second: number,
                });
            }
            _ => said.length = Some(number),
        }
    }
    Ok(())
}

/// Decimal digits and nothing else: `str::parse` would take a sign.
fn digits(token: &[u8]) -> Option<u64> {
    if token.is_empty() {
        return None;
    }
    token.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// The elements of a comma-separated list, blanks around them removed (a folded line has them inside).
fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}
