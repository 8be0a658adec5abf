//! One encrypted connection, sans I/O: records in, bytes out, and the other way round.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, Error};

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
