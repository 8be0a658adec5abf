//! Who is loaded and with which bytes; a machine that is not this one only by name.

use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use url::{Host, Url};

use crate::spec::{LoadSpec, SpecError};

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
    /// The name has no address.
    #[error("{host} cannot be looked up: {source}")]
    Unknown {
        /// As written in the URL.
        host: String,
        /// What the resolver said.
        source: std::io::Error,
    },
}

/// Where requests go and what they are, byte for byte.
#[derive(Clone, Debug)]
pub struct Target {
    /// The address every connection is made to.
    pub address: SocketAddr,
    /// Head and body of the request.
    pub request: Vec<u8>,
    /// Whether the method is HEAD, whose answers have no body.
    pub head: bool,
    /// Whether a request may be sent again when it met the close of an idle connection (RFC 9110, section 9.2.2).
    pub idempotent: bool,
}

impl Target {
    /// Checks the URL, finds the address and writes the request.
    pub fn new(spec: &LoadSpec, body: &[u8]) -> Result<Target, TargetError> {
        let url = parse(&spec.url)?;
        Ok(Target {
            address: locate(&url, &spec.allow_target)?,
            request: compose(spec, &url, body),
            head: spec.method == "HEAD",
            idempotent: ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]
                .contains(&spec.method.as_str()),
        })
    }
}

fn parse(text: &str) -> Result<Url, SpecError> {
    let fault = |why: &str| {
        Err(SpecError(format!(
            "url: {text:?} {why}; give http://host:port/path"
        )))
    };
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return fault(&format!("is not a URL ({error})")),
    };
    if url.scheme() != "http" {
        return fault("is not plain HTTP");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return fault("names no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return fault("carries a password; pass an Authorization header instead");
    }
    if url.port() == Some(0) {
        return fault("names port 0, where nothing can listen");
    }
    Ok(url)
}

fn locate(url: &Url, allowed: &[String]) -> Result<SocketAddr, TargetError> {
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port().unwrap_or(80);
    let named = allowed.iter().any(|name| {
        name.trim_matches(['[', ']'])
            .eq_ignore_ascii_case(host.trim_matches(['[', ']']))
    });
    let candidates: Vec<SocketAddr> = match url.host() {
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
        .find(|address| TcpStream::connect_timeout(address, Duration::from_millis(500)).is_ok());
    answering
        .or(candidates.first())
        .copied()
        .ok_or_else(|| TargetError::Unknown {
            host,
            source: std::io::Error::other("it has no address"),
        })
}

fn compose(spec: &LoadSpec, url: &Url, body: &[u8]) -> Vec<u8> {
    let given = |name: &str| {
        spec.headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let mut head = format!("{} {path} HTTP/1.1\r\n", spec.method);
    if !given("host") {
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        head += &format!("Host: {authority}\r\n");
    }
    if !given("user-agent") {
        head += concat!("User-Agent: velodrome/", env!("CARGO_PKG_VERSION"), "\r\n");
    }
    for (name, value) in &spec.headers {
        head += &format!("{name}: {value}\r\n");
    }
    // RFC 9110, section 8.6: a method that anticipates content tells its length even when that is 0.
    if !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&spec.method.as_str()) {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    if !spec.keepalive {
        head += "Connection: close\r\n";
    }
    head += "\r\n";
    let mut request = head.into_bytes();
    request.extend_from_slice(body);
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(fields: &str, body: &[u8]) -> Result<Target, TargetError> {
        let json = format!(r#"{{"duration_s": 1, {fields}}}"#);
        Target::new(&LoadSpec::from_json(&json).unwrap(), body)
    }

    #[test]
    fn only_this_machine_is_loaded_unless_another_is_named() {
        for url in [
            "http://127.0.0.1:8000/",
            "http://127.9.9.9/",
            "http://[::1]:81/x",
        ] {
            assert!(target(&format!(r#""url": "{url}""#), b"").is_ok(), "{url}");
        }
        for url in [
            "http://10.2.3.4/",
            "http://[2001:db8::1]/",
            "http://0.0.0.0/",
            "http://[::ffff:10.0.0.1]/",
        ] {
            let refused = target(&format!(r#""url": "{url}""#), b"");
            assert!(matches!(refused, Err(TargetError::NotAllowed(_))), "{url}");
        }
        assert!(
            target(
                r#""url": "http://10.2.3.4/", "allow_target": ["10.2.3.4"]"#,
                b""
            )
            .is_ok()
        );
        assert!(
            target(
                r#""url": "http://[2001:db8::1]/", "allow_target": ["2001:db8::1"]"#,
                b""
            )
            .is_ok()
        );
        assert!(
            target(
                r#""url": "http://10.2.3.4/", "allow_target": ["10.2.3.5"]"#,
                b""
            )
            .is_err()
        );
    }

    #[test]
    fn other_urls_are_refused_with_the_reason() {
        let rows = [
            ("https://127.0.0.1/", "plain HTTP"),
            ("127.0.0.1:8000", "is not a URL"),
            ("http://user:secret@127.0.0.1/", "password"),
            ("http://127.0.0.1:0/", "port 0"),
            ("http://127.0.0.1:99999/", "is not a URL"),
            ("", "is not a URL"),
        ];
        for (url, wanted) in rows {
            let error = target(&format!(r#""url": "{url}""#), b"")
                .unwrap_err()
                .to_string();
            assert!(error.contains(wanted), "{url}: {error}");
        }
    }

    #[test]
    fn the_request_is_written_once_byte_for_byte() {
        let plain = target(r#""url": "http://127.0.0.1:8000/a?b=c#d""#, b"").unwrap();
        let agent = concat!("User-Agent: velodrome/", env!("CARGO_PKG_VERSION"));
        let wanted = format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{agent}\r\n\r\n");
        assert_eq!(plain.request, wanted.as_bytes());
        let upload = target(
            r#""url": "http://127.0.0.1", "method": "POST", "keepalive": false, "headers": [["host", "x"], ["USER-AGENT", "y"]]"#,
            b"abc",
        );
        let wanted = b"POST / HTTP/1.1\r\nhost: x\r\nUSER-AGENT: y\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        assert_eq!(upload.unwrap().request, wanted);
    }
}
