//! Whether JSON has the shape of a message: the first place where it has not, by its path and what is right there.
//!
//! JSON and messages correspond as ProtoJSON says: <https://protobuf.dev/programming-guides/json/>.

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::Value;

use super::nearest::nearest;

/// Checks a message; `path` is its own place, e.g. `data` or `data[2]`.
pub fn check(value: &Value, message: &MessageDescriptor, path: &str) -> Result<(), String> {
    // Types of protobuf itself have forms of their own: a Timestamp is a string.
    if message.full_name().starts_with("google.protobuf.") {
        return DynamicMessage::deserialize(message.clone(), value)
            .map(|_| ())
            .map_err(|error| format!("{path}: {error}; a {} is right", message.full_name()));
    }
    let Value::Object(members) = value else {
        let name = message.full_name();
        return wrong(path, value, &format!("an object is right (a {name})"));
    };
    for (key, value) in members {
        let field = message
            .get_field_by_json_name(key)
            .or_else(|| message.get_field_by_name(key))
            .ok_or_else(|| unknown(key, message, path))?;
        if !value.is_null() {
            check_field(value, &field, &format!("{path}.{key}"))?;
        }
    }
    Ok(())
}

fn unknown(key: &str, message: &MessageDescriptor, path: &str) -> String {
    let fields: Vec<String> = message
        .fields()
        .map(|field| field.name().to_owned())
        .collect();
    let name = message.full_name();
    if fields.is_empty() {
        return format!("{path}.{key}: a {name} has no fields");
    }
    let hint = nearest(key, fields.iter().map(String::as_str))
        .map_or_else(String::new, |near| format!(" Nearest: {near}."));
    format!(
        "{path}.{key}: a {name} has no such field.{hint} It has: {}",
        fields.join(", ")
    )
}

fn check_field(value: &Value, field: &FieldDescriptor, path: &str) -> Result<(), String> {
    if field.is_list() {
        let Value::Array(elements) = value else {
            let one = wanted(&field.kind());
            return wrong(path, value, &format!("a list is right, each of it {one}"));
        };
        let mut elements = elements.iter().enumerate();
        return elements.try_for_each(|(number, element)| {
            check_one(element, &field.kind(), &format!("{path}[{number}]"))
        });
    }
    match field.kind() {
        Kind::Message(entry) if field.is_map() => {
            let Value::Object(members) = value else {
                return wrong(path, value, "an object is right (a map)");
            };
            let kind = entry.map_entry_value_field().kind();
            let mut members = members.iter();
            members.try_for_each(|(key, value)| check_one(value, &kind, &format!("{path}.{key}")))
        }
        kind => check_one(value, &kind, path),
    }
}

fn check_one(value: &Value, kind: &Kind, path: &str) -> Result<(), String> {
    let text = value.as_str();
    let right = match kind {
        Kind::Message(message) => return check(value, message, path),
        Kind::String => text.is_some(),
        Kind::Bytes => text.is_some_and(is_base64),
        Kind::Bool => value.is_boolean(),
        Kind::Double | Kind::Float => is_float(value),
        Kind::Enum(known) => match text {
            Some(name) => known.get_value_by_name(name).is_some(),
            None => value
                .as_i64()
                .is_some_and(|number| i32::try_from(number).is_ok()),
        },
        integer => bounds(integer).is_some_and(|bounds| is_integer(value, bounds)),
    };
    match right {
        true => Ok(()),
        false => wrong(path, value, &format!("{} is right", wanted(kind))),
    }
}

/// What is right, in words.
fn wanted(kind: &Kind) -> String {
    if let Some((least, most)) = bounds(kind) {
        return format!("a whole number from {least} to {most} ({kind:?})");
    }
    match kind {
        Kind::String => "a string".into(),
        Kind::Bytes => "a string of base64 (bytes)".into(),
        Kind::Bool => "true or false".into(),
        Kind::Enum(known) => {
            let names: Vec<String> = known
                .values()
                .map(|value| value.name().to_owned())
                .collect();
            format!("one of {} ({})", names.join(", "), known.full_name())
        }
        Kind::Message(message) => format!("an object (a {})", message.full_name()),
        _ => format!("a number ({kind:?})"),
    }
}

fn bounds(kind: &Kind) -> Option<(i128, i128)> {
    match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Some((i32::MIN.into(), i32::MAX.into())),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Some((i64::MIN.into(), i64::MAX.into())),
        Kind::Uint32 | Kind::Fixed32 => Some((0, u32::MAX.into())),
        Kind::Uint64 | Kind::Fixed64 => Some((0, u64::MAX.into())),
        _ => None,
    }
}

/// Whole numbers may be strings, because JSON readers lose digits of large ones, and may have an exponent.
fn is_integer(value: &Value, (least, most): (i128, i128)) -> bool {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return false,
    };
    match text.parse::<i128>() {
        Ok(number) => (least..=most).contains(&number),
        Err(_) => text.parse::<f64>().is_ok_and(|number| {
            number.fract() == 0.0 && (least as f64..=most as f64).contains(&number)
        }),
    }
}

fn is_float(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::String(text) => {
            ["NaN", "Infinity", "-Infinity"].contains(&text.as_str()) || text.parse::<f64>().is_ok()
        }
        _ => false,
    }
}

/// Either alphabet, padded or not.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    digits.len() % 4 != 1 && text.len() - digits.len() <= 2 && digits.bytes().all(is_digit)
}

fn wrong(path: &str, value: &Value, right: &str) -> Result<(), String> {
    const SHOWN: usize = 60;
    let mut shown = value.to_string();
    if shown.chars().count() > SHOWN {
        shown = shown.chars().take(SHOWN).collect::<String>() + "…";
    }
    Err(format!("{path}: {shown} where {right}"))
}
