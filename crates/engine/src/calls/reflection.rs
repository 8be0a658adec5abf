//! A server's own description of its calls (gRPC server reflection, `grpc.reflection.v1` and `v1alpha`).

mod conversation;
mod messages;

use prost::Message as _;
use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::FileDescriptorProto;

use super::plan::compose;
use super::schema::unknown;
use crate::protocol::grpc::status_name;
use crate::spec::{LoadSpec, SpecError};
use crate::target::{Place, Secure};
use crate::transport::Endpoint;
use conversation::{Conversation, Ended};
use messages::{Answer, Question, Request, Response};

/// The newer name and the older one; the messages are the same.
const SERVICES: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
const UNIMPLEMENTED: u32 = 12;
const NOT_FOUND: i32 = 5;
/// More files than this describe no service that anybody would load.
const MOST_FILES: usize = 2_000;

/// Where a server is asked.
pub struct Door<'a> {
    /// Its address.
    pub endpoint: &'a Endpoint,
    /// How connections are encrypted, if they are.
    pub secure: Option<&'a Secure>,
}

/// Asks the server for the description of a call.
pub fn describe(
    spec: &LoadSpec,
    place: &Place,
    door: &Door<'_>,
    call: &str,
) -> Result<DescriptorPool, SpecError> {
    let mut refusal = String::new();
    for service in SERVICES {
        let path = format!("/{service}/ServerReflectionInfo");
        let head = compose(spec, place, &path)?;
        let mut conversation = Conversation::open(spec, door, &head)
            .map_err(|error| cannot_ask(place, &error.to_string()))?;
        match gather(&mut conversation, call) {
            Ok(pool) => return Ok(pool),
            Err(Trouble::NoSuchService) => {}
            Err(Trouble::NoSuchCall(known)) => return Err(unknown(call, &known)),
            Err(Trouble::Other(why)) => return Err(cannot_ask(place, &why)),
        }
        refusal = format!("it has neither {} nor {}", SERVICES[0], SERVICES[1]);
    }
    Err(SpecError(format!(
        "{} does not describe its calls: {refusal}. Give the .proto file with --proto",
        place.authority()
    )))
}

fn cannot_ask(place: &Place, why: &str) -> SpecError {
    SpecError(format!(
        "{} cannot be asked to describe its calls: {why}. Give the .proto file with --proto, or see whether it runs",
        place.authority()
    ))
}

enum Trouble {
    /// Reflection of this version is not there.
    NoSuchService,
    /// The server has other calls.
    NoSuchCall(Vec<String>),
    Other(String),
}

impl From<Ended> for Trouble {
    fn from(ended: Ended) -> Trouble {
        match ended {
            Ended::Status(UNIMPLEMENTED, _) => Trouble::NoSuchService,
            Ended::Status(code, text) => Trouble::Other(format!(
                "its reflection ends with grpc-status {code} {}{}{text}",
                status_name(code),
                if text.is_empty() { "" } else { ": " }
            )),
            Ended::Broken(why) => Trouble::Other(why),
        }
    }
}

fn ask(conversation: &mut Conversation, question: Question) -> Result<Answer, Trouble> {
    let request = Request {
        host: String::new(),
        question: Some(question),
    };
    let reply = conversation.ask(&request.encode_to_vec())?;
    Response::decode(reply.as_slice())
        .ok()
        .and_then(|response| response.answer)
        .ok_or_else(|| Trouble::Other("its reflection answers with something else".into()))
}

/// The file of the service and all it needs. Servers may send them together or leave out what was sent before.
fn gather(conversation: &mut Conversation, call: &str) -> Result<DescriptorPool, Trouble> {
    let service = call.split('/').next().unwrap_or(call);
    let question = Question::FileContainingSymbol(service.to_owned());
    let mut files: Vec<FileDescriptorProto> = Vec::new();
    match ask(conversation, question)? {
        Answer::Files(found) => take(&found.files, &mut files)?,
        Answer::Error(error) if error.code == NOT_FOUND => {
            return Err(Trouble::NoSuchCall(known_calls(conversation)?));
        }
        Answer::Error(error) => return Err(Trouble::Other(error.message)),
        Answer::Services(_) => return Err(Trouble::Other("its reflection is confused".into())),
    }
    while let Some(name) = missing(&files) {
        if files.len() > MOST_FILES {
            return Err(Trouble::Other("its description has no end".into()));
        }
        match ask(conversation, Question::FileByName(name.clone()))? {
            Answer::Files(found) if !found.files.is_empty() => take(&found.files, &mut files)?,
            _ => return Err(Trouble::Other(format!("its description lacks {name}"))),
        }
        if missing(&files).as_ref() == Some(&name) {
            return Err(Trouble::Other(format!("its description lacks {name}")));
        }
    }
    let mut pool = DescriptorPool::new();
    pool.add_file_descriptor_protos(files)
        .map_err(|error| Trouble::Other(format!("its description contradicts itself: {error}")))?;
    Ok(pool)
}

fn take(found: &[Vec<u8>], files: &mut Vec<FileDescriptorProto>) -> Result<(), Trouble> {
    for bytes in found {
        let file = FileDescriptorProto::decode(bytes.as_slice())
            .map_err(|error| Trouble::Other(format!("its description cannot be read: {error}")))?;
        if !files.iter().any(|known| known.name() == file.name()) {
            files.push(file);
        }
    }
    Ok(())
}

/// A file that others import and that has not come.
fn missing(files: &[FileDescriptorProto]) -> Option<String> {
    let has = |name: &str| files.iter().any(|file| file.name() == name);
    let mut imports = files.iter().flat_map(|file| &file.dependency);
    imports.find(|name| !has(name)).cloned()
}

/// All calls of the server, as far as it describes them.
fn known_calls(conversation: &mut Conversation) -> Result<Vec<String>, Trouble> {
    let Answer::Services(services) = ask(conversation, Question::ListServices(String::new()))?
    else {
        return Ok(Vec::new());
    };
    let mut known = Vec::new();
    for service in services.services {
        if service.name.starts_with("grpc.reflection.") {
            continue;
        }
        let question = Question::FileContainingSymbol(service.name.clone());
        let Answer::Files(found) = ask(conversation, question)? else {
            continue;
        };
        let mut files = Vec::new();
        take(&found.files, &mut files)?;
        for file in &files {
            for described in &file.service {
                let full = [file.package(), described.name()]
                    .map(str::to_owned)
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(".");
                if full == service.name {
                    let methods = described.method.iter();
                    known.extend(methods.map(|method| format!("{full}/{}", method.name())));
                }
            }
        }
    }
    known.sort();
    Ok(known)
}
