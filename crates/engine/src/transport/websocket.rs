//! WebSockets over any transport of bytes: each connection shakes hands before it counts as connected.
//!
//! Pings are answered and goodbyes said here; what passes up and down is messages.

use std::io;

use crate::clock::Nanos;
use crate::protocol::websocket::{
    Event as SessionEvent, Kind, Piece, Session, Upgrade, WebSocketError,
};
use crate::protocol::{Messages, Payload};
use crate::transport::{
    ByteTransport, Event, Need, Probe, Reading, Received, Sending, Summary, TcpInfo, Token,
    Transport,
};

/// The code of a goodbye that means nothing but that (RFC 6455, section 7.4.1).
const NORMAL: u16 = 1000;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is none, or it is being made.
    Absent,
    /// The answer to the opening handshake is awaited.
    Shaking,
    Open,
}

struct Link {
    generation: u32,
    stage: Stage,
    session: Session,
    /// Why it ended, told when all that came before was read.
    fault: Option<WebSocketError>,
}

/// See the module.
pub struct WebSocket<T: ByteTransport> {
    inner: T,
    upgrade: Upgrade,
    /// Most bytes of one message.
    limit: u64,
    links: Vec<Link>,
    /// Pieces that came in one segment, until they are asked for.
    stash: Stash,
    /// What a session says on its own.
    out: Vec<u8>,
    below: Vec<Event>,
}

impl<T: ByteTransport> WebSocket<T> {
    /// Up to `slots` WebSockets over `inner`, each opened with a request of `upgrade`; messages have `limit` bytes at
    /// most.
    pub fn new(inner: T, slots: usize, upgrade: Upgrade, limit: u64) -> WebSocket<T> {
        let link = || Link {
            generation: 0,
            stage: Stage::Absent,
            session: Session::new(limit),
            fault: None,
        };
        WebSocket {
            inner,
            upgrade,
            limit,
            links: (0..slots).map(|_| link()).collect(),
            stash: Stash::default(),
            out: Vec::new(),
            below: Vec::new(),
        }
    }

    /// Sends a frame that is made anew each time; takes it away.
    pub fn write(&mut self, token: Token, frame: &mut Vec<u8>) -> Sending {
        self.inner.write(token, frame)
    }

    fn link(&mut self, token: Token) -> Option<&mut Link> {
        let link = self.links.get_mut(token.slot as usize)?;
        (link.generation == token.generation).then_some(link)
    }

    fn stage(&mut self, token: Token) -> Stage {
        self.link(token).map_or(Stage::Absent, |link| link.stage)
    }

    fn act(&mut self, event: Event, events: &mut Vec<Event>) {
        match event {
            Event::Connected(token) => {
                let Some(link) = self.links.get_mut(token.slot as usize) else {
                    return;
                };
                if link.generation != token.generation {
                    return;
                }
                link.stage = Stage::Shaking;
                link.session.open(&mut self.upgrade, &mut self.out);
                self.inner.write(token, &mut self.out);
            }
            Event::Readable(token, reading) if self.stage(token) == Stage::Shaking => {
                events.push(match self.shake(token, reading) {
                    Ok(false) => return,
                    Ok(true) => Event::Connected(token),
                    Err(error) => Event::NotConnected(token, error),
                });
            }
            // The request of a handshake has gone out.
            Event::Sent(token) if self.stage(token) != Stage::Open => {}
            event => events.push(event),
        }
    }

    /// Reads the answer to the handshake; whether it was the right one. Messages that come with it are greetings of
    /// the server, and not asked for: they are passed over.
    fn shake(&mut self, token: Token, mut reading: Reading) -> io::Result<bool> {
        let link = &mut self.links[token.slot as usize];
        let mut open = false;
        let shaken = loop {
            let fed = match self.inner.receive(token, &mut reading, Need::All) {
                Received::Piece(bytes) => link.session.feed(bytes, &mut self.out, |event| {
                    open |= event == SessionEvent::Open;
                }),
                Received::Nothing | Received::Dropped(_) => break Ok(open),
                Received::Closed => link.session.eof(),
                Received::Failed(error) => break Err(error),
            };
            if let Err(error) = fed {
                break Err(fault(&error));
            }
        };
        if open {
            link.stage = Stage::Open;
        }
        self.say(token);
        shaken
    }

    /// Sends what a session has to say on its own.
    fn say(&mut self, token: Token) {
        if !self.out.is_empty() {
            self.inner.write(token, &mut self.out);
        }
    }
}

/// The end of a load is no accident: servers that are left without a goodbye fill their logs with tracebacks.
impl<T: ByteTransport> Drop for WebSocket<T> {
    fn drop(&mut self) {
        for slot in 0..self.links.len() {
            let generation = self.links[slot].generation;
            if self.links[slot].stage == Stage::Open {
                self.close(Token {
                    slot: slot as u32,
                    generation,
                });
            }
        }
    }
}

impl<T: ByteTransport> Transport for WebSocket<T> {
    type Medium = Messages;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        self.links[token.slot as usize] = Link {
            generation: token.generation,
            stage: Stage::Absent,
            session: Session::new(self.limit),
            fault: None,
        };
        self.inner.connect(token)
    }

    #[inline]
    fn send(&mut self, token: Token, frame: &Payload) -> Sending {
        self.inner.send(token, frame)
    }

    #[inline]
    fn receive(&mut self, token: Token, reading: &mut Reading, _: Need) -> Received<Piece<'_>> {
        while self.stash.is_empty() {
            let link = &mut self.links[token.slot as usize];
            if let Some(error) = link.fault.take() {
                return Received::Failed(fault(&error));
            }
            let (session, stash) = (&mut link.session, &mut self.stash);
            let fed = match self.inner.receive(token, reading, Need::All) {
                Received::Piece(bytes) => session.feed(bytes, &mut self.out, |event| {
                    if let SessionEvent::Data(piece) = event {
                        stash.keep(piece);
                    }
                }),
                Received::Closed => match session.eof() {
                    Ok(()) => return Received::Closed,
                    Err(error) => Err(error),
                },
                Received::Nothing | Received::Dropped(_) => return Received::Nothing,
                Received::Failed(error) => return Received::Failed(error),
            };
            link.fault = fed.err();
            self.say(token);
        }
        // It is not empty here.
        self.stash.next().map_or(Received::Nothing, Received::Piece)
    }

    fn answered(&mut self, bulk: u64) {
        self.inner.answered(bulk);
    }

    fn close(&mut self, token: Token) {
        // Nobody reads what is left of its last segment.
        self.stash.clear();
        let Some(link) = self.links.get_mut(token.slot as usize) else {
            return;
        };
        if link.generation == token.generation && link.stage == Stage::Open {
            link.session.close(NORMAL, &mut self.out);
            link.stage = Stage::Absent;
            self.say(token);
        }
        self.inner.close(token);
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let mut below = std::mem::take(&mut self.below);
        let polled = self.inner.poll(now, until, &mut below);
        for event in below.drain(..) {
            self.act(event, events);
        }
        self.below = below;
        polled
    }
}

impl<T: ByteTransport> Probe for WebSocket<T> {
    fn arrived(&self) -> Option<Nanos> {
        None
    }

    fn tcp_info(&self, number: usize) -> Option<TcpInfo> {
        self.inner.tcp_info(number)
    }

    fn round_trip(&self, token: Token) -> Option<Nanos> {
        self.inner.round_trip(token)
    }

    fn why_absent(&self, token: Token, limit_s: f64) -> String {
        match self.links.get(token.slot as usize).map(|link| link.stage) {
            Some(Stage::Shaking) => format!(
                "the server took the connection and did not answer the opening handshake within {limit_s} s"
            ),
            _ => self.inner.why_absent(token, limit_s),
        }
    }

    fn summary(&self) -> Summary {
        self.inner.summary()
    }
}

/// What a server did against WebSocket, or how it closed, as the worker is told it.
fn fault(error: &WebSocketError) -> io::Error {
    let kind = match error {
        WebSocketError::NotUpgraded { .. } => io::ErrorKind::Unsupported,
        WebSocketError::Closed { .. }
        | WebSocketError::ClosedInHandshake
        | WebSocketError::ClosedWithoutGoodbye => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error.to_string())
}

struct Kept {
    kind: Kind,
    /// Where its bytes end among all.
    until: usize,
    end: bool,
}

/// See the module. Emptied for each segment, so its memory is that of the largest.
#[derive(Default)]
struct Stash {
    pieces: Vec<Kept>,
    bytes: Vec<u8>,
    /// How many were asked for, and how many bytes they had.
    read: usize,
    passed: usize,
}

impl Stash {
    /// Whether all that is kept was asked for.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.read == self.pieces.len()
    }

    pub fn keep(&mut self, piece: Piece<'_>) {
        if self.is_empty() {
            self.clear();
        }
        self.bytes.extend_from_slice(piece.bytes);
        self.pieces.push(Kept {
            kind: piece.kind,
            until: self.bytes.len(),
            end: piece.end,
        });
    }

    /// The oldest that was not asked for.
    #[inline]
    pub fn next(&mut self) -> Option<Piece<'_>> {
        let kept = self.pieces.get(self.read)?;
        let from = std::mem::replace(&mut self.passed, kept.until);
        self.read += 1;
        Some(Piece {
            kind: kept.kind,
            bytes: &self.bytes[from..kept.until],
            end: kept.end,
        })
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.bytes.clear();
        (self.read, self.passed) = (0, 0);
    }
}
