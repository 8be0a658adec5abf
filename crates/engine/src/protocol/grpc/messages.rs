//! Length-prefixed messages as they pass: counted, compared, never kept.

use crate::protocol::BodyCheck;
use crate::protocol::body::Body;

/// A flag and four bytes of length before each message.
const PREFIX_BYTES: usize = 5;

/// The flag of a message says that it is compressed, or something nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadFlag(pub u8);

/// The reader of one direction of one call.
#[derive(Debug)]
pub struct Messages {
    prefix: [u8; PREFIX_BYTES],
    have: usize,
    /// Bytes of the present message that are missing.
    left: u32,
    /// Contents are compared, not only lengths.
    compare: bool,
    body: Body,
    pub count: u64,
    /// Bytes of messages, without prefixes.
    pub bytes: u64,
    /// The first wrong one, counted from 0.
    pub wrong: Option<u64>,
    pub check: BodyCheck,
}

impl Messages {
    pub const fn new(compare: bool) -> Self {
        Self {
            prefix: [0; PREFIX_BYTES],
            have: 0,
            left: 0,
            compare,
            body: Body::new(compare),
            count: 0,
            bytes: 0,
            wrong: None,
            check: BodyCheck::Unchecked,
        }
    }

    /// Whether the stream may end here.
    pub const fn is_whole(&self) -> bool {
        self.have == 0
    }

    /// How many bytes of the present message have come, and how many it has; its length may be unknown.
    pub fn progress(&self) -> (u64, Option<u64>) {
        let known = self.have == PREFIX_BYTES;
        let come = self.body.len();
        (come, known.then(|| come + u64::from(self.left)))
    }

    /// Takes a piece. `expected` are the right messages, the last of them for all that follow; empty: unknown.
    #[inline]
    pub fn feed(&mut self, mut bytes: &[u8], expected: &[Box<[u8]>]) -> Result<(), BadFlag> {
        while !bytes.is_empty() {
            if self.have < PREFIX_BYTES {
                let here = bytes.len().min(PREFIX_BYTES - self.have);
                self.prefix[self.have..self.have + here].copy_from_slice(&bytes[..here]);
                self.have += here;
                bytes = &bytes[here..];
                if self.have < PREFIX_BYTES {
                    return Ok(());
                }
                self.enter()?;
            }
            // The cast is exact: the smaller of the two fits in u32.
            let here = bytes.len().min(self.left as usize);
            let right = self.right(expected);
            self.body.take(&bytes[..here], right);
            self.left -= here as u32;
            bytes = &bytes[here..];
            if self.left == 0 {
                self.end(right);
            }
        }
        Ok(())
    }

    #[inline]
    fn enter(&mut self) -> Result<(), BadFlag> {
        let [flag, l0, l1, l2, l3] = self.prefix;
        if flag != 0 {
            return Err(BadFlag(flag));
        }
        self.left = u32::from_be_bytes([l0, l1, l2, l3]);
        self.body = Body::new(self.compare);
        Ok(())
    }

    /// The right content of the present message.
    #[inline]
    fn right<'a>(&self, expected: &'a [Box<[u8]>]) -> Option<&'a [u8]> {
        let last = expected.len().checked_sub(1)?;
        let at = usize::try_from(self.count).unwrap_or(last).min(last);
        Some(&expected[at])
    }

    #[inline]
    fn end(&mut self, right: Option<&[u8]>) {
        let check = self.body.verdict(right);
        match (self.wrong, check) {
            (None, BodyCheck::Wrong) => {
                self.wrong = Some(self.count);
                self.check = check;
            }
            (None, _) => self.check = check,
            _ => {}
        }
        self.bytes += self.body.len();
        self.count += 1;
        self.have = 0;
        self.body = Body::new(self.compare);
    }
}
