//! Messages from JSON, once or anew for each call.

use prost::Message as _;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::Value;

use super::shape;
use crate::protocol::grpc::Compose;
use crate::spec::SpecError;

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

/// What stands in a template for something that is different in each call.
const PLACES: [(&str, Place); 3] = [
    ("n", Place::Call),
    ("i", Place::Message),
    ("random", Place::Random),
];

#[derive(Clone, Copy, Debug)]
enum Place {
    /// The number of the call.
    Call,
    /// The number of the message within its call.
    Message,
    /// A number from 0 to 2^31 - 1, which fits every type of number.
    Random,
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Place(Place),
}

/// JSON with `{{n}}`, `{{i}}` or `{{random}}` in it.
#[derive(Clone, Debug)]
pub struct Template(Vec<Part>);

impl Template {
    /// Reads a template; None: it is the same for all calls.
    pub fn read(option: &str, text: &str) -> Result<Option<Template>, SpecError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            // `{{` ends no JSON string; objects within objects never have it either, since a key stands between.
            let Some((name, behind)) = after.split_once("}}") else {
                break;
            };
            let place = PLACES.iter().find(|(known, _)| *known == name.trim());
            let Some((_, place)) = place else {
                return Err(SpecError(format!(
                    "{option}: {{{{{name}}}}} stands for nothing; there are {{{{n}}}} (the number of the call), {{{{i}}}} (that of the message in it) and {{{{random}}}}"
                )));
            };
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Place(*place));
            rest = behind;
        }
        if parts.is_empty() {
            return Ok(None);
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Some(Template(parts)))
    }

    /// A template in which nothing changes.
    pub fn fixed(text: &str) -> Template {
        Template(vec![Part::Text(text.to_owned())])
    }

    /// The JSON of message `index` of call `number`; the same seed gives the same.
    pub fn fill(&self, seed: u64, number: u64, index: u64) -> String {
        let mut filled = String::new();
        for (at, part) in self.0.iter().enumerate() {
            match part {
                Part::Text(text) => filled.push_str(text),
                Part::Place(Place::Call) => filled += &number.to_string(),
                Part::Place(Place::Message) => filled += &index.to_string(),
                Part::Place(Place::Random) => {
                    let drawn = mix(mix(mix(seed ^ number) ^ index) ^ at as u64);
                    filled += &(drawn >> 33).to_string();
                }
            }
        }
        filled
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014, <https://doi.org/10.1145/2714064.2660195>).
fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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
            let text = template.fill(self.seed, number, index);
            // Call 0 was checked, and the others differ from it in numbers only: what fails is a number that outgrew
            // its field, after 2^31 calls. An empty message is then sent.
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            DynamicMessage::deserialize(self.message.clone(), value)
                .map(|message| message.encode_to_vec())
                .unwrap_or_default()
        });
        made.collect()
    }
}
