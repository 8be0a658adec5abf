//! Messages from JSON, once or anew for each call.

use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::Value;

use super::shape;
use crate::protocol::grpc::Compose;
use crate::spec::SpecError;
use crate::template::{Occasion, Template};

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
    shape::check(value, message, path).map_err(SpecError)?;
    // What is right in every part can be wrong as a whole: two fields of one `oneof`.
    DynamicMessage::deserialize(message.clone(), value)
        .map(|message| message.encode_to_vec())
        .map_err(|error| SpecError(format!("{path}: {error}")))
}

/// Makes the messages of each call from templates; thread `thread` of `threads` makes every so many-th.
pub struct Composer {
    pub templates: Vec<Template>,
    pub message: MessageDescriptor,
    pub seed: u64,
    pub thread: u64,
    pub threads: u64,
}

impl Compose for Composer {
    fn compose(&self, number: u64) -> Vec<Vec<u8>> {
        let number = number * self.threads + self.thread;
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
