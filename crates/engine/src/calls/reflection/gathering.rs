//! A description put together from what a server answers, sans I/O. Whatever comes, it ends: its parts are counted before
//! they are decoded, and no part is looked at again for each of the others.

use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::panic;
use std::panic::AssertUnwindSafe;
use std::sync::Once;

use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
};

use crate::calls::reflection::{Answer, Files, Question, Request, Response};

/// More files than this describe no service that anybody would load; the largest of Google's need some hundred.
const MOST_FILES: usize = 2_000;
/// A file that is imported by one that is imported … by the service's. The deepest in use are below twenty.
const DEEPEST: usize = 100;
/// Imports of all files, and those of them that are passed on (`import public`), which are looked at again for each file
/// that imports theirs.
const MOST_IMPORTS: usize = 20_000;
const MOST_PASSED_ON: usize = 100;
/// Fields on the wire. Two bytes of it can become 300 in memory (an empty message in a list); this many become 300 MB at
/// worst. The largest services in use have about a third.
const MOST_PARTS: usize = 1_000_000;
/// What a pool may take in memory: it holds each name in full, with all that it stands in.
const MOST_WEIGHT: usize = 64 << 20;
/// Of one thing that has a name, beside the name.
const WEIGHT: usize = 200;
/// Messages deeper in each other than this are not decoded.
const DEEPEST_MESSAGE: usize = 100;
/// Services whose calls are listed for somebody who named one that is not there.
const MOST_SERVICES: usize = 100;
const MOST_CALLS: usize = 1_000;
/// A name that is longer is none that was meant.
const LONGEST_NAME: usize = 500;
const NOT_FOUND: i32 = 5;

/// Why there is no description.
#[derive(Debug)]
pub enum Trouble {
    /// Reflection of this version is not there.
    NoSuchService,
    /// The server has other calls.
    NoSuchCall(Vec<String>),
    /// In words; some may be the server's.
    Other(String),
}

/// Sends a message to the server and returns its answer.
pub type Ask<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Vec<u8>, Trouble>;

fn other<T>(why: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Other(why.into()))
}

/// Puts the description of a call together.
pub fn gather(ask: Ask<'_>, call: &str) -> Result<DescriptorPool, Trouble> {
    let mut gathering = Gathering {
        ask,
        parts: 0,
        weight: 0,
        imports: 0,
        passed_on: 0,
        known: HashSet::new(),
        files: Vec::new(),
        wanted: VecDeque::new(),
    };
    gathering.service(call.split('/').next().unwrap_or(call))?;
    while let Some((name, depth)) = gathering.wanted.pop_front() {
        gathering.import(name, depth)?;
    }
    let files = gathering.files;
    let pool = guarded(|| {
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(files).map(|()| pool)
    });
    pool.ok_or_else(|| Trouble::Other("its description makes no sense".into()))?
        .map_err(|error| Trouble::Other(format!("its description contradicts itself: {error}")))
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does what a library does with a stranger's description. It panics at some of those that make no sense; then this is
/// None, and nothing is said of it.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            if !GUARDED.get() {
                usual(what);
            }
        }));
    });
    GUARDED.set(true);
    // What it worked on is dropped.
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    done.ok()
}

struct Gathering<'a> {
    ask: Ask<'a>,
    parts: usize,
    weight: usize,
    imports: usize,
    passed_on: usize,
    /// Names of the files that have come.
    known: HashSet<String>,
    files: Vec<FileDescriptorProto>,
    /// Names of files that others import, and how deep.
    wanted: VecDeque<(String, usize)>,
}

impl Gathering<'_> {
    fn ask(&mut self, question: Question) -> Result<Answer, Trouble> {
        let request = Request {
            host: String::new(),
            question: Some(question),
        };
        let reply = (self.ask)(&request.encode_to_vec())?;
        count_parts(&reply, DEEPEST_MESSAGE, &mut self.parts);
        if self.parts > MOST_PARTS {
            return other(format!("its description has more than {MOST_PARTS} parts"));
        }
        Response::decode(reply.as_slice())
            .ok()
            .and_then(|response| response.answer)
            .ok_or_else(|| Trouble::Other("its reflection answers with something else".into()))
    }

    /// The file of the service. Servers may send what it imports with it, or leave out what was sent before.
    fn service(&mut self, service: &str) -> Result<(), Trouble> {
        match self.ask(Question::FileContainingSymbol(service.to_owned()))? {
            Answer::Files(found) => self.take(&found, 0),
            Answer::Error(error) if error.code == NOT_FOUND => {
                Err(Trouble::NoSuchCall(self.calls()?))
            }
            Answer::Error(error) => other(error.message),
            Answer::Services(_) => other("its reflection is confused"),
        }
    }

    fn import(&mut self, name: String, depth: usize) -> Result<(), Trouble> {
        if self.known.contains(&name) {
            return Ok(());
        }
        if depth > DEEPEST {
            return other(format!("its files import each other {depth} deep"));
        }
        match self.ask(Question::FileByName(name.clone()))? {
            Answer::Files(found) => self.take(&found, depth)?,
            _ => return other(format!("its description lacks {name}")),
        }
        match self.known.contains(&name) {
            true => Ok(()),
            false => other(format!("its description lacks {name}")),
        }
    }

    fn take(&mut self, found: &Files, depth: usize) -> Result<(), Trouble> {
        for bytes in &found.files {
            let file = decoded(bytes)?;
            if self.known.contains(file.name()) {
                continue;
            }
            self.weigh(&file)?;
            let imports = file.dependency.iter();
            let wanted = imports.filter(|name| !self.known.contains(*name));
            self.wanted
                .extend(wanted.map(|name| (name.clone(), depth + 1)));
            self.known.insert(file.name().to_owned());
            self.files.push(file);
        }
        Ok(())
    }

    /// Adds a file to what all of them come to, and refuses what is too much, or of another kind.
    fn weigh(&mut self, file: &FileDescriptorProto) -> Result<(), Trouble> {
        if self.files.len() == MOST_FILES {
            return other(format!("its description has more than {MOST_FILES} files"));
        }
        if !["", "proto2", "proto3"].contains(&file.syntax()) {
            return other(format!(
                "{} is of syntax '{}', and this reads proto2 and proto3",
                file.name(),
                file.syntax()
            ));
        }
        self.imports += file.dependency.len();
        self.passed_on += file.public_dependency.len();
        if self.imports > MOST_IMPORTS || self.passed_on > MOST_PASSED_ON {
            return other(format!(
                "its files import each other more than {MOST_IMPORTS} times, or publicly more than {MOST_PASSED_ON} times"
            ));
        }
        let mut scale = Scale(self.weight);
        scale.file(file);
        self.weight = scale.0;
        if self.weight > MOST_WEIGHT {
            return other(format!(
                "its description needs more than {} MB",
                MOST_WEIGHT >> 20
            ));
        }
        Ok(())
    }

    /// All calls of the server, as far as it describes them.
    fn calls(&mut self) -> Result<Vec<String>, Trouble> {
        let Answer::Services(services) = self.ask(Question::ListServices(String::new()))? else {
            return Ok(Vec::new());
        };
        let named = services.services.into_iter().map(|service| service.name);
        let named = named.filter(|name| !name.starts_with("grpc.reflection."));
        let mut calls = Vec::new();
        for service in named.take(MOST_SERVICES) {
            if let Answer::Files(found) =
                self.ask(Question::FileContainingSymbol(service.clone()))?
            {
                for bytes in &found.files {
                    calls.extend(calls_of(&decoded(bytes)?, &service));
                }
            }
        }
        calls.retain(|call| call.len() <= LONGEST_NAME);
        calls.sort();
        calls.truncate(MOST_CALLS);
        Ok(calls)
    }
}

fn decoded(bytes: &[u8]) -> Result<FileDescriptorProto, Trouble> {
    FileDescriptorProto::decode(bytes)
        .map_err(|error| Trouble::Other(format!("its description cannot be read: {error}")))
}

/// The calls of a service, where it is in this file.
fn calls_of(file: &FileDescriptorProto, service: &str) -> Vec<String> {
    let name = match file.package() {
        "" => service,
        package => service
            .strip_prefix(package)
            .and_then(|rest| rest.strip_prefix('.'))
            .unwrap_or_default(),
    };
    let mut services = file.service.iter();
    let methods = services
        .find(|described| described.name() == name)
        .map_or(&[][..], |described| &described.method);
    let calls = methods.iter().take(MOST_CALLS);
    calls
        .map(|method| format!("{service}/{}", method.name()))
        .collect()
}

/// Counts the fields of a message and of all that may be messages in it, before any is decoded. Text may look like a
/// message: the count is then too high by some, and never too low.
fn count_parts(mut bytes: &[u8], deepest: usize, parts: &mut usize) {
    while let Some(tag) = varint(&mut bytes) {
        *parts += 1;
        if *parts > MOST_PARTS {
            return;
        }
        let length = match tag & 7 {
            0 => match varint(&mut bytes) {
                Some(_) => 0,
                None => return,
            },
            1 => 8,
            2 => match varint(&mut bytes).map(usize::try_from) {
                Some(Ok(length)) if length <= bytes.len() => {
                    if deepest > 0 {
                        count_parts(&bytes[..length], deepest - 1, parts);
                    }
                    length
                }
                _ => return,
            },
            // The beginning and the end of a group, whose fields follow.
            3 | 4 => 0,
            5 => 4,
            _ => return,
        };
        match bytes.get(length..) {
            Some(rest) => bytes = rest,
            None => return,
        }
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// What the names of a file take in a pool.
struct Scale(usize);

impl Scale {
    fn file(&mut self, file: &FileDescriptorProto) {
        let package = file.package().len();
        self.add(package + file.name().len(), "", 1);
        self.messages(&file.message_type, package, 1);
        self.enums(&file.enum_type, package, 1);
        self.fields(&file.extension, package, 1);
        for service in &file.service {
            let within = self.add(package, service.name(), 1);
            for method in &service.method {
                self.add(within, method.name(), 2);
            }
        }
    }

    /// Something with a name within one of `within` bytes; returns how long its own is in full.
    fn add(&mut self, within: usize, name: &str, depth: usize) -> usize {
        let full = within + 1 + name.len();
        // Its place is kept too, as two numbers for each level.
        self.0 = self.0.saturating_add(full + 8 * depth + WEIGHT);
        full
    }

    fn messages(&mut self, messages: &[DescriptorProto], within: usize, depth: usize) {
        for message in messages {
            let full = self.add(within, message.name(), depth);
            self.fields(&message.field, full, depth + 1);
            self.fields(&message.extension, full, depth + 1);
            for choice in &message.oneof_decl {
                self.add(full, choice.name(), depth + 1);
            }
            self.enums(&message.enum_type, full, depth + 1);
            self.messages(&message.nested_type, full, depth + 1);
        }
    }

    fn enums(&mut self, enums: &[EnumDescriptorProto], within: usize, depth: usize) {
        for described in enums {
            let full = self.add(within, described.name(), depth);
            for value in &described.value {
                self.add(full, value.name(), depth + 1);
            }
        }
    }

    fn fields(&mut self, fields: &[FieldDescriptorProto], within: usize, depth: usize) {
        for field in fields {
            // Its type is written out in full, and looked for in each name that it stands in.
            let names = field.type_name().len() + field.extendee().len();
            self.add(within + names, field.name(), depth);
        }
    }
}
