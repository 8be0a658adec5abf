//! One call with a stream in each direction, question by question, before any load: blocking, over its own connection.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};

use super::Door;
use crate::protocol::grpc::{frame, readable};
use crate::protocol::http2::{
    GrpcStatus, GrpcTrailer, RequestHead, Session, Settings, StreamEvent, code_name,
};
use crate::spec::LoadSpec;
use crate::transport::tls::explained;

/// A server that does not describe itself in this time is given up, even if its calls may take longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// A description longer than this is none.
const MOST_BYTES: usize = 64 << 20;
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
    deadline: Instant,
}

/// A connection, encrypted or not.
pub trait Pipe: Read + Write {}
impl<T: Read + Write> Pipe for T {}

impl Conversation {
    /// Connects and begins the call.
    pub fn open(spec: &LoadSpec, door: &Door<'_>, head: &RequestHead) -> io::Result<Conversation> {
        let patience = PATIENCE.min(Duration::from_secs_f64(spec.timeout_s));
        let mut conversation = Conversation {
            socket: connected(door, patience)?,
            session: Session::new(Settings {
                streams: 1,
                ..Settings::default()
            }),
            out: Vec::new(),
            came: Vec::new(),
            ended: None,
            deadline: Instant::now() + patience,
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
        let message = self.came.get(5..5 + length)?.to_vec();
        self.came.drain(..5 + length);
        Some(message)
    }

    /// Sends what is to be sent and reads what comes.
    fn exchange(&mut self) -> io::Result<()> {
        self.socket.write_all(&self.out).map_err(told_by_tls)?;
        self.out.clear();
        self.socket.flush()?;
        if Instant::now() > self.deadline {
            return Err(late());
        }
        let mut buffer = [0; 16 * 1024];
        let count = self
            .socket
            .read(&mut buffer)
            .map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(),
                _ => told_by_tls(error),
            })?;
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

fn connected(door: &Door<'_>, patience: Duration) -> io::Result<Box<dyn Pipe>> {
    let socket = door.endpoint.reach(patience)?;
    let Some(secure) = door.secure else {
        return Ok(Box::new(socket));
    };
    let tls = ClientConnection::new(secure.config.clone(), secure.name.clone());
    let tls = tls.map_err(io::Error::other)?;
    Ok(Box::new(StreamOwned::new(tls, socket)))
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
        StreamEvent::Data { bytes, .. } if came.len() + bytes.len() <= MOST_BYTES => {
            came.extend_from_slice(bytes);
        }
        StreamEvent::Data { .. } => *ended = Some(Ended::Broken("its answer is too long".into())),
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
