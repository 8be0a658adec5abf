//! Where a URL points, and whether that may be loaded.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use url::{Position, Url};

use crate::apart::apart;
use crate::endpoint::Endpoint;
use crate::spec::{LoadSpec, SpecError};

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

/// Behind a scheme: what follows is no host but a socket in the file system, its slashes written as %2F.
const UNIX: &str = "+unix";

impl Scheme {
    fn of(name: &str) -> Option<Scheme> {
        let name = name.strip_suffix(UNIX).unwrap_or(name);
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

/// A name server that has not answered by now is not waited for; resolvers try each of theirs for 5 s, and again.
const LOOKUP: Duration = Duration::from_secs(10);
/// Of the addresses of a name so many are tried; a name of this machine has two.
const MOST_TRIED: usize = 8;

/// See the module.
#[derive(Clone, Debug)]
pub struct Place {
    /// What is spoken there.
    pub scheme: Scheme,
    url: Url,
    /// Of `http+unix://%2Frun%2Fserver.sock/path`: the socket. The host is then `localhost`.
    socket: Option<PathBuf>,
}

impl Place {
    /// Reads a URL.
    pub fn parse(text: &str) -> Result<Place, SpecError> {
        let fault = |why: &str| {
            Err(SpecError(format!(
                "url: {:?} {why}; give http://host:port/path, grpc://host:port/package.Service/Method or ws://host:port/path",
                without_user(text)
            )))
        };
        let (name, rest) = text.split_once("://").unwrap_or((text, ""));
        let Some(scheme) = Scheme::of(&name.to_ascii_lowercase()) else {
            return match Url::parse(text) {
                Ok(_) => fault("is neither http, https, grpc, grpcs, ws nor wss"),
                Err(error) => fault(&format!("is not a URL ({error})")),
            };
        };
        let (socket, rest) = match name.to_ascii_lowercase().ends_with(UNIX) {
            false => (None, rest.to_owned()),
            true => {
                let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
                let Some(path) = path_of(&rest[..end]) else {
                    return fault("names no socket: write http+unix://%2Frun%2Fserver.sock/path");
                };
                (Some(path), format!("localhost{}", &rest[end..]))
            }
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
            return Err(SpecError(format!(
                "url: {:?} has a user or a password in it, which a URL shows to whoever sees it; leave them out and give -H 'Authorization: Basic …', with what this prints: printf %s 'USER:PASSWORD' | base64",
                without_user(text)
            )));
        }
        if url.port() == Some(0) {
            return fault("names port 0, where nothing can listen");
        }
        Ok(Place {
            scheme,
            url,
            socket,
        })
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

    /// Where connections are made to, if that may be loaded: what matters is the address that is connected to.
    pub fn locate(&self, spec: &LoadSpec) -> Result<Endpoint, TargetError> {
        if let Some(path) = self.unix(spec)? {
            let endpoint = Endpoint::unix(path).map_err(|error| {
                SpecError(format!(
                    "unix: {} cannot be a socket: {error}",
                    path.display()
                ))
            });
            return Ok(endpoint?);
        }
        let mut place = (self.host().to_owned(), self.port());
        for rule in &spec.connect_to {
            if let Some(other) = Elsewhere::parse(rule)?.of(&place.0, place.1) {
                place = other;
                break;
            }
        }
        let (host, port) = place;
        let named = |name: &String| name.trim_matches(['[', ']']).eq_ignore_ascii_case(&host);
        let named = spec.allow_target.iter().any(named);
        let candidates = match addresses(&host, port) {
            Ok(found) => found,
            Err(source) => return Err(TargetError::Unknown { host, source }),
        };
        if !named && !candidates.iter().all(|address| address.ip().is_loopback()) {
            let own = candidates.iter().all(|address| is_own(address.ip()));
            return Err(match own {
                true => TargetError::NotLoopback(host),
                false => TargetError::NotAllowed(host),
            });
        }
        // `localhost` is often ::1 and 127.0.0.1 while a server listens on one of them: take the one that answers.
        let answering = candidates
            .iter()
            .filter(|_| candidates.len() > 1)
            .take(MOST_TRIED)
            .find(|address| {
                TcpStream::connect_timeout(address, Duration::from_millis(500)).is_ok()
            });
        let chosen = answering.or(candidates.first()).copied();
        chosen
            .map(Endpoint::from)
            .ok_or_else(|| TargetError::Unknown {
                host,
                source: io::Error::other("it has no address"),
            })
    }

    /// The socket in the file system, where one is named.
    fn unix<'a>(&'a self, spec: &'a LoadSpec) -> Result<Option<&'a Path>, SpecError> {
        let fault = |sentence: &str| Err(SpecError(sentence.into()));
        match (&self.socket, &spec.unix) {
            (Some(_), Some(_)) => fault("unix: the URL names a socket already; give one of them"),
            (None, None) => Ok(None),
            _ if !spec.connect_to.is_empty() => {
                fault("connect_to goes to an address, and unix to a socket; give one of them")
            }
            (in_url, given) => Ok(in_url.as_deref().or(given.as_deref())),
        }
    }

    fn port(&self) -> u16 {
        self.url.port().unwrap_or(self.scheme.port())
    }
}

/// The addresses of a host.
fn addresses(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let name = host.to_owned();
    let look = move || (name.as_str(), port).to_socket_addrs().map(Vec::from_iter);
    apart("look up", look, LOOKUP, || false)?.unwrap_or_else(|| {
        let why = format!("no name server answered within {} s", LOOKUP.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why))
    })
}

/// Whether an address is one of this machine's: others cannot be bound to.
fn is_own(address: IpAddr) -> bool {
    !address.is_unspecified() && UdpSocket::bind((address, 0)).is_ok()
}

/// A URL, or what was meant as one, without its user and password. Where those end only a right URL tells; of one that
/// is not, or that has an `@` in its password, more is hidden rather than less.
fn without_user(text: &str) -> String {
    let begin = text.find("://").map_or(0, |at| at + 3);
    match text.rfind('@') {
        Some(end) if end >= begin => format!("{}…@{}", &text[..begin], &text[end + 1..]),
        _ => text.to_owned(),
    }
}

/// `%2Ftmp%2Fserver.sock` as a path.
fn path_of(text: &str) -> Option<PathBuf> {
    let path = String::from_utf8(decoded(text)?).ok();
    path.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// What stands for the bytes `%xx` put in their places; None: that is no such text.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    Some(bytes)
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// In the URL.
    from: (Option<String>, Option<u16>),
    /// Connected to.
    to: (Option<String>, Option<u16>),
}

impl Elsewhere {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Elsewhere, SpecError> {
        let fault = |why: &str| {
            SpecError(format!(
                "connect_to: {text:?} {why}; write HOST:PORT:ADDRESS:PORT, an IPv6 address in brackets; what is left out means any, or the same"
            ))
        };
        let parts = parts(text);
        let [from_host, from_port, to_host, to_port] = parts.as_slice() else {
            return Err(fault("has not four parts"));
        };
        let port = |text: &str| match text {
            "" => Ok(None),
            text => match text.parse::<u16>() {
                Ok(port) if port > 0 => Ok(Some(port)),
                _ => Err(fault("has a port that is none")),
            },
        };
        let host = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(Elsewhere {
            from: (host(from_host), port(from_port)?),
            to: (host(to_host), port(to_port)?),
        })
    }

    /// Where connections to `host` and `port` go; None: the rule is about others.
    pub fn of(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let meant = self
            .from
            .0
            .as_ref()
            .is_none_or(|own| own.eq_ignore_ascii_case(host))
            && self.from.1.is_none_or(|own| own == port);
        meant.then(|| {
            (
                self.to.0.clone().unwrap_or_else(|| host.to_owned()),
                self.to.1.unwrap_or(port),
            )
        })
    }
}

/// What stands between colons that are not within brackets; the brackets are taken away.
fn parts(text: &str) -> Vec<String> {
    let (mut found, mut within) = (vec![String::new()], false);
    for letter in text.chars() {
        match letter {
            '[' => within = true,
            ']' => within = false,
            ':' if !within => found.push(String::new()),
            letter => found
                .last_mut()
                .expect("there is one from the start")
                .push(letter),
        }
    }
    found
}

/// Raised when a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The URL is not one this can load.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Not loopback and not named: load on somebody else's machine is an attack.
    #[error(
        "refusing to load {0}: not this machine. If you are allowed to load it: --allow-target {0}"
    )]
    NotAllowed(String),
    /// An address of this machine that others reach too: who serves there may be somebody else, by a tunnel or a proxy.
    #[error(
        "refusing to load {0}: an address of this machine, but not loopback. Load 127.0.0.1 if the server listens there too; if you are allowed to load {0}: --allow-target {0}"
    )]
    NotLoopback(String),
    /// The name has no address.
    #[error("{host} cannot be looked up: {source}")]
    Unknown {
        /// As written in the URL.
        host: String,
        /// What the resolver said.
        source: std::io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_what_it_is_about_and_where_that_goes() {
        let rows = [
            (
                "shop.test:443:127.0.0.1:8443",
                "shop.test",
                443,
                Some(("127.0.0.1", 8443)),
            ),
            (
                "SHOP.test:443:127.0.0.1:8443",
                "shop.test",
                443,
                Some(("127.0.0.1", 8443)),
            ),
            ("shop.test:443:127.0.0.1:8443", "shop.test", 80, None),
            ("shop.test:443:127.0.0.1:8443", "other.test", 443, None),
            ("::127.0.0.1:", "shop.test", 80, Some(("127.0.0.1", 80))),
            (":80::8080", "shop.test", 80, Some(("shop.test", 8080))),
            ("[::1]:80:[::1]:81", "::1", 80, Some(("::1", 81))),
        ];
        for (rule, host, port, wanted) in rows {
            let found = Elsewhere::parse(rule).unwrap().of(host, port);
            let wanted = wanted.map(|(host, port): (&str, u16)| (host.to_owned(), port));
            assert_eq!(found, wanted, "{rule}");
        }
        for bad in [
            "",
            "a:1:b",
            "a:1:b:c",
            "a:0:b:1",
            "a:1:b:2:c",
            "::1:80:127.0.0.1:80",
            "a:1:b:99999",
        ] {
            assert!(Elsewhere::parse(bad).is_err(), "{bad}");
        }
    }
}
