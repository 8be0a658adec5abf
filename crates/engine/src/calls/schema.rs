//! What is known of calls and their messages: from `.proto` files, or from the server itself.

use std::path::{Path, PathBuf};

use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};

use super::nearest::nearest;
use crate::protocol::excerpt::visible;
use crate::protocol::grpc::Kind;
use crate::spec::SpecError;

/// More calls are not listed, nor more characters of each: the names may be a stranger's.
const LISTED: usize = 40;
const LONGEST_SHOWN: usize = 120;

/// A call as its description tells it.
#[derive(Clone, Debug)]
pub struct Described {
    /// `package.Service/Method`.
    pub name: String,
    /// Who sends several messages.
    pub kind: Kind,
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
        (false, false) => Kind::Unary,
        (false, true) => Kind::ServerStreaming,
        (true, false) => Kind::ClientStreaming,
        (true, true) => Kind::Bidirectional,
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
