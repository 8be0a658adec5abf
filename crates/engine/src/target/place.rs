//! Where a URL points, and whether that may be loaded.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use url::{Host, Position, Url};

use super::TargetError;
use crate::spec::SpecError;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    /// gRPC over HTTP/2; else HTTP/1.1.
    pub grpc: bool,
    /// HTTP/1.1 that becomes a WebSocket.
    pub websocket: bool,
    /// Over TLS.
    pub secure: bool,
}

impl Scheme {
    fn of(name: &str) -> Option<Scheme> {
        let secure = match name {
            "http" | "grpc" | "ws" => false,
            "https" | "grpcs" | "wss" => true,
            _ => return None,
        };
        Some(Scheme {
            grpc: name.starts_with("grpc"),
            websocket: name.starts_with("ws"),
            secure,
        })
    }

    /// As HTTP/2 names it.
    pub fn name(self) -> &'static str {
        if self.secure { "https" } else { "http" }
    }

    /// Where servers listen that say nothing else.
    fn port(self) -> u16 {
        if self.secure { 443 } else { 80 }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Place {
    /// What is spoken there.
    pub scheme: Scheme,
    url: Url,
}

impl Place {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Place, SpecError> {
        let fault = |why: &str| {
            Err(SpecError(format!(
                "url: {text:?} {why}; give http://host:port/path, grpc://host:port/package.Service/Method or ws://host:port/path"
            )))
        };
        let (name, rest) = text.split_once("://").unwrap_or((text, ""));
        let Some(scheme) = Scheme::of(&name.to_ascii_lowercase()) else {
            return match Url::parse(text) {
                Ok(_) => fault("is neither http, https, grpc, grpcs, ws nor wss"),
                Err(error) => fault(&format!("is not a URL ({error})")),
            };
        };
        // Hosts and ports are read by the rules of http, which a parser of URLs does not have for other schemes.
        let url = match Url::parse(&format!("{}://{rest}", scheme.name())) {
            Ok(url) => url,
            Err(error) => return fault(&format!("is not a URL ({error})")),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return fault("names no host");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return fault("carries a password; pass an Authorization header instead");
        }
        if url.port() == Some(0) {
            return fault("names port 0, where nothing can listen");
        }
        Ok(Place { scheme, url })
    }

    /// The host, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        let host = self.url.host_str().unwrap_or_default();
        host.trim_matches(['[', ']'])
    }

    /// Host and port as requests name them.
    pub fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Path and query.
    pub fn path(&self) -> &str {
        match &self.url[Position::BeforePath..Position::AfterQuery] {
            "" => "/",
            path => path,
        }
    }

    /// The address, if it may be loaded.
    pub fn locate(&self, allowed: &[String]) -> Result<SocketAddr, TargetError> {
        let host = self.host().to_owned();
        let port = self.url.port().unwrap_or(self.scheme.port());
        let named = allowed
            .iter()
            .any(|name| name.trim_matches(['[', ']']).eq_ignore_ascii_case(&host));
        let candidates: Vec<SocketAddr> = match self.url.host() {
            Some(Host::Ipv4(ip)) => vec![SocketAddr::new(IpAddr::V4(ip), port)],
            Some(Host::Ipv6(ip)) => vec![SocketAddr::new(IpAddr::V6(ip), port)],
            _ => (host.as_str(), port)
                .to_socket_addrs()
                .map_err(|source| TargetError::Unknown {
                    host: host.clone(),
                    source,
                })?
                .collect(),
        };
        if !named && !candidates.iter().all(|address| address.ip().is_loopback()) {
            return Err(TargetError::NotAllowed(host));
        }
        // `localhost` is often ::1 and 127.0.0.1 while a server listens on one of them: take the one that answers.
        let answering = candidates
            .iter()
            .filter(|_| candidates.len() > 1)
            .find(|address| {
                TcpStream::connect_timeout(address, Duration::from_millis(500)).is_ok()
            });
        answering
            .or(candidates.first())
            .copied()
            .ok_or_else(|| TargetError::Unknown {
                host,
                source: std::io::Error::other("it has no address"),
            })
    }
}
