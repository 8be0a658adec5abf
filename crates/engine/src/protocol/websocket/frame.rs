//! Frames: two to fourteen bytes and a payload (RFC 6455, section 5.2).

use std::fmt;

use crate::protocol::websocket::WebSocketError;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Binary,
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Kind::Text => "text",
            Kind::Binary => "binary",
        })
    }
}

pub const CONTINUATION: u8 = 0x0;
pub const TEXT: u8 = 0x1;
pub const BINARY: u8 = 0x2;
pub const CLOSE: u8 = 0x8;
pub const PING: u8 = 0x9;
pub const PONG: u8 = 0xa;

/// A control frame has no more (section 5.5).
pub const MOST_CONTROL: usize = 125;
/// Two bytes, and eight of length: a server masks nothing.
pub const LONGEST_HEADER: usize = 10;

/// What stands before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub last: bool,
    pub opcode: u8,
    pub length: u64,
}

impl Header {
    /// How many bytes the header has that begins so; None: two are needed to tell.
    #[inline]
    pub fn size(start: &[u8]) -> Option<usize> {
        Some(match start.get(1)? & 0x7f {
            126 => 4,
            127 => 10,
            _ => 2,
        })
    }

    /// Reads a whole header of a server's frame.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Header, WebSocketError> {
        let bad = |why| Err(WebSocketError::BadFrame { why });
        let (first, length) = match *bytes {
            [first, length] => (first, u64::from(length)),
            [first, _, l0, l1] => (first, u64::from(u16::from_be_bytes([l0, l1]))),
            [first, _, l0, l1, l2, l3, l4, l5, l6, l7] => {
                (first, u64::from_be_bytes([l0, l1, l2, l3, l4, l5, l6, l7]))
            }
            _ => return bad("its header is cut"),
        };
        if bytes[1] & 0x80 != 0 {
            return bad("it is masked, which only a client does");
        }
        if first & 0x70 != 0 {
            return bad("it uses an extension that was not agreed upon");
        }
        let least = match bytes.len() {
            4 => 126,
            10 => 65_536,
            _ => 0,
        };
        if length < least || length >> 63 != 0 {
            return bad("its length is not written as it must be");
        }
        let header = Header {
            last: first & 0x80 != 0,
            opcode: first & 0x0f,
            length,
        };
        match header.opcode {
            CONTINUATION | TEXT | BINARY => Ok(header),
            CLOSE | PING | PONG if !header.last => bad("it is a control frame in pieces"),
            CLOSE | PING | PONG if length > MOST_CONTROL as u64 => {
                bad("it is a control frame of more than 125 bytes")
            }
            CLOSE | PING | PONG => Ok(header),
            _ => bad("its opcode means nothing"),
        }
    }
}

/// A whole message in one frame, masked. A message that is sent again and again is framed once: the mask is there to
/// keep scripts in browsers from choosing the bytes that proxies see (section 10.3), and a generator runs none.
#[must_use]
pub fn framed(kind: Kind, message: &[u8], mask: [u8; 4]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(message.len() + 14);
    framed_into(&mut frame, kind, message, mask);
    frame
}

/// The same, appended.
pub fn framed_into(out: &mut Vec<u8>, kind: Kind, message: &[u8], mask: [u8; 4]) {
    let opcode = match kind {
        Kind::Text => TEXT,
        Kind::Binary => BINARY,
    };
    write(out, opcode, message, mask);
}

/// Any frame that is the only one of its message.
pub fn write(out: &mut Vec<u8>, opcode: u8, payload: &[u8], mask: [u8; 4]) {
    out.push(0x80 | opcode);
    let length = payload.len();
    // The casts are exact: each is within the bounds of its arm.
    match length {
        0..=125 => out.push(0x80 | length as u8),
        126..=65_535 => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.push(0x80 | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    let start = out.len();
    out.extend_from_slice(payload);
    masked(&mut out[start..], mask);
}

/// Masks or unmasks in place (section 5.3), eight bytes at a time.
pub fn masked(bytes: &mut [u8], [m0, m1, m2, m3]: [u8; 4]) {
    let wide = u64::from_ne_bytes([m0, m1, m2, m3, m0, m1, m2, m3]);
    let (words, rest) = bytes.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip([m0, m1, m2, m3].into_iter().cycle()) {
        *byte ^= mask;
    }
}
