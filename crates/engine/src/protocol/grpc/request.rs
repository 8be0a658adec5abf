//! What a call is asked with.

use std::time::Duration;

use crate::protocol::http2::{BadField, RequestHead};

/// A message as it stands on the wire: uncompressed, its length before it. Messages beyond 4 GB do not exist.
#[must_use]
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(5 + message.len());
    frame_into(&mut framed, message);
    framed
}

/// The same, appended.
pub fn frame_into(framed: &mut Vec<u8>, message: &[u8]) {
    framed.push(0);
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(message);
}

/// The head of every call. `path`: `/package.Service/Method`; `deadline`: told to the server, which may give up then;
/// `metadata`: further fields (values of names that end in `-bin` in base64 already).
///
/// # Errors
/// A field that HTTP/2 does not allow.
pub fn head(
    scheme: &str,
    authority: &str,
    path: &str,
    deadline: Option<Duration>,
    metadata: &[(&str, &str)],
) -> Result<RequestHead, BadField> {
    let timeout = deadline.map(timeout);
    let mut fields = vec![("te", "trailers"), ("content-type", "application/grpc")];
    let given = |name: &str| {
        metadata
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    if !given("user-agent") {
        fields.push((
            "user-agent",
            concat!("velodrome/", env!("CARGO_PKG_VERSION")),
        ));
    }
    if let Some(timeout) = &timeout {
        fields.push(("grpc-timeout", timeout));
    }
    fields.extend_from_slice(metadata);
    RequestHead::new("POST", scheme, authority, path, &fields)
}

/// At most eight digits and a unit, rounded up: microseconds, or milliseconds from 100 s on, or seconds.
pub(super) fn timeout(deadline: Duration) -> String {
    const MOST: u128 = 99_999_999;
    let micros = deadline.as_nanos().div_ceil(1_000).max(1);
    match micros {
        0..=MOST => format!("{micros}u"),
        _ if micros.div_ceil(1_000) <= MOST => format!("{}m", micros.div_ceil(1_000)),
        _ => format!("{}S", micros.div_ceil(1_000_000).min(MOST)),
    }
}
