//! Transport for systems without epoll, over the `polling` crate (kqueue on macOS).
//!
//! One-shot registrations renewed after each wait: slower than epoll's edges, the same events.

use std::io;
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use polling::{Event as Readiness, Events, Poller};

use super::unsent::Unsent;
use super::{
    ByteTransport, Event, Reading, Received, Sending, Stage, Standing, TURN, Token, Transport,
    unsent,
};
use crate::clock::Nanos;
use crate::endpoint::{Endpoint, Sockets};
use crate::protocol::Bytes;

const READ_BUFFER: usize = 512 * 1024;

struct Link {
    stream: TcpStream,
    generation: u32,
    connecting: bool,
    unsent: Option<Unsent>,
}

/// See the module. Named like the transport it stands in for.
pub struct Epoll {
    sockets: Sockets,
    poller: Poller,
    ready: Events,
    links: Vec<Option<Link>>,
    connects: Stage,
    buffer: Box<[u8]>,
}

impl Epoll {
    /// A transport for up to `slots` connections to `target`.
    pub fn new(target: impl Into<Endpoint>, slots: usize) -> io::Result<Epoll> {
        Ok(Epoll {
            sockets: Sockets::new(target, slots),
            poller: Poller::new()?,
            ready: Events::new(),
            links: (0..slots).map(|_| None).collect(),
            connects: Stage::new(slots),
            buffer: vec![0; READ_BUFFER].into(),
        })
    }

    fn link(&mut self, token: Token) -> Option<&mut Link> {
        let link = self.links.get_mut(token.slot as usize)?.as_mut()?;
        (link.generation == token.generation).then_some(link)
    }

    fn renew(&self, slot: usize) -> io::Result<()> {
        let Some(Some(link)) = self.links.get(slot) else {
            return Ok(());
        };
        let writable = link.connecting || link.unsent.is_some();
        self.poller
            .modify(&link.stream, Readiness::new(slot, true, writable))
    }

    fn translate(&mut self, ready: Readiness, events: &mut Vec<Event>) {
        let Some(Some(link)) = self.links.get_mut(ready.key) else {
            return;
        };
        let token = Token {
            slot: ready.key as u32,
            generation: link.generation,
        };
        if link.connecting {
            match link.stream.take_error() {
                Ok(Some(error)) => {
                    events.push(Event::NotConnected(token, error));
                    return;
                }
                _ if !ready.writable => return,
                _ => link.connecting = false,
            }
            self.connects.end(token.slot);
            events.push(Event::Connected(token));
        } else if ready.writable
            && link.unsent.is_some()
            && unsent::write(&link.stream, &mut link.unsent) == Sending::Done
        {
            events.push(Event::Sent(token));
        }
        if ready.readable {
            events.push(Event::Readable(
                token,
                Reading {
                    more: true,
                    ..Reading::default()
                },
            ));
        }
    }
}

impl Transport for Epoll {
    type Medium = Bytes;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        self.connects.begin(token.slot);
        let stream = TcpStream::from(self.sockets.connect()?);
        // SAFETY: the stream stays in `links` until `close` deletes it from the poller.
        unsafe {
            self.poller
                .add(&stream, Readiness::all(token.slot as usize))?
        };
        let link = Link {
            stream,
            generation: token.generation,
            connecting: true,
            unsent: None,
        };
        self.links[token.slot as usize] = Some(link);
        Ok(())
    }

    fn send(&mut self, token: Token, request: &Arc<[u8]>) -> Sending {
        let Some(link) = self.link(token) else {
            return Sending::Pending;
        };
        link.unsent = Some(Unsent::shared(request, 0));
        let sending = unsent::write(&link.stream, &mut link.unsent);
        if sending == Sending::Pending {
            // A registration that cannot be renewed belongs to a broken connection, which its time-out ends.
            let _ = self.renew(token.slot as usize);
        }
        sending
    }

    fn received(&mut self, token: Token, reading: &mut Reading) -> Received<&[u8]> {
        let Some(link) = self.links[token.slot as usize].as_ref() else {
            return Received::Nothing;
        };
        // The poller tells again of what is left unread.
        reading.more &= reading.buffer < TURN;
        reading.buffer += 1;
        while reading.more {
            match (&link.stream).read(&mut self.buffer) {
                Ok(0) => return Received::Closed,
                Ok(count) => return Received::Piece(&self.buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => reading.more = false,
                Err(error) => return Received::Failed(error),
            }
        }
        Received::Nothing
    }

    fn close(&mut self, token: Token) {
        if self.link(token).is_some()
            && let Some(link) = self.links[token.slot as usize].take()
        {
            // Dropping the stream closes it whether or not the poller still knew it.
            let _ = self.poller.delete(&link.stream);
        }
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        self.ready.clear();
        self.poller.wait(
            &mut self.ready,
            Some(Duration::from_nanos(until.saturating_sub(now))),
        )?;
        let ready: Vec<Readiness> = self.ready.iter().collect();
        for readiness in ready {
            self.translate(readiness, events);
            self.renew(readiness.key)?;
        }
        Ok(())
    }

    fn standing(&self) -> Standing {
        Standing {
            connect: Some(self.connects.times()),
            tls: None,
        }
    }

    fn name(&self) -> &'static str {
        "polling"
    }
}

impl ByteTransport for Epoll {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        let Some(link) = self.link(token) else {
            return Sending::Pending;
        };
        let sending = unsent::send_own(&link.stream, &mut link.unsent, bytes);
        if sending == Sending::Pending {
            // As in `send`.
            let _ = self.renew(token.slot as usize);
        }
        sending
    }
}
