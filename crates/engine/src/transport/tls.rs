//! TLS over any transport of bytes.

use std::io;
use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, Error};

use crate::clock::Nanos;
use crate::protocol::{Bytes, Payload};
use crate::secure::Secure;
use crate::transport::{
    ByteTransport, Event, Need, Probe, Reading, Received, Sending, Stage, Standing, Summary,
    TcpInfo, Token, Transport,
};

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
                Received::Nothing | Received::Dropped(_) => break,
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
        let opened = match self.inner.receive(token, reading, Need::All) {
            Received::Piece(records) => session.open_records(records, out),
            Received::Nothing | Received::Dropped(_) => return Received::Nothing,
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

    fn send(&mut self, token: Token, request: &Payload) -> Sending {
        self.seal(token, request.bytes())
    }

    fn receive(&mut self, token: Token, reading: &mut Reading, _: Need) -> Received<&[u8]> {
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
                Received::Nothing | Received::Dropped(_) => return Received::Nothing,
                Received::Closed => return Received::Closed,
                Received::Failed(error) => return Received::Failed(error),
            }
        }
    }

    /// Nothing of what is encrypted can be dropped unseen.
    fn answered(&mut self, _: u64) {}

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
}

impl<T: ByteTransport> Probe for Tls<T> {
    /// Of records, and not of what is in them: a request's answer may be in the middle of one.
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
        match &self.sessions[token.slot as usize] {
            Some((_, session)) if !session.is_shaken() => {
                format!("no connection, or no TLS handshake on it, within {limit_s} s")
            }
            _ => self.inner.why_absent(token, limit_s),
        }
    }

    fn summary(&self) -> Summary {
        let below = self.inner.summary();
        Summary {
            standing: Standing {
                tls: Some(self.handshakes.times()),
                ..below.standing
            },
            ..below
        }
    }
}

impl<T: ByteTransport> ByteTransport for Tls<T> {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        let sending = self.seal(token, bytes);
        bytes.clear();
        sending
    }
}

/// See the module.
pub struct Session {
    tls: ClientConnection,
    /// Decrypted, and not yet asked for.
    pub ready: Vec<u8>,
    /// The peer has said that nothing follows.
    pub closed: bool,
    /// The handshake is complete and was told.
    pub open: bool,
}

impl Session {
    /// A connection before its handshake.
    pub fn new(config: &Arc<ClientConfig>, name: &ServerName<'static>) -> io::Result<Session> {
        let mut tls =
            ClientConnection::new(config.clone(), name.clone()).map_err(io::Error::other)?;
        // What is written is taken away at once, so no bound is needed, and none may cut a large request.
        tls.set_buffer_limit(None);
        Ok(Session {
            tls,
            ready: Vec::new(),
            closed: false,
            open: false,
        })
    }

    /// Whether the handshake is complete.
    pub fn is_shaken(&self) -> bool {
        !self.tls.is_handshaking()
    }

    /// The handshake is complete: whether what is spoken is what was agreed on, if anything was.
    pub fn agrees_on(&self, spoken: &[u8]) -> io::Result<()> {
        match self.tls.alpn_protocol() {
            Some(agreed) if agreed != spoken => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the server chose {} of the protocols offered (ALPN), and {} is spoken: leave --alpn out",
                    String::from_utf8_lossy(agreed),
                    String::from_utf8_lossy(spoken)
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Encrypts.
    pub fn seal(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        // Without a bound, memory takes every byte.
        let _ = self.tls.writer().write_all(bytes);
        self.owed(out);
    }

    /// What the connection itself has to say: its handshake, alerts, new keys.
    pub fn owed(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() {
            if self.tls.write_tls(out).is_err() {
                return;
            }
        }
    }

    /// The last thing said.
    pub fn farewell(&mut self, out: &mut Vec<u8>) {
        self.tls.send_close_notify();
        self.owed(out);
    }

    /// Takes what came and appends what it says to `ready`; what is to be sent because of it to `out`.
    pub fn open_records(&mut self, mut records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        while !records.is_empty() {
            self.tls.read_tls(&mut records)?;
            let state = self.tls.process_new_packets();
            self.owed(out);
            let state = state.map_err(|error| explained(&error, self.open))?;
            self.closed |= state.peer_has_closed();
            let waiting = state.plaintext_bytes_to_read();
            if waiting > 0 {
                let from = self.ready.len();
                self.ready.resize(from + waiting, 0);
                self.tls.reader().read_exact(&mut self.ready[from..])?;
            }
        }
        Ok(())
    }
}

/// Why a certificate is not trusted.
fn distrusted(fault: &CertificateError) -> String {
    match fault {
        CertificateError::UnknownIssuer => "nobody that is trusted here has issued it".into(),
        // Somebody that is trusted has the issuer's name, and a key of another kind.
        CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "nobody that is trusted here has issued it, only one of that name".into()
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "it is signed in a way that is not known here".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it names another host".into()
        }
        other => format!("{other}"),
    }
}

/// A failure of TLS, with the cure where there is one. `open`: the handshake was complete.
#[cold]
pub fn explained(error: &Error, open: bool) -> io::Error {
    let (kind, why) = match error {
        Error::InvalidCertificate(fault) => {
            let fault = distrusted(fault);
            let cure = "name its authority with --cacert FILE, or accept any with --insecure";
            let kind = io::ErrorKind::PermissionDenied;
            (
                kind,
                format!("the server's certificate is not trusted: {fault}; {cure}"),
            )
        }
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => (
            io::ErrorKind::InvalidData,
            "the server does not speak what is asked over TLS here (no ALPN protocol in common)"
                .into(),
        ),
        Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::HandshakeFailure,
        ) => (
            io::ErrorKind::PermissionDenied,
            format!(
                "the server ended the handshake ({error}): does it want a certificate (--cert FILE --key FILE)?"
            ),
        ),
        Error::AlertReceived(AlertDescription::ProtocolVersion) => (
            io::ErrorKind::InvalidData,
            "the server speaks no version of TLS that is allowed here (--tls-min)".into(),
        ),
        Error::InvalidMessage(_) if !open => (
            io::ErrorKind::InvalidData,
            format!("the server does not speak TLS here ({error}): is it http:// or grpc://?"),
        ),
        _ => (io::ErrorKind::InvalidData, format!("TLS: {error}")),
    };
    io::Error::new(kind, why)
}
