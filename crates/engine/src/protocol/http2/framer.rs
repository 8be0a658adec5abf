//! Bytes into frames, however they are cut. DATA passes through in pieces; every other frame comes whole.

use super::error::Http2Error;
use super::frame::{DEFAULT_MAX_FRAME, END_STREAM, HEADER_BYTES, Header, Kind, PADDED};
use super::greeting;

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
            State::Http1 => Err(greeting::http1(&self.payload)),
            _ if self.greeted => Ok(()),
            _ => match self.have {
                0 => Err(Http2Error::ClosedAtOnce),
                have => Err(greeting::stranger(&self.header[..have], &[])),
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
        if greeting::is_http1(&self.header) {
            self.payload.extend_from_slice(&self.header);
            self.state = State::Http1;
            return Ok(false);
        }
        greeting::check(header, &self.header, more)?;
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
        self.gather(bytes, greeting::LONGEST_LINE);
        match memchr::memchr(b'\n', &self.payload) {
            None if self.payload.len() < greeting::LONGEST_LINE => Ok(None),
            _ => Err(greeting::http1(&self.payload)),
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
