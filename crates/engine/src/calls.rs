//! What a gRPC load asks: which call, with which messages, and what a right answer is.

mod described;
mod reflection;
#[cfg(test)]
mod tests;

use std::time::Duration;

use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage, Value as Field};
use serde_json::Value;

use crate::calls::reflection::Door;
use crate::clock::nanos;
use crate::endpoint::Endpoint;
use crate::place::Place;
use crate::protocol::excerpt::visible;
use crate::protocol::grpc::{Ask, Compose, Equal, Right, head};
use crate::protocol::http2::RequestHead;
use crate::secure::Secure;
use crate::spec::CallKind;
use crate::spec::{CallSpec, Lane, LoadSpec, SpecError};
use crate::template::{Occasion, Template};

#[doc(hidden)]
pub use reflection::of_answers;

/// Characters of a sentence with a stranger's names in it: forty calls, each cut, and what is said of them.
const LONGEST_TOLD: usize = 6_000;

/// What a call consists of.
#[derive(Debug)]
pub struct Told {
    /// Who sends several messages.
    pub kind: CallKind,
    /// The messages of the request.
    pub content: Content,
    /// See [`Right`].
    pub right: Right,
    /// Answers are compared by what they say, where their bytes differ.
    pub compared: Option<MessageDescriptor>,
}

/// The messages of a request.
#[derive(Debug)]
pub enum Content {
    /// The same in each call.
    Fixed(Vec<Vec<u8>>),
    /// Others in each.
    Made(Made),
}

/// Messages that are made for each call.
#[derive(Debug)]
pub struct Made {
    /// One for each message of a call.
    pub templates: Vec<Template>,
    /// What they are.
    pub message: MessageDescriptor,
}

/// See the module. Plain data that all workers share; each makes its own [`Ask`] of it.
#[derive(Debug)]
pub struct Plan {
    path: String,
    head: RequestHead,
    told: Told,
    check_every: u64,
    timeout_s: f64,
    seed: u64,
}

impl Plan {
    /// Reads what is to be asked; where nothing else describes the call, the server at `endpoint` is asked for it.
    pub fn new(
        spec: &LoadSpec,
        place: &Place,
        endpoint: &Endpoint,
        secure: Option<&Secure>,
        body: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<Plan, SpecError> {
        let call = spec.grpc.clone().unwrap_or_default();
        let name = match name(&call, place) {
            Err(fault) if !call.proto.is_empty() => {
                let known = crate::calls::described::all(&crate::calls::described::compile(
                    &call.proto,
                    &call.include,
                )?);
                return Err(SpecError(format!(
                    "{fault}. There are: {}",
                    known.join(", ")
                )));
            }
            name => name?,
        };
        let mut told = match call.kind {
            Some(kind) => read_encoded(kind, body, expected)?,
            None if call.proto.is_empty() => {
                let pool = reflection::describe(spec, place, &Door { endpoint, secure }, name)?;
                // Whatever is wrong is told in the server's names of things.
                let told = reflection::guarded(|| {
                    crate::calls::described::find(&pool, name)
                        .and_then(|described| described::read_call(&call, &described))
                });
                let told = told.unwrap_or_else(|| {
                    let why = "the server's description of its calls makes no sense; give the .proto file with --proto";
                    Err(SpecError(why.into()))
                });
                told.map_err(|SpecError(why)| SpecError(visible(&why, LONGEST_TOLD)))?
            }
            None => {
                let pool = crate::calls::described::compile(&call.proto, &call.include)?;
                described::read_call(&call, &crate::calls::described::find(&pool, name)?)?
            }
        };
        match told.kind {
            CallKind::Unary | CallKind::ClientStreaming => told.right.count = Some(1),
            // Each message is answered before the next.
            CallKind::Bidirectional => told.right.count = Some(told.content.count()),
            CallKind::ServerStreaming => {}
        }
        let path = format!("/{name}");
        Ok(Plan {
            head: compose(spec, place, &path)?,
            path,
            told,
            check_every: spec.compares_every(0),
            timeout_s: spec.timeout_s,
            seed: spec.seed,
        })
    }

    /// `/package.Service/Method`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Who sends several messages.
    pub fn kind(&self) -> CallKind {
        self.told.kind
    }

    /// What the worker of one thread asks.
    pub fn ask(&self, lane: Lane) -> Ask {
        let Told {
            kind,
            content,
            right,
            compared,
        } = &self.told;
        let (messages, compose) = match content {
            Content::Fixed(messages) => (messages.as_slice(), None),
            Content::Made(made) => (&[][..], Some(self.composer(made, lane))),
        };
        let mut ask = Ask::new(*kind, self.head.clone(), messages);
        ask.compose = compose.map(|compose| Box::new(compose) as _);
        ask.equal = compared.as_ref().map(|message| {
            let comparer = Comparer::new(message, &right.messages, right.count);
            Box::new(comparer) as _
        });
        ask.right = right.clone();
        ask.check_every = self.check_every;
        ask.timeout = nanos(self.timeout_s);
        ask
    }

    fn composer(&self, made: &Made, lane: Lane) -> Composer {
        Composer {
            templates: made.templates.clone(),
            message: made.message.clone(),
            seed: self.seed,
            lane,
        }
    }
}

impl Content {
    fn count(&self) -> u64 {
        match self {
            Content::Fixed(messages) => messages.len() as u64,
            Content::Made(made) => made.templates.len() as u64,
        }
    }
}

/// `package.Service/Method`, from the call or from the URL.
fn name<'a>(call: &'a CallSpec, place: &'a Place) -> Result<&'a str, SpecError> {
    let of_url = Some(place.path().trim_start_matches('/')).filter(|path| !path.is_empty());
    let told = call
        .call
        .as_deref()
        .map(|call| call.trim_start_matches('/'));
    let name = match (told, of_url) {
        (Some(told), Some(of_url)) if told != of_url => {
            return Err(SpecError(format!(
                "call: the URL says {of_url} and the call {told}; give one of them"
            )));
        }
        (told, of_url) => told.or(of_url),
    };
    match name {
        Some(name) if name.split('/').filter(|part| !part.is_empty()).count() == 2 => Ok(name),
        Some(name) => Err(SpecError(format!(
            "call: '{name}' is not a call; write package.Service/Method"
        ))),
        None => Err(SpecError(
            "call: none is named; give package.Service/Method with --call, or at the end of the URL"
                .into(),
        )),
    }
}

/// The head of every call.
pub fn compose(spec: &LoadSpec, place: &Place, path: &str) -> Result<RequestHead, SpecError> {
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

/// What is asked with `body`, the messages of the request, and rightly answered with `expected`.
fn read_encoded(kind: CallKind, body: &[u8], expected: Option<&[u8]>) -> Result<Told, SpecError> {
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

/// Compares messages by what they say: fields may come in any order, and defaults be written out or left out.
pub struct Comparer {
    pub message: MessageDescriptor,
    /// The right ones in their order; the last stands for all after it.
    pub right: Vec<DynamicMessage>,
    /// How many there are.
    pub count: Option<u64>,
}

impl Comparer {
    /// Compares with messages that are encoded.
    pub fn new(message: &MessageDescriptor, right: &[Box<[u8]>], count: Option<u64>) -> Comparer {
        let decoded = right.iter().filter_map(|bytes| decode(message, bytes));
        Comparer {
            message: message.clone(),
            right: decoded.collect(),
            count,
        }
    }
}

impl Equal for Comparer {
    fn are_right(&self, framed: &[u8]) -> bool {
        let mut came = 0;
        for message in Messages(framed) {
            let right = self.right.get(came).or(self.right.last());
            let decoded = message.and_then(|bytes| decode(&self.message, bytes));
            if decoded.is_none() || decoded.as_ref() != right {
                return false;
            }
            came += 1;
        }
        self.count.is_none_or(|count| count == came as u64)
    }

    fn shown(&self, framed: &[u8]) -> String {
        let mut came = Messages(framed).enumerate();
        let wrong = came.find_map(|(number, message)| {
            let right = self.right.get(number).or(self.right.last());
            let Some(decoded) = message.and_then(|bytes| decode(&self.message, bytes)) else {
                return Some(format!("it is no {}", self.message.full_name()));
            };
            let said = serde_json::to_string(&decoded).unwrap_or_default();
            (Some(&decoded) != right).then_some(said)
        });
        let shown = wrong.unwrap_or_else(|| "none of them is wrong by itself".into());
        match shown.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &shown[..end]),
            None => shown,
        }
    }
}

/// As much of a message as is shown.
const SHOWN: usize = 200;

/// The messages in bytes as they stand on the wire; None for what is not whole.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        if self.0.is_empty() {
            return None;
        }
        let whole = self.0.split_at_checked(5).and_then(|(prefix, rest)| {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            rest.split_at_checked(length)
        });
        self.0 = whole.map_or(&[], |(_, rest)| rest);
        Some(whole.map(|(message, _)| message))
    }
}

/// Reads a message. A default that was written out is left out, where that says the same.
fn decode(message: &MessageDescriptor, bytes: &[u8]) -> Option<DynamicMessage> {
    let mut decoded = DynamicMessage::decode(message.clone(), bytes).ok()?;
    leave_out_defaults(&mut decoded);
    Some(decoded)
}

fn leave_out_defaults(message: &mut DynamicMessage) {
    let descriptor = message.descriptor();
    for field in descriptor.fields() {
        // A field without presence that has its default counts as one that is not there.
        if !field.supports_presence() && !message.has_field(&field) {
            message.clear_field(&field);
        }
    }
    for (_, value) in message.fields_mut() {
        match value {
            Field::Message(inner) => leave_out_defaults(inner),
            Field::List(values) => values.iter_mut().for_each(within),
            Field::Map(values) => values.values_mut().for_each(within),
            _ => {}
        }
    }
}

fn within(value: &mut Field) {
    if let Field::Message(inner) = value {
        leave_out_defaults(inner);
    }
}

/// Reads the JSON of an option: one message, or a list of them.
pub fn read(option: &str, text: &str) -> Result<Value, SpecError> {
    serde_json::from_str(text)
        .map_err(|error| SpecError(format!("{option}: this is not JSON: {error}")))
}

/// Encodes one message; `path` is its place in what the user wrote.
pub fn encode(
    value: &Value,
    message: &MessageDescriptor,
    path: &str,
) -> Result<Vec<u8>, SpecError> {
    crate::calls::described::check(value, message, path).map_err(SpecError)?;
    // What is right in every part can be wrong as a whole: two fields of one `oneof`.
    DynamicMessage::deserialize(message.clone(), value)
        .map(|message| message.encode_to_vec())
        .map_err(|error| SpecError(format!("{path}: {error}")))
}

/// Makes the messages of each call of a lane from templates.
pub struct Composer {
    pub templates: Vec<Template>,
    pub message: MessageDescriptor,
    pub seed: u64,
    pub lane: Lane,
}

impl Compose for Composer {
    fn compose(&self, number: u64) -> Vec<Vec<u8>> {
        let number = number * self.lane.step + self.lane.first;
        let made = self.templates.iter().zip(0..).map(|(template, index)| {
            let text = template.filled(Occasion {
                seed: self.seed,
                number,
                index,
            });
            // Call 0 was checked, and the others differ from it in what is filled in: what fails is a number that
            // outgrew its field, or a word that is right in one call only. An empty message is then sent.
            let value: Value = serde_json::from_slice(&text).unwrap_or_default();
            DynamicMessage::deserialize(self.message.clone(), value)
                .map(|message| message.encode_to_vec())
                .unwrap_or_default()
        });
        made.collect()
    }
}

#[cfg(test)]
mod encoded_tests {
    use super::*;

    #[test]
    fn messages_on_the_wire_are_told_apart_and_anything_else_is_refused() {
        let two = [0, 0, 0, 0, 1, b'a', 0, 0, 0, 0, 0];
        assert_eq!(unframed("body", &two).unwrap(), [b"a".to_vec(), vec![]]);
        for bad in [&two[..4], &two[..8], &[1, 0, 0, 0, 0][..]] {
            let error = unframed("body", bad).unwrap_err().to_string();
            assert!(error.contains("the body is not gRPC messages"), "{error}");
        }
        assert!(
            read_encoded(CallKind::Unary, &two, None)
                .is_err_and(|error| error.0.contains("2 messages"))
        );
    }
}
