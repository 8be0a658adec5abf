//! A server's own description of its calls (gRPC server reflection, `grpc.reflection.v1` and `v1alpha`). The server may be
//! anybody's: what it may make this process keep, do and print is bounded.

mod conversation;
mod gathering;
mod messages;

use std::time::{Duration, Instant};

use prost_reflect::DescriptorPool;

use super::plan::compose;
use super::schema::unknown;
use crate::apart::apart;
use crate::protocol::excerpt::visible;
use crate::protocol::grpc::status_name;
use crate::protocol::http2::RequestHead;
use crate::spec::{LoadSpec, SpecError};
use crate::target::{Place, Secure};
use crate::transport::Endpoint;
use conversation::{Conversation, Ended};
pub use gathering::guarded;
use gathering::{Trouble, gather};

/// The newer name and the older one; the messages are the same.
const SERVICES: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];
const UNIMPLEMENTED: u32 = 12;
/// A server that does not describe itself in this time, all connections and questions together, is given up, even if its
/// calls may take longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the last answer is read in, once it has come.
const READING: Duration = Duration::from_secs(1);
/// So many characters of a server's words are shown.
const LONGEST_SHOWN: usize = 300;

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
    let patience = PATIENCE.min(Duration::from_secs_f64(spec.timeout_s));
    let heads = SERVICES.map(|service| {
        let path = format!("/{service}/ServerReflectionInfo");
        compose(spec, place, &path)
    });
    let heads = heads.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (endpoint, secure) = (door.endpoint.clone(), door.secure.cloned());
    let asked = call.to_owned();
    let work = move || {
        let door = Door {
            endpoint: &endpoint,
            secure: secure.as_ref(),
        };
        converse(&door, &heads, Instant::now() + patience, &asked)
    };
    // On a thread of its own: what is bounded in size may still take long in a library.
    let described = apart("describe", work, patience + READING, || false)
        .map_err(|error| cannot_ask(place, &error.to_string()))?;
    match described {
        Some(Ok(pool)) => Ok(pool),
        Some(Err(Trouble::NoSuchCall(known))) => Err(unknown(call, &known)),
        Some(Err(Trouble::Other(why))) => Err(cannot_ask(place, &why)),
        Some(Err(Trouble::NoSuchService)) => Err(SpecError(format!(
            "{} does not describe its calls: it has neither {} nor {}. Give the .proto file with --proto",
            place.authority(),
            SERVICES[0],
            SERVICES[1]
        ))),
        None => Err(cannot_ask(place, "its description takes too long to read")),
    }
}

/// Asks in the newer version and, where that is not there, in the older one.
fn converse(
    door: &Door<'_>,
    heads: &[RequestHead],
    deadline: Instant,
    call: &str,
) -> Result<DescriptorPool, Trouble> {
    for head in heads {
        let mut conversation = Conversation::open(door, head, deadline)
            .map_err(|error| Trouble::Other(error.to_string()))?;
        let mut ask = |message: &[u8]| conversation.ask(message).map_err(Trouble::from);
        match gather(&mut ask, call) {
            Err(Trouble::NoSuchService) => {}
            ended => return ended,
        }
    }
    Err(Trouble::NoSuchService)
}

fn cannot_ask(place: &Place, why: &str) -> SpecError {
    SpecError(format!(
        "{} cannot be asked to describe its calls: {}. Give the .proto file with --proto, or see whether it runs",
        place.authority(),
        visible(why, LONGEST_SHOWN)
    ))
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

/// What comes of a server's answers, one after the other, as if it had been asked for `call`: the names of its calls, or
/// the trouble in words. Without a connection, for tests.
#[doc(hidden)]
pub fn of_answers(
    call: &str,
    mut answers: impl Iterator<Item = Vec<u8>>,
) -> Result<Vec<String>, String> {
    let silence = || Trouble::Other("it says no more".into());
    let described = gather(&mut |_| answers.next().ok_or_else(silence), call);
    match described {
        Ok(pool) => match guarded(|| super::schema::find(&pool, call)) {
            Some(Ok(found)) => Ok(vec![found.name]),
            Some(Err(fault)) => Err(fault.to_string()),
            None => Err("it makes no sense".into()),
        },
        Err(Trouble::NoSuchCall(known)) => Err(unknown(call, &known).to_string()),
        Err(Trouble::Other(why)) => Err(visible(&why, LONGEST_SHOWN)),
        Err(Trouble::NoSuchService) => Err("no such service".into()),
    }
}
