//! Calls whose messages are encoded already: bytes as they stand on the wire.

use super::plan::{Content, Told};
use crate::protocol::grpc::{Kind, Right};
use crate::spec::SpecError;

/// What is asked with `body`, the messages of the request, and rightly answered with `expected`.
pub fn read(kind: Kind, body: &[u8], expected: Option<&[u8]>) -> Result<Told, SpecError> {
    let mut messages = unframed("body", body)?;
    if messages.is_empty() {
        messages.push(Vec::new());
    }
    if messages.len() > 1 && !kind.sends_many() {
        return Err(SpecError(format!(
            "grpc: {} messages for a call that takes one; say kind: client_streaming or bidirectional if it takes several",
            messages.len()
        )));
    }
    let mut right = Right::default();
    if let Some(expected) = expected {
        let known = unframed("expected body", expected)?;
        right.count = Some(known.len() as u64);
        right.messages = known.into_iter().map(Vec::into_boxed_slice).collect();
    }
    Ok(Told {
        kind,
        content: Content::Fixed(messages),
        right,
        compared: None,
    })
}

/// The messages in bytes as they stand on the wire: each with a flag and its length before it.
fn unframed(what: &str, mut bytes: &[u8]) -> Result<Vec<Vec<u8>>, SpecError> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let whole = bytes.split_at_checked(5).and_then(|(prefix, rest)| {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            (prefix[0] == 0).then_some(())?;
            rest.split_at_checked(length)
        });
        let Some((message, rest)) = whole else {
            return Err(SpecError(format!(
                "grpc: the {what} is not gRPC messages: after {} of them comes no whole one (0, four bytes of length, and so many bytes)",
                messages.len()
            )));
        };
        messages.push(message.to_vec());
        bytes = rest;
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_on_the_wire_are_told_apart_and_anything_else_is_refused() {
        let two = [0, 0, 0, 0, 1, b'a', 0, 0, 0, 0, 0];
        assert_eq!(unframed("body", &two).unwrap(), [b"a".to_vec(), vec![]]);
        for bad in [&two[..4], &two[..8], &[1, 0, 0, 0, 0][..]] {
            let error = unframed("body", bad).unwrap_err().to_string();
            assert!(error.contains("the body is not gRPC messages"), "{error}");
        }
        assert!(read(Kind::Unary, &two, None).is_err_and(|error| error.0.contains("2 messages")));
    }
}
