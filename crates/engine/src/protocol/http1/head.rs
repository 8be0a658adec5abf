//! The head of an answer: status, how the body ends, whether the connection goes on.

use std::mem::MaybeUninit;

use httparse::{Error, Header, ParserConfig, Response, Status};

use super::{MAX_HEAD_BYTES, MAX_HEADERS};
use crate::protocol::excerpt::excerpt;
use crate::protocol::http1::ProtocolError;

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
        value: excerpt(value),
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
