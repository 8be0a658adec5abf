//! What a server can do against HTTP/1.1, and why each limit exists.

use super::{MAX_HEAD_BYTES, MAX_HEADERS};
use crate::protocol::excerpt::excerpt;
use thiserror::Error;

/// The connection on which it happened cannot be used any more: where the next answer begins is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Nothing of HTTP can be found in the bytes; the excerpt tells what speaks there instead.
    #[error("the head of the answer is not HTTP/1: {why}; it begins with '{start}'")]
    BadHead { why: String, start: String },
    /// See [`MAX_HEAD_BYTES`]: without a bound, a server that never ends its head would fill the memory.
    #[error("the head of the answer is longer than {MAX_HEAD_BYTES} bytes")]
    HeadTooLarge,
    /// See [`MAX_HEADERS`]: the lines are indexed on the stack, so that no answer allocates.
    #[error("the head of the answer has more than {MAX_HEADERS} header lines")]
    TooManyHeaders,
    /// RFC 9112, section 6.3: an answer whose length is unclear must not be guessed at.
    #[error("Content-Length is '{value}', which is not a number of bytes")]
    BadLength { value: String },
    /// RFC 9112, section 6.3: two different lengths; either could be a lie.
    #[error("two lengths are given: Content-Length {first} and {second}")]
    ConflictingLengths { first: u64, second: u64 },
    /// Chunk framing is all that tells body from framing; after a bad byte everything else is a guess.
    #[error("bad chunk: {0}")]
    BadChunk(&'static str),
    /// A size that does not fit in 64 bits could wrap round to a small one.
    #[error("the size of a chunk does not fit in 64 bits")]
    ChunkOverflow,
    /// Chunk extensions and trailers are skipped, not kept; the bound ends a stream that is nothing else.
    #[error("extensions of one chunk, or trailers, are longer than {MAX_HEAD_BYTES} bytes")]
    ChunkLineTooLong,
    /// Bytes without a request: the next answer could not be told from them.
    #[error("the server sent bytes nobody asked for: '{start}'")]
    Unsolicited { start: String },
    /// The rest of the answer will never come.
    #[error("the server closed in the middle of an answer, after {body_bytes} bytes of body")]
    EarlyClose { body_bytes: u64 },
}

impl ProtocolError {
    pub(super) fn bad_head(why: &str, bytes: &[u8]) -> Self {
        Self::BadHead {
            why: why.to_owned(),
            start: excerpt(bytes),
        }
    }
}
