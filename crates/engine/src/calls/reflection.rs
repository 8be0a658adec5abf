//! A server's own description of its calls (gRPC server reflection, `grpc.reflection.v1` and `v1alpha`). The server may be
//! anybody's: what it may make this process keep, do and print is bounded.

mod gathering;

use std::io;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use prost_reflect::DescriptorPool;
use rustls::{ClientConnection, StreamOwned};

use crate::apart::apart;
use crate::calls::compose;
use crate::calls::described::unknown;
use crate::calls::reflection::gathering::{Trouble, gather};
use crate::endpoint::Endpoint;
use crate::place::Place;
use crate::protocol::excerpt::visible;
use crate::protocol::grpc::{frame, readable, status_name};
use crate::protocol::http2::{
    GrpcStatus, GrpcTrailer, RequestHead, Session, Settings, StreamEvent, code_name,
};
use crate::secure::Secure;
use crate::spec::{LoadSpec, SpecError};
use crate::transport::tls::explained;

pub use gathering::guarded;

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
        Ok(pool) => match guarded(|| crate::calls::described::find(&pool, call)) {
            Some(Ok(found)) => Ok(vec![found.name]),
            Some(Err(fault)) => Err(fault.to_string()),
            None => Err("it makes no sense".into()),
        },
        Err(Trouble::NoSuchCall(known)) => Err(unknown(call, &known).to_string()),
        Err(Trouble::Other(why)) => Err(visible(&why, LONGEST_SHOWN)),
        Err(Trouble::NoSuchService) => Err("no such service".into()),
    }
}

/// `ServerReflectionRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Request {
    #[prost(string, tag = "1")]
    pub host: String,
    #[prost(oneof = "Question", tags = "3, 4, 7")]
    pub question: Option<Question>,
}

/// What is asked.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Question {
    #[prost(string, tag = "3")]
    FileByName(String),
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    #[prost(string, tag = "7")]
    ListServices(String),
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Response {
    #[prost(oneof = "Answer", tags = "4, 6, 7")]
    pub answer: Option<Answer>,
}

/// What is answered.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Answer {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Failure),
}

/// `FileDescriptorResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Files {
    /// Each an encoded `FileDescriptorProto`.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub files: Vec<Vec<u8>>,
}

/// `ListServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Services {
    #[prost(message, repeated, tag = "1")]
    pub services: Vec<Service>,
}

/// `ServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Service {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// `ErrorResponse`; the code is a grpc-status.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Failure {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
}

/// A server that says more than this, in all, describes no service that anybody would load; the largest of Google's are
/// described in some 4 MB.
const MOST_BYTES: usize = 16 << 20;
/// The only stream.
const TAG: u32 = 0;

/// Why a conversation has ended.
#[derive(Debug)]
pub enum Ended {
    /// By the server, with a status and its message.
    Status(u32, String),
    /// Against its rules, or too late.
    Broken(String),
}

/// See the module.
pub struct Conversation {
    socket: Box<dyn Pipe>,
    session: Session,
    out: Vec<u8>,
    /// What has come of the answer and was not taken.
    came: Vec<u8>,
    ended: Option<Ended>,
    /// Bytes that came in all.
    heard: usize,
}

/// A connection, encrypted or not.
pub trait Pipe: Read + Write {}
impl<T: Read + Write> Pipe for T {}

impl Conversation {
    /// Connects and begins the call. All of it, questions included, ends at the deadline.
    pub fn open(
        door: &Door<'_>,
        head: &RequestHead,
        deadline: Instant,
    ) -> io::Result<Conversation> {
        let mut conversation = Conversation {
            socket: connected(door, deadline)?,
            session: Session::new(Settings {
                streams: 1,
                ..Settings::default()
            }),
            out: Vec::new(),
            came: Vec::new(),
            ended: None,
            heard: 0,
        };
        conversation.session.open(&mut conversation.out);
        while !conversation.session.is_ready() {
            conversation.exchange()?;
        }
        let begun = conversation
            .session
            .begin(TAG, head, b"", false, &mut conversation.out);
        begun.map_err(io::Error::other)?;
        Ok(conversation)
    }

    /// Sends a message and waits for its answer.
    pub fn ask(&mut self, message: &[u8]) -> Result<Vec<u8>, Ended> {
        if !self.came.is_empty() {
            return Err(Ended::Broken("it says more than it is asked".into()));
        }
        let sent = self
            .session
            .send(TAG, &frame(message), false, &mut self.out);
        if sent.is_err() {
            return Err(self.end());
        }
        loop {
            if let Some(answer) = self.take() {
                return Ok(answer);
            }
            if self.ended.is_some() {
                return Err(self.end());
            }
            self.exchange()
                .map_err(|error| Ended::Broken(error.to_string()))?;
        }
    }

    fn end(&mut self) -> Ended {
        let silence = || Ended::Broken("it ended the conversation".into());
        self.ended.take().unwrap_or_else(silence)
    }

    /// The first message among what has come, if it is whole.
    fn take(&mut self) -> Option<Vec<u8>> {
        let prefix: [u8; 5] = self.came.get(..5)?.try_into().ok()?;
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        if prefix[0] != 0 || length > MOST_BYTES {
            self.ended = Some(Ended::Broken(
                "its answer is compressed, or too long".into(),
            ));
            return None;
        }
        let end = 5 + length;
        if self.came.len() < end {
            return None;
        }
        let rest = self.came.split_off(end);
        let mut message = std::mem::replace(&mut self.came, rest);
        message.drain(..5);
        Some(message)
    }

    /// Sends what is to be sent and reads what comes.
    fn exchange(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.out).map_err(told_by_tls)?;
        self.out.clear();
        self.socket.flush()?;
        let mut buffer = [0; 16 * 1024];
        let count = self.socket.read(&mut buffer).map_err(told_by_tls)?;
        self.heard += count;
        if self.heard > MOST_BYTES {
            let why = format!("it says more than {} MB", MOST_BYTES >> 20);
            return Err(io::Error::other(why));
        }
        if count == 0 {
            let closed = self.session.eof().err();
            let why = closed.map_or_else(|| "it closed the connection".into(), |e| e.to_string());
            return Err(io::Error::other(why));
        }
        let (came, ended) = (&mut self.came, &mut self.ended);
        let heard = |_, event: StreamEvent<'_>| hear(event, came, ended);
        self.session
            .feed(&buffer[..count], &mut self.out, heard)
            .map_err(io::Error::other)
    }
}

fn connected(door: &Door<'_>, deadline: Instant) -> io::Result<Box<dyn Pipe>> {
    let socket = door.endpoint.reach(left(deadline)?)?;
    let socket = Timed { socket, deadline };
    let Some(secure) = door.secure else {
        return Ok(Box::new(socket));
    };
    let tls = ClientConnection::new(secure.config.clone(), secure.name.clone());
    let tls = tls.map_err(io::Error::other)?;
    Ok(Box::new(StreamOwned::new(tls, socket)))
}

/// A blocking socket that ends at a deadline, however little comes at a time: a TLS library reads in a loop of its own.
struct Timed {
    socket: TcpStream,
    deadline: Instant,
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(left(self.deadline)?))?;
        self.socket.read(buffer).map_err(told_by_clock)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.set_write_timeout(Some(left(self.deadline)?))?;
        self.socket.write(bytes).map_err(told_by_clock)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// How long it is to the deadline; an error where it is over.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(late()),
        false => Ok(left),
    }
}

fn told_by_clock(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(),
        _ => error,
    }
}

fn hear(event: StreamEvent<'_>, came: &mut Vec<u8>, ended: &mut Option<Ended>) {
    match event {
        StreamEvent::Head {
            status: 200,
            grpc,
            end: true,
            ..
        }
        | StreamEvent::Trailers { grpc } => {
            *ended = Some(told(grpc));
        }
        StreamEvent::Head { status: 200, .. } => {}
        StreamEvent::Head { status, .. } => {
            *ended = Some(Ended::Broken(format!(
                "it answers with HTTP status {status}"
            )));
        }
        StreamEvent::Data { bytes, .. } => came.extend_from_slice(bytes),
        StreamEvent::Reset { code } => {
            *ended = Some(Ended::Broken(format!(
                "it reset the stream: {}",
                code_name(code)
            )));
        }
        StreamEvent::Refused => *ended = Some(Ended::Broken("it refused the stream".into())),
        StreamEvent::Malformed { why } => *ended = Some(Ended::Broken(why.into())),
    }
}

fn told(trailer: GrpcTrailer<'_>) -> Ended {
    match trailer.status {
        GrpcStatus::Code(code) => Ended::Status(code, readable(trailer.message)),
        _ => Ended::Broken("its answer ends without grpc-status".into()),
    }
}

/// A failure of TLS in the words, and with the cure, that a load has for it.
fn told_by_tls(error: io::Error) -> io::Error {
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref());
    match fault {
        Some(fault) => explained(fault, false),
        None => error,
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")
}
