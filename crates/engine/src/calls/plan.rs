//! A call that is ready to be made, again and again.

use std::time::Duration;

use prost_reflect::MessageDescriptor;

use super::comparer::Comparer;
use super::message::Composer;
use super::reflection::{self, Door};
use super::{described, encoded, schema};
use crate::clock::nanos;
use crate::protocol::excerpt::visible;
use crate::protocol::grpc::{Ask, Kind, Right, head};
use crate::protocol::http2::RequestHead;
use crate::spec::{CallSpec, LoadSpec, SpecError};
use crate::target::{Place, Secure};
use crate::template::Template;
use crate::transport::Endpoint;

/// Characters of a sentence with a stranger's names in it: forty calls, each cut, and what is said of them.
const LONGEST_TOLD: usize = 6_000;

/// What a call consists of.
#[derive(Debug)]
pub struct Told {
    /// Who sends several messages.
    pub kind: Kind,
    /// The messages of the request.
    pub content: Content,
    /// See [`Right`].
    pub right: Right,
    /// Answers are compared by what they say, where their bytes differ.
    pub compared: Option<MessageDescriptor>,
}

/// The messages of a request.
#[derive(Debug)]
pub enum Content {
    /// The same in each call.
    Fixed(Vec<Vec<u8>>),
    /// Others in each.
    Made(Made),
}

/// Messages that are made for each call.
#[derive(Debug)]
pub struct Made {
    /// One for each message of a call.
    pub templates: Vec<Template>,
    /// What they are.
    pub message: MessageDescriptor,
}

/// See the module. Plain data that all workers share; each makes its own [`Ask`] of it.
#[derive(Debug)]
pub struct Plan {
    path: String,
    head: RequestHead,
    told: Told,
    check_every: u64,
    timeout_s: f64,
    seed: u64,
    threads: u64,
}

impl Plan {
    /// Reads what is to be asked; where nothing else describes the call, the server at `endpoint` is asked for it.
    pub fn new(
        spec: &LoadSpec,
        place: &Place,
        endpoint: &Endpoint,
        secure: Option<&Secure>,
        body: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<Plan, SpecError> {
        let call = spec.grpc.clone().unwrap_or_default();
        let name = match name(&call, place) {
            Err(fault) if !call.proto.is_empty() => {
                let known = schema::all(&schema::compile(&call.proto, &call.include)?);
                return Err(SpecError(format!(
                    "{fault}. There are: {}",
                    known.join(", ")
                )));
            }
            name => name?,
        };
        let mut told = match call.kind {
            Some(kind) => encoded::read(kind, body, expected)?,
            None if call.proto.is_empty() => {
                let pool = reflection::describe(spec, place, &Door { endpoint, secure }, name)?;
                // Whatever is wrong is told in the server's names of things.
                let told = reflection::guarded(|| {
                    schema::find(&pool, name)
                        .and_then(|described| described::read_call(&call, &described))
                });
                let told = told.unwrap_or_else(|| {
                    let why = "the server's description of its calls makes no sense; give the .proto file with --proto";
                    Err(SpecError(why.into()))
                });
                told.map_err(|SpecError(why)| SpecError(visible(&why, LONGEST_TOLD)))?
            }
            None => {
                let pool = schema::compile(&call.proto, &call.include)?;
                described::read_call(&call, &schema::find(&pool, name)?)?
            }
        };
        match told.kind {
            Kind::Unary | Kind::ClientStreaming => told.right.count = Some(1),
            // Each message is answered before the next.
            Kind::Bidirectional => told.right.count = Some(told.content.count()),
            Kind::ServerStreaming => {}
        }
        let path = format!("/{name}");
        Ok(Plan {
            head: compose(spec, place, &path)?,
            path,
            told,
            check_every: spec.compares_every(0),
            timeout_s: spec.timeout_s,
            seed: spec.seed,
            threads: spec.threads,
        })
    }

    /// `/package.Service/Method`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Who sends several messages.
    pub fn kind(&self) -> Kind {
        self.told.kind
    }

    /// What the worker of one thread asks.
    pub fn ask(&self, thread: u64) -> Ask {
        let Told {
            kind,
            content,
            right,
            compared,
        } = &self.told;
        let (messages, compose) = match content {
            Content::Fixed(messages) => (messages.as_slice(), None),
            Content::Made(made) => (&[][..], Some(self.composer(made, thread))),
        };
        let mut ask = Ask::new(*kind, self.head.clone(), messages);
        ask.compose = compose.map(|compose| Box::new(compose) as _);
        ask.equal = compared.as_ref().map(|message| {
            let comparer = Comparer::new(message, &right.messages, right.count);
            Box::new(comparer) as _
        });
        ask.right = right.clone();
        ask.check_every = self.check_every;
        ask.timeout = nanos(self.timeout_s);
        ask
    }

    fn composer(&self, made: &Made, thread: u64) -> Composer {
        Composer {
            templates: made.templates.clone(),
            message: made.message.clone(),
            seed: self.seed,
            thread,
            threads: self.threads,
        }
    }
}

impl Content {
    fn count(&self) -> u64 {
        match self {
            Content::Fixed(messages) => messages.len() as u64,
            Content::Made(made) => made.templates.len() as u64,
        }
    }
}

/// `package.Service/Method`, from the call or from the URL.
fn name<'a>(call: &'a CallSpec, place: &'a Place) -> Result<&'a str, SpecError> {
    let of_url = Some(place.path().trim_start_matches('/')).filter(|path| !path.is_empty());
    let told = call
        .call
        .as_deref()
        .map(|call| call.trim_start_matches('/'));
    let name = match (told, of_url) {
        (Some(told), Some(of_url)) if told != of_url => {
            return Err(SpecError(format!(
                "call: the URL says {of_url} and the call {told}; give one of them"
            )));
        }
        (told, of_url) => told.or(of_url),
    };
    match name {
        Some(name) if name.split('/').filter(|part| !part.is_empty()).count() == 2 => Ok(name),
        Some(name) => Err(SpecError(format!(
            "call: '{name}' is not a call; write package.Service/Method"
        ))),
        None => Err(SpecError(
            "call: none is named; give package.Service/Method with --call, or at the end of the URL"
                .into(),
        )),
    }
}

/// The head of every call.
pub fn compose(spec: &LoadSpec, place: &Place, path: &str) -> Result<RequestHead, SpecError> {
    let metadata: Vec<(&str, &str)> = spec
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let deadline = Duration::from_secs_f64(spec.timeout_s);
    head(
        place.scheme.name(),
        place.authority(),
        path,
        Some(deadline),
        &metadata,
    )
    .map_err(|fault| SpecError(format!("headers: {fault}")))
}
