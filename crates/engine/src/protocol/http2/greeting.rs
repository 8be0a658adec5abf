//! The first bytes of a server: is it HTTP/2 at all?

use super::error::Http2Error;
use super::frame::{HEADER_BYTES, Header, Kind};
use crate::protocol::excerpt::excerpt;

/// As much of a status line as is waited for and shown.
pub const LONGEST_LINE: usize = 128;

/// A frame that began so would be of 4.7 MB.
pub fn is_http1(start: &[u8; HEADER_BYTES]) -> bool {
    start.starts_with(b"HTTP/")
}

/// What an HTTP/1.1 server says; `start` is its first line, or what came of it.
pub fn http1(start: &[u8]) -> Http2Error {
    let line = start.split(|byte| *byte == b'\n').next().unwrap_or(start);
    Http2Error::Http1 {
        line: excerpt(line.trim_ascii_end()),
    }
}

/// RFC 9113, section 3.4: the first frame is SETTINGS, and no acknowledgement.
pub fn check(header: &Header, start: &[u8; HEADER_BYTES], more: &[u8]) -> Result<(), Http2Error> {
    let plausible = header.kind.is_known() && header.length <= super::frame::DEFAULT_MAX_FRAME;
    match header.kind {
        _ if !plausible => Err(stranger(start, more)),
        Kind::SETTINGS if header.stream == 0 => Ok(()),
        kind => Err(Http2Error::NoSettings { kind }),
    }
}

/// Neither HTTP/2 nor HTTP/1.
pub fn stranger(start: &[u8], more: &[u8]) -> Http2Error {
    // RFC 8446, section 5.1: content type 21 is an alert, and the version begins with 3.
    if start.starts_with(&[21, 3]) {
        return Http2Error::Tls;
    }
    let enough = more.len().min(64);
    Http2Error::NotHttp2 {
        start: excerpt(&[start, &more[..enough]].concat()),
    }
}
