//! The head of each request of a load: encoded once, or spelt out anew each time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::protocol::http2::hpack;
use crate::protocol::http2::hpack::{DEFAULT_TABLE_SIZE, FIELDS};
use crate::requests::Request;
use crate::template::{Occasion, Template, decimal};

/// See the module.
#[derive(Clone, Debug)]
pub enum Heads {
    /// Always the same one.
    Fixed(Arc<RequestHead>),
    /// Another each time.
    Made(Arc<Made>),
}

#[derive(Debug)]
enum Piece {
    /// Fields that do not change, encoded.
    Coded(Vec<u8>),
    Field(String, Template),
    /// How long the body is.
    Length,
}

/// A head that differs from request to request: none of its fields is put into the server's table, which they would
/// only flood.
#[derive(Debug)]
pub struct Made(Vec<Piece>);

impl Heads {
    /// The head of a request.
    ///
    /// # Errors
    /// A field that HTTP/2 does not allow.
    pub fn of(request: &Request, scheme: &str) -> Result<Heads, BadField> {
        let first = Occasion::default();
        let text =
            |template: &Template| String::from_utf8_lossy(&template.filled(first)).into_owned();
        let is_host = |(name, _): &&(String, Template)| name.eq_ignore_ascii_case("host");
        let host = request.fields.iter().find(is_host);
        let mut fields: Vec<(String, Template)> = request
            .fields
            .iter()
            .filter(|field| !is_host(field))
            .cloned()
            .collect();
        let length = Template::fixed(request.body.filled(first).len().to_string());
        if request.tells_length {
            fields.push(("content-length".to_owned(), length));
        }
        let filled: Vec<(String, String)> = fields
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        let borrowed: Vec<(&str, &str)> = filled
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let authority = host.map(|(_, value)| value.clone()).unwrap_or_default();
        let head = RequestHead::new(
            &request.method,
            scheme,
            &text(&authority),
            &text(&request.path),
            &borrowed,
        )?;
        if request.is_fixed() {
            return Ok(Heads::Fixed(Arc::new(head)));
        }
        let mut made = Made(Vec::new());
        made.push(":method", Template::fixed(request.method.as_str()));
        made.push(":scheme", Template::fixed(scheme));
        made.push(":path", request.path.clone());
        made.push(":authority", authority);
        for (name, value) in fields {
            match name == "content-length" && !request.body.is_fixed() {
                true => made.0.push(Piece::Length),
                false => made.push(&name.to_ascii_lowercase(), value),
            }
        }
        Ok(Heads::Made(Arc::new(made)))
    }
}

impl Heads {
    /// A copy for one thread: a count that all share would travel between CPUs with each request.
    #[must_use]
    pub fn own(&self) -> Heads {
        match self {
            Heads::Fixed(head) => Heads::Fixed(Arc::new(RequestHead::clone(head))),
            Heads::Made(made) => Heads::Made(made.clone()),
        }
    }
}

impl Made {
    fn push(&mut self, name: &str, value: Template) {
        if !value.is_fixed() {
            return self.0.push(Piece::Field(name.to_owned(), value));
        }
        if !matches!(self.0.last(), Some(Piece::Coded(_))) {
            self.0.push(Piece::Coded(Vec::new()));
        }
        let value = value.filled(Occasion::default());
        if let Some(Piece::Coded(coded)) = self.0.last_mut() {
            spell(coded, name.as_bytes(), &value);
        }
    }

    /// Makes `head` that of one request whose body has so many bytes.
    pub fn spell(
        &self,
        occasion: Occasion,
        body_bytes: usize,
        scratch: &mut Vec<u8>,
        head: &mut RequestHead,
    ) {
        head.spelt.clear();
        for piece in &self.0 {
            scratch.clear();
            match piece {
                Piece::Coded(coded) => head.spelt.extend_from_slice(coded),
                Piece::Field(name, value) => {
                    value.fill(occasion, scratch);
                    spell(&mut head.spelt, name.as_bytes(), scratch);
                }
                Piece::Length => {
                    decimal(body_bytes as u64, scratch);
                    spell(&mut head.spelt, b"content-length", scratch);
                }
            }
        }
    }
}

fn spell(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    match hpack::find_static(name, value) {
        Some((index, true)) => hpack::indexed(out, index),
        _ => hpack::literal(out, name, value, false),
    }
}

/// The longest `grpc-message` that is kept; the rest is cut off. Enough for a sentence and the top of a traceback.
pub const MAX_MESSAGE: usize = 1024;

/// The field `grpc-status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GrpcStatus {
    #[default]
    Missing,
    Code(u32),
    /// It is there and is not a number.
    Unreadable,
}

/// How a gRPC server says what became of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GrpcTrailer<'a> {
    pub status: GrpcStatus,
    /// `grpc-message` as it came: percent-encoded, and cut after [`MAX_MESSAGE`] bytes.
    pub message: &'a [u8],
}

/// The field `content-length`: what the body must come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Length {
    #[default]
    Untold,
    Bytes(u64),
    /// It is there and is not a number, or is there twice with two numbers.
    Unreadable,
}

impl Length {
    /// One field more. The same number several times is one number (RFC 9110, section 8.6).
    fn take(&mut self, value: &[u8]) {
        for token in value.split(|byte| *byte == b',') {
            *self = match (*self, digits(token.trim_ascii())) {
                (Self::Untold, Some(bytes)) => Self::Bytes(bytes),
                (Self::Bytes(before), Some(bytes)) if before == bytes => Self::Bytes(bytes),
                _ => Self::Unreadable,
            };
        }
    }
}

/// What one header block says.
#[derive(Debug, Default)]
pub struct Fields {
    pub status: Option<u16>,
    pub length: Length,
    pub grpc: GrpcStatus,
    message: Vec<u8>,
    /// What is wrong with the block by RFC 9113, section 8: the stream is faulty, not the connection.
    pub fault: Option<&'static str>,
    regular: bool,
}

impl Fields {
    /// Before a block.
    #[inline]
    pub fn clear(&mut self) {
        self.status = None;
        self.length = Length::Untold;
        self.grpc = GrpcStatus::Missing;
        self.message.clear();
        self.fault = None;
        self.regular = false;
    }

    /// One field. The length of the name tells those that matter from nearly all others.
    #[inline]
    pub fn take(&mut self, name: &[u8], value: &[u8]) {
        if name.first() == Some(&b':') {
            return self.pseudo(name, value);
        }
        self.regular = true;
        match name.len() {
            11 if name == b"grpc-status" => {
                let code = digits(value).and_then(|code| u32::try_from(code).ok());
                self.grpc = code.map_or(GrpcStatus::Unreadable, GrpcStatus::Code);
            }
            12 if name == b"grpc-message" => {
                self.message.clear();
                self.message
                    .extend_from_slice(&value[..value.len().min(MAX_MESSAGE)]);
            }
            14 if name == b"content-length" => self.length.take(value),
            _ => {}
        }
    }

    #[inline]
    fn pseudo(&mut self, name: &[u8], value: &[u8]) {
        let status = match value {
            [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
            }
            _ => None,
        };
        let fault = match (name, status) {
            (b":status", None) => Some("its :status is not a number of three digits"),
            (b":status", _) if self.status.is_some() => Some("it has :status twice"),
            (b":status", _) if self.regular => Some("its :status comes after other fields"),
            (b":status", Some(_)) => None,
            _ => Some("it has a pseudo-header field other than :status"),
        };
        self.fault = self.fault.or(fault);
        self.status = status;
    }

    /// What it says of a gRPC call.
    #[inline]
    pub fn trailer(&self) -> GrpcTrailer<'_> {
        GrpcTrailer {
            status: self.grpc,
            message: &self.message,
        }
    }
}

/// Decimal digits and nothing else: `str::parse` would take a sign.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

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
