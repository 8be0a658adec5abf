//! Calls whose messages are JSON: encoded by the description of the call.

use std::path::{Path, PathBuf};

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind as FieldKind, MessageDescriptor,
    MethodDescriptor,
};
use serde_json::Value;

use crate::calls::{Content, Made, Told, encode, read};
use crate::protocol::excerpt::visible;
use crate::protocol::grpc::Right;
use crate::spec::CallKind;
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

/// More calls are not listed, nor more characters of each: the names may be a stranger's.
const LISTED: usize = 40;
const LONGEST_SHOWN: usize = 120;

/// A call as its description tells it.
#[derive(Clone, Debug)]
pub struct Described {
    /// `package.Service/Method`.
    pub name: String,
    /// Who sends several messages.
    pub kind: CallKind,
    /// What it is asked with.
    pub input: MessageDescriptor,
    /// What it answers with.
    pub output: MessageDescriptor,
}

/// Compiles `.proto` files; imports are looked for in `include`, then beside each file.
pub fn compile(files: &[PathBuf], include: &[PathBuf]) -> Result<DescriptorPool, SpecError> {
    let beside = files.iter().filter_map(|file| file.parent()).map(|folder| {
        match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        }
    });
    let folders: Vec<&Path> = include.iter().map(PathBuf::as_path).chain(beside).collect();
    let compiled = protox::Compiler::new(folders).and_then(|mut compiler| {
        compiler.open_files(files)?;
        Ok(compiler.descriptor_pool())
    });
    compiled.map_err(|error| {
        // Only this form names line and column.
        let what = format!("{error:?}");
        let cure = match error.is_file_not_found() {
            true => "; name the folder that its path begins in with -I",
            false => "",
        };
        SpecError(format!("proto: {what}{cure}"))
    })
}

/// Finds a call by its name, `package.Service/Method`.
pub fn find(pool: &DescriptorPool, name: &str) -> Result<Described, SpecError> {
    let found = name.split_once('/').and_then(|(service, method)| {
        let service = pool.get_service_by_name(service)?;
        service.methods().find(|known| known.name() == method)
    });
    match found {
        Some(method) => Ok(described(&method)),
        None => Err(unknown(name, &all(pool))),
    }
}

fn described(method: &MethodDescriptor) -> Described {
    let kind = match (method.is_client_streaming(), method.is_server_streaming()) {
        (false, false) => CallKind::Unary,
        (false, true) => CallKind::ServerStreaming,
        (true, false) => CallKind::ClientStreaming,
        (true, true) => CallKind::Bidirectional,
    };
    Described {
        name: format!("{}/{}", method.parent_service().full_name(), method.name()),
        kind,
        input: method.input(),
        output: method.output(),
    }
}

/// The names of all calls.
pub fn all(pool: &DescriptorPool) -> Vec<String> {
    let mut names: Vec<String> = pool
        .services()
        .flat_map(|service| {
            let of: Vec<_> = service
                .methods()
                .map(|method| described(&method).name)
                .collect();
            of
        })
        .collect();
    names.sort();
    names
}

/// There is no such call.
pub fn unknown(name: &str, known: &[String]) -> SpecError {
    if known.is_empty() {
        return SpecError(format!(
            "call: there is no {name}, nor any other call: no service is described there"
        ));
    }
    let near = known.iter().map(String::as_str);
    let near = near.filter(|name| name.chars().count() <= LONGEST_SHOWN);
    let hint = nearest(name, near).map_or_else(String::new, |near| {
        format!(" Nearest: {}.", visible(near, LONGEST_SHOWN))
    });
    let shown = known.iter().take(LISTED);
    let shown: Vec<_> = shown.map(|name| visible(name, LONGEST_SHOWN)).collect();
    let shown = shown.join(", ");
    let more = match known.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    SpecError(format!(
        "call: there is no {name}.{hint} There are: {shown}{more}"
    ))
}

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
            .ok_or_else(|| unknown_field(key, message, path))?;
        if !value.is_null() {
            check_field(value, &field, &format!("{path}.{key}"))?;
        }
    }
    Ok(())
}

fn unknown_field(key: &str, message: &MessageDescriptor, path: &str) -> String {
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
        FieldKind::Message(entry) if field.is_map() => {
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

fn check_one(value: &Value, kind: &FieldKind, path: &str) -> Result<(), String> {
    let text = value.as_str();
    let right = match kind {
        FieldKind::Message(message) => return check(value, message, path),
        FieldKind::String => text.is_some(),
        FieldKind::Bytes => text.is_some_and(is_base64),
        FieldKind::Bool => value.is_boolean(),
        FieldKind::Double | FieldKind::Float => is_float(value),
        FieldKind::Enum(known) => match text {
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
fn wanted(kind: &FieldKind) -> String {
    if let Some((least, most)) = bounds(kind) {
        return format!("a whole number from {least} to {most} ({kind:?})");
    }
    match kind {
        FieldKind::String => "a string".into(),
        FieldKind::Bytes => "a string of base64 (bytes)".into(),
        FieldKind::Bool => "true or false".into(),
        FieldKind::Enum(known) => {
            let names: Vec<String> = known
                .values()
                .map(|value| value.name().to_owned())
                .collect();
            format!("one of {} ({})", names.join(", "), known.full_name())
        }
        FieldKind::Message(message) => format!("an object (a {})", message.full_name()),
        _ => format!("a number ({kind:?})"),
    }
}

fn bounds(kind: &FieldKind) -> Option<(i128, i128)> {
    match kind {
        FieldKind::Int32 | FieldKind::Sint32 | FieldKind::Sfixed32 => {
            Some((i32::MIN.into(), i32::MAX.into()))
        }
        FieldKind::Int64 | FieldKind::Sint64 | FieldKind::Sfixed64 => {
            Some((i64::MIN.into(), i64::MAX.into()))
        }
        FieldKind::Uint32 | FieldKind::Fixed32 => Some((0, u32::MAX.into())),
        FieldKind::Uint64 | FieldKind::Fixed64 => Some((0, u64::MAX.into())),
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

/// The name that takes the fewest edits (Levenshtein's distance) to get to, if they are not more than half of it.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|one| (distance(&name.to_lowercase(), &one.to_lowercase()), one))
        .min()
        .filter(|(edits, one)| 2 * edits <= one.chars().count())
        .map(|(_, one)| one)
}

fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, have) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, want) in to.iter().enumerate() {
            let changed = diagonal + usize::from(have != *want);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let known = ["helloworld.Greeter/SayHello", "helloworld.Greeter/Chat"];
        let find = |name| nearest(name, known.into_iter());
        assert_eq!(find("helloworld.Greeter/SayHelo"), Some(known[0]));
        assert_eq!(find("helloworld.greeter/chat"), Some(known[1]));
        assert_eq!(find("Greeter/SayHello"), Some(known[0]));
        assert_eq!(find("x"), None);
        assert_eq!(nearest("x", std::iter::empty()), None);
    }
}
