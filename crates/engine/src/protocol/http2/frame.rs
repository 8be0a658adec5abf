//! Frames: nine bytes and a payload (RFC 9113, section 4.1).

use std::fmt;

use crate::protocol::http2::Http2Error;

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

/// What comes next on the connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Any frame but DATA, of a kind that RFC 9113 defines.
    Frame { header: Header, payload: &'a [u8] },
    /// A piece of a DATA frame.
    Data {
        stream: u32,
        bytes: &'a [u8],
        /// Bytes that count against the windows: padding and its length too.
        flow: u32,
        /// It is the last piece of a frame that ends the stream.
        end: bool,
    },
    /// A frame of a kind nobody knows; its payload is skipped.
    Unknown(Kind),
}

/// Room for cut frames that is kept; what a large one took beyond it is given back.
const KEPT_ROOM: usize = 1024;

/// What is still to come of a DATA frame.
#[derive(Debug, Clone, Copy)]
struct Rest {
    stream: u32,
    data: usize,
    padding: usize,
    /// The length of the padding, which counts against the windows as well, was read.
    uncounted: u32,
    end: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Between frames.
    Header,
    Payload(Header),
    PadLength(Header),
    Data(Rest),
    Skip(usize),
    /// The server speaks HTTP/1.1: its first line is gathered, to be shown.
    Http1,
}

/// See the module. Keeps at most one frame that is not DATA: 16 kB.
#[derive(Debug)]
pub struct Framer {
    state: State,
    greeted: bool,
    /// The beginning of a header that was cut.
    header: [u8; HEADER_BYTES],
    have: usize,
    /// The beginning of a payload that was cut.
    payload: Vec<u8>,
    /// The gathered payload was told, and is to be forgotten before anything else.
    told: bool,
}

impl Default for Framer {
    fn default() -> Self {
        Self {
            state: State::Header,
            greeted: false,
            header: [0; HEADER_BYTES],
            have: 0,
            payload: Vec::new(),
            told: false,
        }
    }
}

impl Framer {
    /// Takes the next piece from the front of `bytes`; None: they were all taken, and are not enough for one.
    #[inline]
    pub fn next<'a, 'b: 'a>(
        &'a mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<Piece<'a>>, Http2Error> {
        if self.told {
            self.forget();
        }
        loop {
            match self.state {
                State::Header => {
                    let Some(header) = self.header(bytes) else {
                        return Ok(None);
                    };
                    if !self.greeted && !self.greet(&header, bytes)? {
                        continue;
                    }
                    if let Some(unknown) = self.enter(header)? {
                        return Ok(Some(unknown));
                    }
                }
                State::Payload(header) => {
                    let length = header.length as usize;
                    if self.payload.is_empty()
                        && let Some((payload, rest)) = bytes.split_at_checked(length)
                    {
                        *bytes = rest;
                        self.state = State::Header;
                        return Ok(Some(Piece::Frame { header, payload }));
                    }
                    self.gather(bytes, length);
                    if self.payload.len() < length {
                        return Ok(None);
                    }
                    self.state = State::Header;
                    self.told = true;
                    let payload = &self.payload;
                    return Ok(Some(Piece::Frame { header, payload }));
                }
                State::PadLength(header) => {
                    let Some((&padding, rest)) = bytes.split_first() else {
                        return Ok(None);
                    };
                    *bytes = rest;
                    self.state = State::Data(padded(&header, padding)?);
                }
                State::Data(rest) => return Ok(self.data(rest, bytes)),
                State::Skip(left) => {
                    let here = left.min(bytes.len());
                    *bytes = &bytes[here..];
                    if here < left {
                        self.state = State::Skip(left - here);
                        return Ok(None);
                    }
                    self.state = State::Header;
                }
                State::Http1 => return self.http1(bytes),
            }
        }
    }

    /// What a close at this point means where nothing else is told of it.
    pub fn eof(&self) -> Result<(), Http2Error> {
        match self.state {
            State::Http1 => Err(crate::protocol::http2::session::http1(&self.payload)),
            _ if self.greeted => Ok(()),
            _ => match self.have {
                0 => Err(Http2Error::ClosedAtOnce),
                have => Err(crate::protocol::http2::session::stranger(
                    &self.header[..have],
                    &[],
                )),
            },
        }
    }

    #[cfg(test)]
    pub fn memory(&self) -> usize {
        self.payload.capacity()
    }

    #[inline]
    fn header(&mut self, bytes: &mut &[u8]) -> Option<Header> {
        if self.have == 0
            && let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>()
        {
            *bytes = rest;
            if !self.greeted {
                self.header = *header;
            }
            return Some(Header::parse(header));
        }
        let here = bytes.len().min(HEADER_BYTES - self.have);
        self.header[self.have..self.have + here].copy_from_slice(&bytes[..here]);
        self.have += here;
        *bytes = &bytes[here..];
        (self.have == HEADER_BYTES).then(|| {
            self.have = 0;
            Header::parse(&self.header)
        })
    }

    /// Looks at the first bytes of the connection, which are in `self.header`; whether a frame begins with them.
    #[cold]
    fn greet(&mut self, header: &Header, more: &[u8]) -> Result<bool, Http2Error> {
        if crate::protocol::http2::session::is_http1(&self.header) {
            self.payload.extend_from_slice(&self.header);
            self.state = State::Http1;
            return Ok(false);
        }
        crate::protocol::http2::session::check(header, &self.header, more)?;
        self.greeted = true;
        Ok(true)
    }

    /// A frame begins.
    #[inline]
    fn enter(&mut self, header: Header) -> Result<Option<Piece<'static>>, Http2Error> {
        if header.length > DEFAULT_MAX_FRAME {
            return Err(Http2Error::FrameTooLarge {
                kind: header.kind,
                length: header.length,
                limit: DEFAULT_MAX_FRAME,
            });
        }
        self.state = match header.kind {
            Kind::DATA if header.has(PADDED) => {
                if header.length == 0 {
                    return Err(bad_padding());
                }
                State::PadLength(header)
            }
            Kind::DATA => State::Data(Rest {
                stream: header.stream,
                data: header.length as usize,
                padding: 0,
                uncounted: 0,
                end: header.has(END_STREAM),
            }),
            kind if kind.is_known() => State::Payload(header),
            kind => {
                self.state = State::Skip(header.length as usize);
                return Ok(Some(Piece::Unknown(kind)));
            }
        };
        Ok(None)
    }

    #[inline]
    fn data<'a>(&mut self, rest: Rest, bytes: &mut &'a [u8]) -> Option<Piece<'a>> {
        let data = rest.data.min(bytes.len());
        let padding = match data == rest.data {
            true => rest.padding.min(bytes.len() - data),
            false => 0,
        };
        let left = rest.data - data + rest.padding - padding;
        if left > 0 && bytes.is_empty() {
            return None;
        }
        self.state = match left {
            0 => State::Header,
            _ => State::Data(Rest {
                data: rest.data - data,
                padding: rest.padding - padding,
                uncounted: 0,
                ..rest
            }),
        };
        let (taken, after) = bytes.split_at(data + padding);
        *bytes = after;
        Some(Piece::Data {
            stream: rest.stream,
            bytes: &taken[..data],
            // The cast is exact: a frame is at most 16 kB.
            flow: taken.len() as u32 + rest.uncounted,
            end: rest.end && left == 0,
        })
    }

    fn gather(&mut self, bytes: &mut &[u8], length: usize) {
        let here = bytes.len().min(length - self.payload.len());
        self.payload.extend_from_slice(&bytes[..here]);
        *bytes = &bytes[here..];
    }

    fn forget(&mut self) {
        self.told = false;
        self.payload.clear();
        self.payload.shrink_to(KEPT_ROOM);
    }

    #[cold]
    fn http1<'a>(&mut self, bytes: &mut &[u8]) -> Result<Option<Piece<'a>>, Http2Error> {
        self.gather(bytes, crate::protocol::http2::session::LONGEST_LINE);
        match memchr::memchr(b'\n', &self.payload) {
            None if self.payload.len() < crate::protocol::http2::session::LONGEST_LINE => Ok(None),
            _ => Err(crate::protocol::http2::session::http1(&self.payload)),
        }
    }
}

fn padded(header: &Header, padding: u8) -> Result<Rest, Http2Error> {
    let padding = usize::from(padding);
    let data = (header.length as usize - 1)
        .checked_sub(padding)
        .ok_or_else(bad_padding)?;
    Ok(Rest {
        stream: header.stream,
        data,
        padding,
        uncounted: 1,
        end: header.has(END_STREAM),
    })
}

const fn bad_padding() -> Http2Error {
    Http2Error::BadFrame {
        kind: Kind::DATA,
        why: "its padding is longer than its payload",
    }
}
