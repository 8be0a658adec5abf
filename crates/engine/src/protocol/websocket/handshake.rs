//! The opening handshake (RFC 6455, section 4.1): an HTTP/1.1 request, and what its answer must be.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use httparse::{Error, Response, Status};
use sha1_smol::Sha1;

use crate::protocol::excerpt::excerpt;
use crate::protocol::http1::{MAX_HEADERS, Partial, ProtocolError};
use crate::protocol::websocket::WebSocketError;

/// Section 1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Characters of a key: 16 bytes in base64.
const KEY_CHARS: usize = 24;

/// Raised when a header field cannot stand in the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the header field {0:?} belongs to the opening handshake, which writes it itself; leave it out"
)]
pub struct Reserved(pub String);

/// The requests of a worker's connections: all the same but for their keys.
#[derive(Debug, Clone)]
pub struct Upgrade {
    before: Vec<u8>,
    after: Vec<u8>,
    random: u64,
}

impl Upgrade {
    /// Requests for `path` (with its query) of `authority` (host and port). `fields` go with each; they are checked
    /// header fields.
    ///
    /// # Errors
    /// A field that the handshake writes itself.
    pub fn new(authority: &str, path: &str, fields: &[(&str, &str)]) -> Result<Self, Reserved> {
        let given = |wanted: &str| {
            fields
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        let mut before = format!("GET {path} HTTP/1.1\r\n");
        if !given("host") {
            before += &format!("Host: {authority}\r\n");
        }
        if !given("user-agent") {
            before += concat!("User-Agent: velodrome/", env!("CARGO_PKG_VERSION"), "\r\n");
        }
        for (name, value) in fields {
            let lower = name.to_ascii_lowercase();
            let reserved = [
                "upgrade",
                "connection",
                "sec-websocket-key",
                "sec-websocket-version",
            ];
            // An extension would change what frames mean, and none is spoken here.
            if reserved.contains(&lower.as_str()) || lower == "sec-websocket-extensions" {
                return Err(Reserved((*name).to_owned()));
            }
            before += &format!("{name}: {value}\r\n");
        }
        before += "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ";
        Ok(Self {
            before: before.into_bytes(),
            after: b"\r\n\r\n".to_vec(),
            random: 0x9e37_79b9_7f4a_7c15,
        })
    }

    /// The same requests with other keys.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.random ^= seed.rotate_left(32) | 1;
        self
    }

    /// Writes a request; returns its key.
    pub fn write(&mut self, out: &mut Vec<u8>) -> [u8; KEY_CHARS] {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.draw().to_ne_bytes());
        nonce[8..].copy_from_slice(&self.draw().to_ne_bytes());
        let mut key = [0; KEY_CHARS];
        // 16 bytes are 24 characters, so they always fit.
        let _ = STANDARD.encode_slice(nonce, &mut key);
        out.extend_from_slice(&self.before);
        out.extend_from_slice(&key);
        out.extend_from_slice(&self.after);
        key
    }

    /// Marsaglia's xorshift64 (2003). A key proves that the answer is to this request, and guards no secret.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// What a server answers to a key (section 4.2.2).
#[must_use]
pub fn accept(key: &[u8]) -> String {
    let mut sha = Sha1::new();
    sha.update(key);
    sha.update(GUID);
    STANDARD.encode(sha.digest().bytes())
}

/// The answer being read.
#[derive(Debug, Default)]
pub struct Answer {
    key: [u8; KEY_CHARS],
    partial: Partial,
}

impl Answer {
    /// The answer to a request with this key.
    pub fn to(key: [u8; KEY_CHARS]) -> Answer {
        Answer {
            key,
            partial: Partial::new(),
        }
    }

    /// Takes the head from the front of `bytes`; returns whether it was complete, and is the right one.
    pub fn feed(&mut self, bytes: &mut &[u8]) -> Result<bool, WebSocketError> {
        let gathered = self.partial.gather(bytes);
        let (used, head) = gathered.map_err(|_| WebSocketError::HeadTooLarge)?;
        *bytes = &bytes[used..];
        match head {
            None => self.foresee().map(|()| false),
            Some(head) => check(&head, &self.key).map(|()| true),
        }
    }

    /// What does not speak HTTP/1 is told before its head ends, which it may never do.
    fn foresee(&self) -> Result<(), WebSocketError> {
        let start = self.partial.bytes();
        let known = b"HTTP/1.".len().min(start.len());
        match start[..known] == b"HTTP/1."[..known] {
            true => Ok(()),
            false => Err(stranger(start)),
        }
    }
}

fn stranger(start: &[u8]) -> WebSocketError {
    WebSocketError::BadHead(ProtocolError::BadHead {
        why: "no status line".into(),
        start: excerpt(start),
    })
}

fn check(head: &[u8], key: &[u8]) -> Result<(), WebSocketError> {
    let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = Response::new(&mut lines);
    match response.parse(head) {
        Ok(Status::Complete(_)) => {}
        Err(Error::TooManyHeaders) => {
            return Err(WebSocketError::BadHead(ProtocolError::TooManyHeaders));
        }
        _ => return Err(stranger(head)),
    }
    let status = response.code.unwrap_or(0);
    if status != 101 {
        let line = head.split(|byte| *byte == b'\n').next().unwrap_or(head);
        return Err(WebSocketError::NotUpgraded {
            status,
            line: excerpt(line.trim_ascii_end()),
        });
    }
    let values = |wanted: &'static str| {
        let lines = response.headers.iter();
        lines
            .filter(move |line| line.name.eq_ignore_ascii_case(wanted))
            .map(|line| line.value.trim_ascii())
    };
    let lists = |name, token: &str| {
        values(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|element| element.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
    };
    let wrong = |why| Err(WebSocketError::BadUpgrade { why });
    let right = accept(key);
    match () {
        () if !lists("upgrade", "websocket") => wrong("not with Upgrade: websocket"),
        () if !lists("connection", "upgrade") => wrong("not with Connection: Upgrade"),
        () if !values("sec-websocket-accept").eq([right.as_bytes()]) => {
            wrong("its Sec-WebSocket-Accept is not the answer to the key")
        }
        () if values("sec-websocket-extensions").any(|value| !value.is_empty()) => {
            wrong("it uses an extension that was not offered")
        }
        () => Ok(()),
    }
}
