//! Answers compared by what they say, where their bytes are not those that were expected.

use prost_reflect::{DynamicMessage, MessageDescriptor, ReflectMessage, Value};

use crate::protocol::grpc::Equal;

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
            Value::Message(inner) => leave_out_defaults(inner),
            Value::List(values) => values.iter_mut().for_each(within),
            Value::Map(values) => values.values_mut().for_each(within),
            _ => {}
        }
    }
}

fn within(value: &mut Value) {
    if let Value::Message(inner) = value {
        leave_out_defaults(inner);
    }
}
