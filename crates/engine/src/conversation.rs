//! What is said over WebSockets, ready to be said again and again.

use crate::clock::Clock;
use crate::place::Place;
use crate::protocol::websocket::broadcast::{DIGITS, Letter};
use crate::protocol::websocket::{Kind, Upgrade, connect, echo};
use crate::spec::{LoadSpec, Mode, SpecError, WebSocketSpec};
use crate::transport::room::Room;
use crate::transport::websocket::WebSocket;
use crate::transport::{ByteTransport, room};

/// A server's message may be so much longer than ours, and then it is nothing that was asked for.
const MOST_SURPLUS: u64 = 16 << 20;

/// Said where nothing else is told.
const GREETING: &[u8] = b"Hello, World!";

/// See the module. Plain data that all workers share; each makes its own side of it.
#[derive(Debug)]
pub struct Conversation {
    /// See [`Mode`].
    pub mode: Mode,
    /// Messages of a room on their way at once.
    pub at_once: u64,
    connections: u64,
    upgrade: Upgrade,
    kind: Kind,
    /// As it is sent, but for the number of a room's.
    message: Vec<u8>,
    letter: Letter,
    check_every: u64,
    seed: u64,
}

impl Conversation {
    /// Reads what is to be said; `body` is the message.
    pub fn new(
        spec: &LoadSpec,
        place: &Place,
        body: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<Conversation, SpecError> {
        let fault = |sentence: &str| Err(SpecError(format!("websocket: {sentence}")));
        let asked = spec.websocket.clone().unwrap_or_default();
        asked.check(spec)?;
        if expected.is_some() {
            return fault(
                "the right answer to a message is that message; leave out the expected body",
            );
        }
        if !body.is_empty() && asked.message_bytes.is_some() {
            return fault(
                "the message is given, and message_bytes says its size; give one of them",
            );
        }
        let silent = body.is_empty() && asked.message_bytes.is_none();
        if asked.mode == Mode::Connect && !silent {
            return fault("connect: a message has no effect; leave it out");
        }
        let (message, letter) = words(&asked, body)?;
        let kind = kind(&message);
        let fields: Vec<(&str, &str)> = spec
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let upgrade = Upgrade::new(place.authority(), place.path(), &fields)
            .map_err(|reserved| SpecError(format!("headers: {reserved}")))?;
        Ok(Conversation {
            mode: asked.mode,
            at_once: asked.at_once(spec.is_open()),
            connections: spec.connections,
            upgrade,
            kind,
            message,
            letter,
            check_every: spec.compares_every(0),
            seed: spec.seed,
        })
    }

    /// Bytes of each message; None: none is sent.
    pub fn message_bytes(&self) -> Option<u64> {
        match self.mode {
            Mode::Echo => Some(self.message.len() as u64),
            Mode::Broadcast => Some(self.letter.size() as u64),
            Mode::Connect => None,
        }
    }

    /// Opening handshakes of thread `thread`: no two connections of a load have one key.
    fn upgrade(&self, thread: u64) -> Upgrade {
        self.upgrade.clone().seeded(self.seed ^ thread << 32)
    }

    fn limit(&self) -> u64 {
        self.message.len() as u64 + MOST_SURPLUS
    }

    /// The mask of all frames: one that is fixed for the load is as good as any, and costs nothing.
    fn mask(&self) -> [u8; 4] {
        (self.seed as u32 | 0x0101_0101).to_ne_bytes()
    }

    /// What one worker sends and awaits, in mode echo.
    pub fn echo(&self) -> echo::Ask {
        echo::Ask::new(self.kind, &self.message, self.mask(), self.check_every)
    }

    /// The transport of mode echo.
    pub fn sockets<T: ByteTransport>(&self, inner: T, slots: usize, thread: u64) -> WebSocket<T> {
        WebSocket::new(inner, slots, self.upgrade(thread), self.limit())
    }

    /// What one worker asks, in mode connect.
    pub fn connect(&self, thread: u64) -> connect::Ask {
        connect::Ask::new(&mut self.upgrade(thread))
    }

    /// The transport of mode broadcast.
    pub fn room<T: ByteTransport, C: Clock>(&self, inner: T, clock: C) -> Room<T, C> {
        let plan = room::Plan {
            members: self.connections as usize,
            slots: self.at_once as usize,
            letter: self.letter.clone(),
            upgrade: self.upgrade(0),
            limit: self.limit(),
            mask: self.mask(),
        };
        Room::new(inner, clock, plan)
    }
}

/// The message, and the letter it makes in a room.
fn words(asked: &WebSocketSpec, body: &[u8]) -> Result<(Vec<u8>, Letter), SpecError> {
    let Some(size) = asked.message_bytes else {
        let message = if body.is_empty() { GREETING } else { body };
        return Ok((message.to_vec(), Letter::new(kind(message), message)));
    };
    let size = size as usize;
    if asked.mode == Mode::Broadcast && size < DIGITS {
        return Err(SpecError(format!(
            "message_bytes: a message to a room carries its number, so it has {DIGITS} bytes at least"
        )));
    }
    Ok((vec![b'x'; size], Letter::of_size(size)))
}

fn kind(message: &[u8]) -> Kind {
    match std::str::from_utf8(message) {
        Ok(_) => Kind::Text,
        Err(_) => Kind::Binary,
    }
}
