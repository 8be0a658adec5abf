//! Frames: nine bytes and a payload (RFC 9113, section 4.1).

use std::fmt;

/// Bytes before each payload.
pub const HEADER_BYTES: usize = 9;

/// The largest payload that needs no agreement (section 4.2).
pub const DEFAULT_MAX_FRAME: u32 = 16_384;

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const PRIORITY: u8 = 0x20;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind(pub u8);

impl Kind {
    pub const DATA: Kind = Kind(0);
    pub const HEADERS: Kind = Kind(1);
    pub const PRIORITY: Kind = Kind(2);
    pub const RST_STREAM: Kind = Kind(3);
    pub const SETTINGS: Kind = Kind(4);
    pub const PUSH_PROMISE: Kind = Kind(5);
    pub const PING: Kind = Kind(6);
    pub const GOAWAY: Kind = Kind(7);
    pub const WINDOW_UPDATE: Kind = Kind(8);
    pub const CONTINUATION: Kind = Kind(9);

    /// Whether section 6 defines it.
    pub const fn is_known(self) -> bool {
        self.0 <= Self::CONTINUATION.0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 10] = [
            "DATA",
            "HEADERS",
            "PRIORITY",
            "RST_STREAM",
            "SETTINGS",
            "PUSH_PROMISE",
            "PING",
            "GOAWAY",
            "WINDOW_UPDATE",
            "CONTINUATION",
        ];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => out.write_str(name),
            None => write!(out, "frame type {}", self.0),
        }
    }
}

/// Names of error codes (section 7).
#[must_use]
pub fn code_name(code: u32) -> String {
    const NAMES: [&str; 14] = [
        "NO_ERROR",
        "PROTOCOL_ERROR",
        "INTERNAL_ERROR",
        "FLOW_CONTROL_ERROR",
        "SETTINGS_TIMEOUT",
        "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM",
        "CANCEL",
        "COMPRESSION_ERROR",
        "CONNECT_ERROR",
        "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ];
    NAMES
        .get(code as usize)
        .map_or_else(|| format!("error {code:#x}"), |name| (*name).to_owned())
}

/// The stream ended as it should.
pub const NO_ERROR: u32 = 0x0;
/// The answer on the stream contradicts the protocol.
pub const PROTOCOL_ERROR: u32 = 0x1;
/// A stream's window was overrun or overflowed.
pub const FLOW_CONTROL_ERROR: u32 = 0x3;
/// The server did nothing with the request.
pub const REFUSED_STREAM: u32 = 0x7;
/// This side needs the answer no more.
pub const CANCEL: u32 = 0x8;

/// The first nine bytes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub length: u32,
    pub kind: Kind,
    pub flags: u8,
    pub stream: u32,
}

impl Header {
    #[inline]
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Header {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        Header {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind: Kind(kind),
            flags,
            // The first bit is reserved and ignored.
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff,
        }
    }

    #[inline]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends the nine bytes of a frame whose payload follows.
#[inline]
pub fn begin(out: &mut Vec<u8>, length: usize, kind: Kind, flags: u8, stream: u32) {
    let [_, l0, l1, l2] = (length as u32).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    out.extend_from_slice(&[l0, l1, l2, kind.0, flags, s0, s1, s2, s3]);
}

/// Ends a stream.
pub fn rst_stream(out: &mut Vec<u8>, stream: u32, code: u32) {
    begin(out, 4, Kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&code.to_be_bytes());
}

/// Widens a window.
pub fn window_update(out: &mut Vec<u8>, stream: u32, by: u32) {
    begin(out, 4, Kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&by.to_be_bytes());
}

/// Leaves the connection. No stream of the server's was processed: it begins none.
pub fn goaway(out: &mut Vec<u8>, code: u32) {
    begin(out, 8, Kind::GOAWAY, 0, 0);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&code.to_be_bytes());
}

/// The payload between padding and priority, which say nothing to a client.
pub fn unpadded<'a>(header: &Header, payload: &'a [u8]) -> Option<&'a [u8]> {
    let (padding, payload) = match header.has(PADDED) {
        true => {
            let (&padding, rest) = payload.split_first()?;
            (usize::from(padding), rest)
        }
        false => (0, payload),
    };
    let fixed = match header.kind == Kind::HEADERS && header.has(PRIORITY) {
        true => 5,
        false => 0,
    };
    let end = payload.len().checked_sub(padding)?;
    payload.get(fixed..end)
}
