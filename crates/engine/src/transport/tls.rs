//! TLS over any transport of bytes.

mod session;

use std::io;
use std::sync::Arc;

use crate::clock::Nanos;
use crate::record::Connections;
use crate::target::Secure;

use super::{
    ByteTransport, Bytes, Event, Reading, Received, Sending, Stage, Standing, TcpInfo, Token,
    Transport,
};
use session::Session;

pub use session::explained;

/// See the module. `Connected` comes when the handshake is complete.
pub struct Tls<T> {
    inner: T,
    secure: Secure,
    sessions: Vec<Option<(u32, Session)>>,
    handshakes: Stage,
    below: Vec<Event>,
    /// Records on their way out.
    out: Vec<u8>,
    /// What was handed out last.
    plain: Vec<u8>,
}

impl<T: ByteTransport> Tls<T> {
    /// TLS over up to `slots` connections of `inner`.
    pub fn new(inner: T, secure: Secure, slots: usize) -> Tls<T> {
        Tls {
            inner,
            secure,
            sessions: (0..slots).map(|_| None).collect(),
            handshakes: Stage::new(slots),
            below: Vec::new(),
            out: Vec::new(),
            plain: Vec::new(),
        }
    }

    fn session(&mut self, token: Token) -> Option<&mut Session> {
        match self.sessions.get_mut(token.slot as usize) {
            Some(Some((generation, session))) if *generation == token.generation => Some(session),
            _ => None,
        }
    }

    fn seal(&mut self, token: Token, bytes: &[u8]) -> Sending {
        let mut out = std::mem::take(&mut self.out);
        if let Some(session) = self.session(token) {
            session.seal(bytes, &mut out);
        }
        let sending = self.inner.write(token, &mut out);
        self.out = out;
        sending
    }

    fn act(&mut self, event: Event, events: &mut Vec<Event>) {
        match event {
            Event::Connected(token) => {
                self.handshakes.begin(token.slot);
                self.seal(token, b"");
            }
            Event::NotConnected(token, error) => {
                self.forget(token);
                events.push(Event::NotConnected(token, error));
            }
            Event::Readable(token, reading) => match self.session(token) {
                Some(session) if !session.open => self.shake(token, reading, events),
                _ => events.push(Event::Readable(token, reading)),
            },
            other => events.push(other),
        }
    }

    /// Goes on with a handshake.
    fn shake(&mut self, token: Token, mut reading: Reading, events: &mut Vec<Event>) {
        loop {
            let result = match self.pull(token, &mut reading) {
                Received::Piece(()) => Ok(()),
                Received::Nothing => break,
                Received::Closed => Err(io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "the server closed the connection in the TLS handshake",
                )),
                Received::Failed(error) => Err(error),
            };
            if let Err(error) = result {
                self.forget(token);
                return events.push(Event::NotConnected(token, error));
            }
        }
        let Some(session) = self.session(token) else {
            return;
        };
        if session.is_shaken() {
            session.open = true;
            if let Err(error) = self.agreed(token) {
                self.forget(token);
                return events.push(Event::NotConnected(token, error));
            }
            self.handshakes.end(token.slot);
            events.push(Event::Connected(token));
            let waits = self
                .session(token)
                .is_some_and(|session| !session.ready.is_empty() || session.closed);
            if waits {
                events.push(Event::Readable(token, Reading::default()));
            }
        }
    }

    fn agreed(&mut self, token: Token) -> io::Result<()> {
        let spoken = self.secure.spoken;
        self.session(token)
            .map_or(Ok(()), |session| session.agrees_on(spoken))
    }

    /// Decrypts the next piece from below into what is ready.
    fn pull(&mut self, token: Token, reading: &mut Reading) -> Received<()> {
        let Some(Some((_, session))) = self.sessions.get_mut(token.slot as usize) else {
            return Received::Nothing;
        };
        let out = &mut self.out;
        let opened = match self.inner.received(token, reading) {
            Received::Piece(records) => session.open_records(records, out),
            Received::Nothing => return Received::Nothing,
            Received::Closed => return Received::Closed,
            Received::Failed(error) => return Received::Failed(error),
        };
        if !out.is_empty() {
            self.inner.write(token, out);
        }
        match opened {
            Ok(()) => Received::Piece(()),
            Err(error) => Received::Failed(error),
        }
    }

    fn forget(&mut self, token: Token) {
        if self.session(token).is_some() {
            self.sessions[token.slot as usize] = None;
        }
    }
}

impl<T: ByteTransport> Transport for Tls<T> {
    type Medium = Bytes;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        let session = Session::new(&self.secure.config, &self.secure.name)?;
        self.inner.connect(token)?;
        self.sessions[token.slot as usize] = Some((token.generation, session));
        Ok(())
    }

    fn send(&mut self, token: Token, request: &Arc<[u8]>) -> Sending {
        self.seal(token, request)
    }

    fn received(&mut self, token: Token, reading: &mut Reading) -> Received<&[u8]> {
        self.plain.clear();
        loop {
            let Some(session) = self.session(token) else {
                return Received::Nothing;
            };
            if !session.ready.is_empty() {
                let mut ready = std::mem::take(&mut session.ready);
                std::mem::swap(&mut self.plain, &mut ready);
                // The emptied buffer is used for what comes next.
                if let Some(session) = self.session(token) {
                    session.ready = ready;
                }
                return Received::Piece(&self.plain);
            }
            if session.closed {
                return Received::Closed;
            }
            match self.pull(token, reading) {
                Received::Piece(()) => {}
                Received::Nothing => return Received::Nothing,
                Received::Closed => return Received::Closed,
                Received::Failed(error) => return Received::Failed(error),
            }
        }
    }

    fn close(&mut self, token: Token) {
        let mut out = std::mem::take(&mut self.out);
        if let Some(session) = self.session(token) {
            session.farewell(&mut out);
            self.inner.write(token, &mut out);
            self.forget(token);
        }
        self.out = out;
        self.inner.close(token);
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let mut below = std::mem::take(&mut self.below);
        self.inner.poll(now, until, &mut below)?;
        for event in below.drain(..) {
            self.act(event, events);
        }
        self.below = below;
        Ok(())
    }

    fn delay(&self, token: Token, limit_s: f64) -> String {
        match &self.sessions[token.slot as usize] {
            Some((_, session)) if !session.is_shaken() => {
                format!("no connection, or no TLS handshake on it, within {limit_s} s")
            }
            _ => self.inner.delay(token, limit_s),
        }
    }

    fn census(&self, of_slots: Connections) -> Connections {
        self.inner.census(of_slots)
    }

    fn standing(&self) -> Standing {
        Standing {
            tls: Some(self.handshakes.times()),
            ..self.inner.standing()
        }
    }

    fn look(&self, number: usize) -> Option<TcpInfo> {
        self.inner.look(number)
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}

impl<T: ByteTransport> ByteTransport for Tls<T> {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        let sending = self.seal(token, bytes);
        bytes.clear();
        sending
    }
}
