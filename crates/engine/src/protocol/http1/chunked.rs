//! Chunked transfer coding (RFC 9112, section 7.1), fed in any pieces, keeping none of them.

use super::MAX_HEAD_BYTES;
use crate::protocol::http1::ProtocolError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before the first digit of a size.
    SizeStart,
    /// Within the digits.
    Size,
    /// After the digits: blanks or `;name=value`, up to the line end.
    Extension,
    /// After the CR that ends a size line.
    SizeCr,
    Data,
    /// The line end after the data of a chunk.
    DataEnd,
    DataCr,
    /// At the beginning of a trailer line; an empty one ends the body.
    TrailerStart,
    TrailerCr,
    Trailer,
}

/// The decoder of one body: 24 bytes.
#[derive(Debug)]
pub(crate) struct Chunks {
    at: At,
    /// The size being read, then the bytes of data that are missing.
    left: u64,
    /// Bytes of extensions (of this chunk) or trailers (of all) skipped so far.
    skipped: usize,
}

impl Chunks {
    pub const fn new() -> Self {
        Self {
            at: At::SizeStart,
            left: 0,
            skipped: 0,
        }
    }

    /// Decodes a slice; `data` gets the pieces of body in it. Returns how many bytes were used and whether
    /// the body is complete.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<(usize, bool), ProtocolError> {
        let mut used = 0;
        while used < bytes.len() {
            let rest = &bytes[used..];
            match self.at {
                At::Data => {
                    // The cast is exact: the smaller of the two fits in usize.
                    let here = (rest.len() as u64).min(self.left) as usize;
                    data(&rest[..here]);
                    self.left -= here as u64;
                    used += here;
                    if self.left == 0 {
                        self.at = At::DataEnd;
                    }
                }
                At::Extension | At::Trailer => used += self.skip_line(rest)?,
                _ => {
                    used += 1;
                    if self.step(rest[0])? {
                        return Ok((used, true));
                    }
                }
            }
        }
        Ok((used, false))
    }

    /// One byte of framing; whether it was the last.
    fn step(&mut self, byte: u8) -> Result<bool, ProtocolError> {
        self.at = match (self.at, byte) {
            (At::SizeStart | At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                // The pattern admits hexadecimal digits only.
                let digit = u64::from((byte as char).to_digit(16).unwrap_or(0));
                self.left = self
                    .left
                    .checked_mul(16)
                    .ok_or(ProtocolError::ChunkOverflow)?
                    + digit;
                At::Size
            }
            (At::Size, b'\r') => At::SizeCr,
            (At::Size, b'\n') | (At::SizeCr, b'\n') => self.end_of_size(),
            (At::Size, b';' | b' ' | b'\t') => At::Extension,
            (At::DataEnd, b'\r') => At::DataCr,
            (At::DataEnd | At::DataCr, b'\n') => At::SizeStart,
            (At::TrailerStart, b'\r') => At::TrailerCr,
            (At::TrailerStart | At::TrailerCr, b'\n') => return Ok(true),
            (At::TrailerStart, _) => {
                self.skipped += 1;
                At::Trailer
            }
            (At::SizeStart | At::Size, _) => {
                return Err(ProtocolError::BadChunk(
                    "its size is not a hexadecimal number",
                ));
            }
            (At::DataEnd, _) => {
                return Err(ProtocolError::BadChunk("its data is longer than its size"));
            }
            _ => return Err(ProtocolError::BadChunk("a CR is not followed by LF")),
        };
        Ok(false)
    }

    fn end_of_size(&mut self) -> At {
        self.skipped = 0;
        if self.left == 0 {
            At::TrailerStart
        } else {
            At::Data
        }
    }

    /// Skips to the end of an extension or trailer line; returns the bytes used.
    fn skip_line(&mut self, bytes: &[u8]) -> Result<usize, ProtocolError> {
        let line_end = memchr::memchr(b'\n', bytes);
        let used = line_end.map_or(bytes.len(), |at| at + 1);
        self.skipped += used;
        if self.skipped > MAX_HEAD_BYTES {
            return Err(ProtocolError::ChunkLineTooLong);
        }
        if line_end.is_some() {
            self.at = if self.at == At::Extension {
                self.end_of_size()
            } else {
                At::TrailerStart
            };
        }
        Ok(used)
    }
}
