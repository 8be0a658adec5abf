//! Calls whose messages are JSON: encoded by the description of the call.

use prost_reflect::MessageDescriptor;
use serde_json::Value;

use super::message::{encode, read};
use super::plan::{Content, Made, Told};
use super::schema::Described;
use crate::protocol::grpc::Right;
use crate::spec::{CallSpec, SpecError};
use crate::template::{Occasion, Template};

/// What is asked, and what is right.
pub fn read_call(call: &CallSpec, described: &Described) -> Result<Told, SpecError> {
    let (content, right) = (content(call, described)?, right(call, described)?);
    let compared = call.expect_data.is_some().then(|| described.output.clone());
    Ok(Told {
        kind: described.kind,
        content,
        right,
        compared,
    })
}

/// The messages of one call, each at its place in what the user wrote.
fn content(call: &CallSpec, described: &Described) -> Result<Content, SpecError> {
    let text = call.data.as_deref().unwrap_or("{}");
    let told = read("data", text)?;
    let many = described.kind.sends_many();
    if let (false, Some(messages @ 2..)) = (many, call.messages) {
        return Err(SpecError(format!(
            "messages: {messages} messages for {}, which takes one",
            described.name
        )));
    }
    let values: Vec<(String, Value)> = match told {
        Value::Array(_) if !many => {
            return Err(SpecError(format!(
                "data: a list of messages for {}, which takes one: an object is right (a {})",
                described.name,
                described.input.full_name()
            )));
        }
        Value::Array(_) if call.messages.is_some() => {
            return Err(SpecError(
                "data: a list says how many messages there are, and so does messages; give one of them"
                    .into(),
            ));
        }
        Value::Array(values) if values.is_empty() => {
            return Err(SpecError("data: a list without a message in it".into()));
        }
        Value::Array(values) => {
            let places = (0..values.len()).map(|number| format!("data[{number}]"));
            places.zip(values).collect()
        }
        value => vec![("data".to_owned(), value); call.messages.unwrap_or(1) as usize],
    };
    if Template::read("data", text.as_bytes(), 0)?.is_fixed() {
        let encoded = values
            .iter()
            .map(|(path, value)| encode(value, &described.input, path));
        return Ok(Content::Fixed(encoded.collect::<Result<_, _>>()?));
    }
    let mut templates = Vec::new();
    for (index, (path, value)) in (0..).zip(&values) {
        let template = Template::read("data", value.to_string().as_bytes(), 0)?;
        let occasion = Occasion {
            index,
            ..Occasion::default()
        };
        let first = String::from_utf8_lossy(&template.filled(occasion)).into_owned();
        let first = read(path, &first)?;
        encode(&first, &described.input, path)?;
        templates.push(template);
    }
    Ok(Content::Made(Made {
        templates,
        message: described.input.clone(),
    }))
}

fn right(call: &CallSpec, described: &Described) -> Result<Right, SpecError> {
    let Some(text) = call.expect_data.as_deref() else {
        return Ok(Right::default());
    };
    let told = read("expect_data", text)?;
    let output = &described.output;
    let mut right = Right::default();
    match told {
        Value::Array(values) if described.kind.receives_many() => {
            right.count = Some(values.len() as u64);
            for (number, value) in values.iter().enumerate() {
                let place = format!("expect_data[{number}]");
                right.messages.push(boxed(value, output, &place)?);
            }
        }
        Value::Array(_) => {
            return Err(SpecError(format!(
                "expect_data: a list of messages for {}, which answers with one: an object is right (a {})",
                described.name,
                output.full_name()
            )));
        }
        value => right.messages.push(boxed(&value, output, "expect_data")?),
    }
    Ok(right)
}

fn boxed(value: &Value, message: &MessageDescriptor, path: &str) -> Result<Box<[u8]>, SpecError> {
    encode(value, message, path).map(Vec::into_boxed_slice)
}
