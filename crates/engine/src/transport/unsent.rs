//! What a socket did not take at once.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
use std::sync::Arc;

use super::Sending;

/// The rest of something that is going out.
pub struct Unsent {
    bytes: Bytes,
    /// How much of it is out.
    sent: usize,
}

enum Bytes {
    /// A request, shared by all that send it.
    Shared(Arc<[u8]>),
    /// Bytes gathered for this connection alone.
    Own(Vec<u8>),
}

impl Unsent {
    /// A request of which `sent` bytes are out.
    pub fn shared(request: &Arc<[u8]>, sent: usize) -> Unsent {
        Unsent {
            bytes: Bytes::Shared(request.clone()),
            sent,
        }
    }

    /// Bytes of which `sent` are out.
    pub fn own(bytes: Vec<u8>, sent: usize) -> Unsent {
        Unsent {
            bytes: Bytes::Own(bytes),
            sent,
        }
    }

    /// Lets more bytes follow, and takes them away.
    pub fn follow(&mut self, more: &mut Vec<u8>) {
        match &mut self.bytes {
            Bytes::Own(bytes) => bytes.append(more),
            Bytes::Shared(request) => {
                let mut bytes = request[self.sent..].to_vec();
                bytes.append(more);
                *self = Unsent::own(bytes, 0);
            }
        }
    }

    fn rest(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Shared(request) => &request[self.sent..],
            Bytes::Own(bytes) => &bytes[self.sent..],
        }
    }
}

/// Writes what is unsent until it is gone or the socket is full.
pub fn write(stream: &TcpStream, unsent: &mut Option<Unsent>) -> Sending {
    while let Some(rest) = unsent {
        if rest.rest().is_empty() {
            *unsent = None;
            break;
        }
        match write_some(stream, rest.rest()) {
            Ok(0) => return Sending::Pending,
            Ok(count) => rest.sent += count,
            // The peer is gone, but an answer may lie in our receive buffer: the read will tell.
            Err(_) => {
                *unsent = None;
                return Sending::Pending;
            }
        }
    }
    Sending::Done
}

/// One write: how much the socket took, 0 where it is full.
#[inline]
pub fn write_some(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            result => return result,
        }
    }
}

/// Sends bytes behind what is unsent, and takes them away.
pub fn send_own(stream: &TcpStream, unsent: &mut Option<Unsent>, bytes: &mut Vec<u8>) -> Sending {
    if let Some(before) = unsent {
        before.follow(bytes);
        return Sending::Pending;
    }
    match write_some(stream, bytes) {
        Ok(count) if count == bytes.len() => {
            bytes.clear();
            Sending::Done
        }
        Ok(count) => {
            *unsent = Some(Unsent::own(std::mem::take(bytes), count));
            // More may fit by now, and an edge that came between would not come again.
            write(stream, unsent)
        }
        // As in `write`.
        Err(_) => {
            bytes.clear();
            Sending::Pending
        }
    }
}
