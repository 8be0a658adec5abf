//! What a server says of a call, in words.

use crate::protocol::excerpt::visible;

/// The names of the status codes (gRPC, doc/statuscodes.md).
#[must_use]
pub fn status_name(code: u32) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES
        .get(code as usize)
        .copied()
        .unwrap_or("(no such code)")
}

/// As many characters of a message as are shown.
const LONGEST_SHOWN: usize = 300;

/// A `grpc-message` decoded, escaped so that no terminal obeys it, and cut.
///
/// A percent sign that begins no code stands for itself: the protocol wants messages shown even when badly coded.
#[must_use]
pub fn readable(message: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some((&byte, after)) = rest.split_first() {
        let code = match (byte, after) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        match code {
            Some((high, low)) => {
                decoded.push(high << 4 | low);
                rest = &after[2..];
            }
            None => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    visible(&String::from_utf8_lossy(&decoded), LONGEST_SHOWN)
}

fn digit(byte: u8) -> Option<u8> {
    // The cast is exact: a digit is below 16.
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
