//! Who is loaded and with which bytes; a machine that is not this one only by name.

use crate::calls::Plan;
use crate::conversation::Conversation;
use crate::endpoint::Endpoint;
use crate::place::TargetError;
use crate::protocol::http2::Heads;
use crate::requests::Requests;
use crate::spec::{LoadSpec, SpecError, TransportChoice};

pub use crate::place::{Place, Scheme};
pub use crate::secure::Secure;

/// Where requests go and what they are.
#[derive(Debug)]
pub struct Target {
    /// Where every connection is made to.
    pub endpoint: Endpoint,
    /// How connections are encrypted, if they are.
    pub secure: Option<Secure>,
    /// See [`What`].
    pub what: What,
}

/// What is asked.
#[derive(Debug)]
pub enum What {
    /// HTTP requests.
    Http(Requests),
    /// The same over HTTP/2, and their heads.
    Http2(Requests, Vec<Heads>),
    /// A gRPC call.
    Grpc(Plan),
    /// Messages over WebSockets.
    WebSocket(Box<Conversation>),
}

impl Target {
    /// Checks the URL, finds the address and writes the request.
    pub fn new(
        spec: &LoadSpec,
        body: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<Target, TargetError> {
        let place = Place::parse(&spec.url)?;
        let endpoint = place.locate(spec)?;
        if let Some(sentence) = misfit(spec, place.scheme) {
            return fault(sentence);
        }
        if endpoint.is_unix() && spec.transport == TransportChoice::IoUring {
            return fault("transport: a unix socket is loaded over epoll; leave it at auto");
        }
        let secure = match place.scheme.secure {
            true => Some(Secure::new(spec, &place)?),
            false => None,
        };
        if place.scheme.grpc {
            let plan = Plan::new(spec, &place, &endpoint, secure.as_ref(), body, expected)?;
            return Ok(Target {
                endpoint,
                secure,
                what: What::Grpc(plan),
            });
        }
        if place.scheme.websocket {
            let said = Conversation::new(spec, &place, body, expected)?;
            let what = What::WebSocket(Box::new(said));
            return Ok(Target {
                endpoint,
                secure,
                what,
            });
        }
        let requests = Requests::new(spec, &place, body, expected)?;
        let what = match spec.http2 {
            false => What::Http(requests),
            true => {
                let heads = heads(&requests, place.scheme)?;
                What::Http2(requests, heads)
            }
        };
        Ok(Target {
            endpoint,
            secure,
            what,
        })
    }

    /// As results name what is spoken.
    pub fn protocol(&self) -> &'static str {
        match self.what {
            What::Http(_) => "http",
            What::Http2(..) => "http2",
            What::Grpc(_) => "grpc",
            What::WebSocket(_) => "websocket",
        }
    }

    /// The call, of a gRPC load.
    pub fn plan(&self) -> Option<&Plan> {
        match &self.what {
            What::Grpc(plan) => Some(plan),
            _ => None,
        }
    }

    /// The requests, where there are several and they have names.
    pub fn requests(&self) -> Option<&Requests> {
        match &self.what {
            What::Http(requests) | What::Http2(requests, _) if requests.are_named => Some(requests),
            _ => None,
        }
    }

    /// What is said, of a WebSocket load.
    pub fn conversation(&self) -> Option<&Conversation> {
        match &self.what {
            What::WebSocket(said) => Some(said),
            _ => None,
        }
    }
}

/// What is asked for of another protocol.
fn misfit(spec: &LoadSpec, scheme: Scheme) -> Option<&'static str> {
    if spec.grpc.is_some() && !scheme.grpc {
        Some("grpc: a call needs a URL that begins with grpc:// or grpcs://")
    } else if spec.websocket.is_some() && !scheme.websocket {
        Some("websocket: messages need a URL that begins with ws:// or wss://")
    } else if !spec.mix.is_empty() && (scheme.grpc || scheme.websocket) {
        Some("mix: several requests need a URL that begins with http:// or https://")
    } else if spec.expect_contains.is_some() && (scheme.grpc || scheme.websocket) {
        Some(
            "expect_contains: a body with something in it needs a URL that begins with http:// or https://",
        )
    } else if spec.cookies && (scheme.grpc || scheme.websocket) {
        Some("cookies: they need a URL that begins with http:// or https://")
    } else if spec.http2 && (scheme.grpc || scheme.websocket) {
        Some(
            "http2: gRPC is HTTP/2 by itself, and WebSockets are opened over HTTP/1.1; leave it out",
        )
    } else if spec.streams > 1 && !scheme.grpc && !spec.http2 {
        Some(
            "streams: a connection carries one request at a time; more at once need grpc:// or HTTP/2",
        )
    } else {
        None
    }
}

fn heads(requests: &Requests, scheme: Scheme) -> Result<Vec<Heads>, SpecError> {
    let all = requests.all.iter();
    all.map(|request| Heads::of(request, scheme.name()))
        .collect::<Result<_, _>>()
        .map_err(|fault| SpecError(format!("headers: {fault}")))
}

fn fault(sentence: &str) -> Result<Target, TargetError> {
    Err(SpecError(sentence.into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::http1::Lines;

    fn target(fields: &str, body: &[u8]) -> Result<Target, TargetError> {
        let json = format!(r#"{{"duration_s": 1, {fields}}}"#);
        Target::new(&LoadSpec::from_json(&json).unwrap(), body, None)
    }

    fn bytes(target: Target, keepalive: bool) -> Vec<u8> {
        match target.what {
            What::Http(requests) => Lines::new(requests.plain().unwrap(), keepalive)
                .fixed()
                .unwrap()
                .to_vec(),
            _ => panic!("that is no HTTP request"),
        }
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
    fn an_address_of_this_machine_that_is_not_loopback_is_called_that() {
        // A socket that goes nowhere knows the address that it would have.
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let own = socket
            .connect("192.0.2.1:9")
            .and_then(|()| socket.local_addr());
        let Ok(own) = own.map(|address| address.ip()) else {
            return; // a machine without a network has loopback only
        };
        if own.is_loopback() {
            return;
        }
        let refused = target(&format!(r#""url": "http://{own}:8000/""#), b"");
        assert!(
            matches!(&refused, Err(TargetError::NotLoopback(host)) if *host == own.to_string())
        );
        let named = format!(r#""url": "http://{own}:8000/", "allow_target": ["{own}"]"#);
        assert!(target(&named, b"").is_ok());
    }

    #[test]
    fn other_urls_are_refused_with_the_reason() {
        let rows = [
            ("ftp://127.0.0.1/", "neither http"),
            ("127.0.0.1:8000", "is not a URL"),
            (
                "http://us%65r:s%3Acret@127.0.0.1/a@b",
                "has a user or a password in it",
            ),
            ("http://user@127.0.0.1/", "\"http://…@127.0.0.1/\" has"),
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
    fn no_error_shows_a_user_or_a_password() {
        let basic = ["dXNlcjpzM2NyM3Q", "user", "s3cr3t"];
        for url in [
            "http://user:s3cr3t@127.0.0.1/",
            "HTTPS://user:s3cr3t@127.0.0.1/?a@b",
            "ws://user:s3cr3t@127.0.0.1:0/",
            "grpc://user:s3cr3t@127.0.0.1:99999/a.B/C",
            "http://user:pa/s3cr3t@127.0.0.1/",
            "http://user:s3cr3t@/",
            "http://user:s3cr3t@ /",
            "ftp://user:s3cr3t@127.0.0.1/",
            "user:s3cr3t@127.0.0.1",
            "http:user:s3cr3t@127.0.0.1/",
        ] {
            let error = target(&format!(r#""url": "{url}""#), b"").unwrap_err();
            for (shown, secret) in [error.to_string(), format!("{error:?}")]
                .iter()
                .flat_map(|shown| basic.map(|secret| (shown, secret)))
            {
                assert!(
                    !shown.replace("a user or a", "").contains(secret),
                    "{url}: {shown}"
                );
            }
        }
    }

    #[test]
    fn the_request_is_written_once_byte_for_byte() {
        let plain = target(r#""url": "http://127.0.0.1:8000/a?b=c#d""#, b"").unwrap();
        let agent = concat!("User-Agent: velodrome/", env!("CARGO_PKG_VERSION"));
        let wanted = format!("GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n{agent}\r\n\r\n");
        assert_eq!(bytes(plain, true), wanted.as_bytes());
        let upload = target(
            r#""url": "http://127.0.0.1", "method": "POST", "keepalive": false, "headers": [["host", "x"], ["USER-AGENT", "y"]]"#,
            b"abc",
        );
        let wanted = b"POST / HTTP/1.1\r\nhost: x\r\nUSER-AGENT: y\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc";
        assert_eq!(bytes(upload.unwrap(), false), wanted);
    }
}
