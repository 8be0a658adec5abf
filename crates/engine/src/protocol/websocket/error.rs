//! What a server can do against WebSocket, and why each limit exists.

use thiserror::Error;

use crate::protocol::http1::{MAX_HEAD_BYTES, ProtocolError};

/// The connection on which it happened cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WebSocketError {
    /// The server is there and does not want to: wrong path, no WebSocket, not allowed.
    #[error("the server answers the opening handshake with '{line}' where 101 is right")]
    NotUpgraded { status: u16, line: String },
    /// RFC 6455, section 4.1: what a client must check.
    #[error("the server answers 101, but {why}")]
    BadUpgrade { why: &'static str },
    #[error("the answer to the opening handshake is not HTTP/1: {0}")]
    BadHead(ProtocolError),
    /// As for HTTP/1: without a bound, a server that never ends its head would fill the memory.
    #[error("the answer to the opening handshake has a head longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLarge,
    /// Section 5.2: nothing after a frame that contradicts itself can be trusted.
    #[error("the server sent a bad frame: {why}")]
    BadFrame { why: &'static str },
    /// A message is not kept, but an endless one would never be an answer.
    #[error("the server sent a message larger than {limit} bytes")]
    MessageTooLarge { limit: u64 },
    /// Section 8.1.
    #[error("the server sent a text message that is not UTF-8")]
    BadText,
    /// Frames that carry nothing cost this side work and the server next to none.
    #[error(
        "the server floods the connection: {limit} frames that carry nothing, and no message among them"
    )]
    Flood { limit: u32 },
    #[error("the server closed the connection during the opening handshake")]
    ClosedInHandshake,
    /// Section 7.1.5: a close without a Close frame before it is an accident.
    #[error("the server closed the connection without a Close frame")]
    ClosedWithoutGoodbye,
    #[error("the server closed the WebSocket: {}", goodbye(.code, .reason))]
    Closed {
        /// None: the server gave none.
        code: Option<u16>,
        /// Escaped and cut.
        reason: String,
    },
}

fn goodbye(code: &Option<u16>, reason: &str) -> String {
    let name = match code {
        None => return "it gave no code".into(),
        Some(1000) => " (normal)",
        Some(1001) => " (going away)",
        Some(1002) => " (protocol error)",
        Some(1003) => " (unsupported data)",
        Some(1007) => " (bad data)",
        Some(1008) => " (policy)",
        Some(1009) => " (message too large)",
        Some(1011) => " (internal error)",
        Some(1012) => " (restart)",
        Some(1013) => " (try again later)",
        Some(_) => "",
    };
    let code = code.unwrap_or_default();
    match reason {
        "" => format!("code {code}{name}"),
        _ => format!("code {code}{name}: '{reason}'"),
    }
}

impl WebSocketError {
    /// The code this side closes with (section 7.4.1); None: there is nobody to tell.
    #[must_use]
    pub const fn code(&self) -> Option<u16> {
        match self {
            Self::BadFrame { .. } => Some(1002),
            Self::BadText => Some(1007),
            Self::Flood { .. } => Some(1008),
            Self::MessageTooLarge { .. } => Some(1009),
            _ => None,
        }
    }
}
