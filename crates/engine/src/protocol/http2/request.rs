//! The head of a request, encoded once and written many times.

use std::sync::atomic::{AtomicU64, Ordering};

use super::hpack::{self, DEFAULT_TABLE_SIZE, FIELDS};

/// Raised when a field cannot be in an HTTP/2 request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadField {
    /// RFC 9113, section 8.2.1.
    #[error("the header field {0:?} has a name or value that HTTP/2 does not allow")]
    Characters(String),
    /// RFC 9113, section 8.2.2: HTTP/2 frames its messages itself.
    #[error("the header field {0:?} is about an HTTP/1.1 connection; leave it out for HTTP/2")]
    ConnectionSpecific(String),
}

/// All streams of all connections share one head.
///
/// It is kept in three encodings. The first stream of a connection spells the fields out and puts them into the
/// server's table; all others name them there, a byte or two for each: this is what every real client does, so that
/// a server (some unpack headers in Python) is not loaded with work that no client of the field gives it, and a head
/// of 150 bytes becomes one of 10. Where the server allows no table, or it holds another head, fields are spelt out
/// without being kept.
#[derive(Debug, Clone)]
pub struct RequestHead {
    pub(super) number: u64,
    pub(super) first: Box<[u8]>,
    pub(super) again: Box<[u8]>,
    /// Each field, kept by nobody.
    pub(super) spelt: Vec<u8>,
    /// What its fields take in the server's table.
    pub(super) size: usize,
}

/// A head to be made: it has room for a spelling, and no table has room for it.
impl Default for RequestHead {
    fn default() -> RequestHead {
        RequestHead {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            first: Box::default(),
            again: Box::default(),
            spelt: Vec::new(),
            size: usize::MAX,
        }
    }
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl RequestHead {
    /// A head. `authority`: host and port; `path`: path and query; `fields`: all others, whose names are made lower
    /// case.
    ///
    /// # Errors
    /// A field that HTTP/2 does not allow.
    pub fn new(
        method: &str,
        scheme: &str,
        authority: &str,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Self, BadField> {
        let mut all = vec![
            (":method".to_owned(), method),
            (":scheme".to_owned(), scheme),
            (":path".to_owned(), path),
            (":authority".to_owned(), authority),
        ];
        for (name, value) in fields {
            all.push((checked(name)?, value));
        }
        if let Some((name, _)) = all.iter().find(|(_, value)| !is_value(value)) {
            return Err(BadField::Characters(name.clone()));
        }
        Ok(Self::encode(&all))
    }

    fn encode(fields: &[(String, &str)]) -> Self {
        let (mut first, mut again, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        let places: Vec<_> = fields
            .iter()
            .map(|(name, value)| hpack::find_static(name.as_bytes(), value.as_bytes()))
            .collect();
        let is_spelt = |place: &Option<(usize, bool)>| !place.is_some_and(|(_, whole)| whole);
        // The field put into the table last is its first entry.
        let mut behind = places.iter().filter(|place| is_spelt(place)).count();
        let mut size = 0;
        for ((name, value), place) in fields.iter().zip(&places) {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            if let Some((index, true)) = *place {
                for encoding in [&mut first, &mut again, &mut plain] {
                    hpack::indexed(encoding, index);
                }
                continue;
            }
            hpack::literal(&mut first, name, value, true);
            hpack::literal(&mut plain, name, value, false);
            hpack::indexed(&mut again, FIELDS.len() + behind);
            behind -= 1;
            size += hpack::cost(name, value);
        }
        Self {
            // Relaxed: only that no two are the same matters.
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            first: first.into(),
            again: again.into(),
            spelt: plain,
            size,
        }
    }
}

fn checked(name: &str) -> Result<String, BadField> {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_tchar) {
        return Err(BadField::Characters(name.to_owned()));
    }
    let lower = name.to_ascii_lowercase();
    let forbidden = [
        "connection",
        "proxy-connection",
        "keep-alive",
        "transfer-encoding",
        "upgrade",
        "host",
    ];
    match forbidden.contains(&lower.as_str()) {
        true => Err(BadField::ConnectionSpecific(name.to_owned())),
        false => Ok(lower),
    }
}

fn is_value(value: &str) -> bool {
    value.trim_matches([' ', '\t']) == value
        && value
            .bytes()
            .all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

/// What the server's table holds of this side's heads, and how large it may be.
#[derive(Debug)]
pub struct Table {
    holds: Option<u64>,
    size: usize,
    /// The server has made the table smaller and was not told yet that this side follows.
    resized: bool,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            holds: None,
            size: DEFAULT_TABLE_SIZE,
            resized: false,
        }
    }
}

impl Table {
    /// The server allows a table of so many bytes. This side follows it down, and never up again: nothing would be
    /// gained, a head fits in a small table or does not need one.
    pub fn allow(&mut self, size: u32) {
        let size = size as usize;
        if size < self.size {
            self.size = size;
            self.resized = true;
        }
    }

    /// The block to write for a head, before which `out` gets what must come before it.
    pub fn block<'h>(&mut self, head: &'h RequestHead, before: &mut Vec<u8>) -> &'h [u8] {
        if std::mem::take(&mut self.resized) {
            hpack::resize(before, self.size);
        }
        if head.size > self.size {
            return &head.spelt;
        }
        match self.holds {
            Some(number) if number == head.number => &head.again,
            Some(_) => &head.spelt,
            None => {
                self.holds = Some(head.number);
                &head.first
            }
        }
    }
}
