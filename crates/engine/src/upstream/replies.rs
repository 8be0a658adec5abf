//! Every answer a third party can give, written once at the start.

use super::spec::Body;

/// Which answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reply {
    pub status: Status,
    pub persistence: Persistence,
    /// The request was HEAD: no body.
    pub head_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Right,
    /// 500, the share that was asked for.
    Fault,
    /// 400, and the connection ends: what came was not a request.
    Refusal,
}

/// What the answer says of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persistence {
    /// Nothing: HTTP/1.1 goes on by itself.
    Implied,
    /// `keep-alive`, to an HTTP/1.0 client that asked for it; `ab` waits for the word.
    Told,
    Close,
}

#[derive(Debug)]
struct Written {
    bytes: Vec<u8>,
    head: usize,
}

#[derive(Debug)]
pub(super) struct Replies {
    /// Status by persistence.
    written: [[Written; 3]; 3],
}

const PLAIN: &str = "text/plain";

/// What fills an answer: the same bytes every service of velodrome answers.
const FILLER: &[u8] = b"<h1>Hello, World!</h1>";

impl Replies {
    /// `body` is that of a right answer, of the content type `kind`.
    pub fn new(body: &Body, kind: &str) -> Self {
        let right: Vec<u8> = match body {
            Body::Filler(size) => FILLER.iter().copied().cycle().take(*size).collect(),
            Body::Told(bytes) => bytes.clone(),
        };
        let row = |status: &str, kind: &str, body: &[u8]| {
            ["", "Connection: keep-alive\r\n", "Connection: close\r\n"]
                .map(|line| write(status, kind, line, body))
        };
        Self {
            written: [
                row("200 OK", kind, &right),
                row(
                    "500 Internal Server Error",
                    PLAIN,
                    b"the simulated third party fails this share of requests\n",
                ),
                row(
                    "400 Bad Request",
                    PLAIN,
                    b"not a request this third party can read\n",
                ),
            ],
        }
    }

    pub fn bytes(&self, reply: Reply) -> &[u8] {
        let written = &self.written[reply.status as usize][reply.persistence as usize];
        if reply.head_only {
            &written.bytes[..written.head]
        } else {
            &written.bytes
        }
    }
}

fn write(status: &str, kind: &str, connection: &str, body: &[u8]) -> Written {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{connection}\r\n"
    );
    let mut bytes = head.into_bytes();
    let head = bytes.len();
    bytes.extend_from_slice(body);
    Written { bytes, head }
}
