//! A call that is ready to be made, again and again.

use std::time::Duration;

use crate::clock::nanos;
use crate::protocol::grpc::{Ask, Kind, Right, head};
use crate::protocol::http2::RequestHead;
use crate::spec::{CallSpec, LoadSpec, SpecError};
use crate::target::Place;

/// See the module. Plain data that all workers share; each makes its own [`Ask`] of it.
#[derive(Debug)]
pub struct Plan {
    /// Who sends several messages.
    pub kind: Kind,
    path: String,
    head: RequestHead,
    messages: Vec<Vec<u8>>,
    right: Right,
    check_every: u64,
    timeout_s: f64,
}

impl Plan {
    /// Reads what is to be asked; `body` and `expected` are messages as they stand on the wire.
    pub fn new(
        spec: &LoadSpec,
        place: &Place,
        body: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<Plan, SpecError> {
        let call = spec.grpc.clone().unwrap_or_default();
        let path = path(&call, place)?;
        let kind = call.kind.unwrap_or_default();
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
        match kind {
            Kind::Unary | Kind::ClientStreaming => right.count = Some(1),
            Kind::Bidirectional => right.count = Some(messages.len() as u64),
            Kind::ServerStreaming => {}
        }
        Ok(Plan {
            kind,
            head: compose(spec, place, &path)?,
            path,
            messages,
            right,
            check_every: spec.check_every,
            timeout_s: spec.timeout_s,
        })
    }

    /// `/package.Service/Method`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What one worker asks.
    pub fn ask(&self) -> Ask {
        let mut ask = Ask::new(self.kind, self.head.clone(), &self.messages);
        ask.right = self.right.clone();
        ask.check_every = self.check_every;
        ask.timeout = nanos(self.timeout_s);
        ask
    }
}

/// `/package.Service/Method`, from the call or from the URL.
fn path(call: &CallSpec, place: &Place) -> Result<String, SpecError> {
    let of_url = Some(place.path().trim_start_matches('/')).filter(|path| !path.is_empty());
    let told = call
        .call
        .as_deref()
        .map(|call| call.trim_start_matches('/'));
    let name = match (told, of_url) {
        (Some(told), Some(of_url)) if told != of_url => {
            return Err(SpecError(format!(
                "grpc: the URL says {of_url} and call says {told}; give one of them"
            )));
        }
        (told, of_url) => told.or(of_url),
    };
    match name {
        Some(name) if name.split('/').filter(|part| !part.is_empty()).count() == 2 => {
            Ok(format!("/{name}"))
        }
        Some(name) => Err(SpecError(format!(
            "grpc: '{name}' is not a call; write package.Service/Method"
        ))),
        None => Err(SpecError(
            "grpc: no call is named; give package.Service/Method as call, or at the end of the URL"
                .into(),
        )),
    }
}

fn compose(spec: &LoadSpec, place: &Place, path: &str) -> Result<RequestHead, SpecError> {
    let metadata: Vec<(&str, &str)> = spec
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let deadline = Duration::from_secs_f64(spec.timeout_s);
    head(
        place.scheme.name(),
        place.authority(),
        path,
        Some(deadline),
        &metadata,
    )
    .map_err(|fault| SpecError(format!("headers: {fault}")))
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
