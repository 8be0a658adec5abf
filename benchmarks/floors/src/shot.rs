//! What a floor is to do, and its connections.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::str::FromStr;

use crate::system::now;

/// The request, as short as the engine's own for such a target.
pub const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:65000\r\nUser-Agent: velodrome/0.1.0\r\n\r\n";
/// The same, on a connection for itself.
pub const LAST_REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1:65000\r\nUser-Agent: velodrome/0.1.0\r\nConnection: close\r\n\r\n";

/// See the module.
pub struct Shot {
    pub target: SocketAddr,
    pub connections: usize,
    pub seconds: f64,
    /// Of a whole answer, its head included.
    pub bytes: usize,
    /// The one number more that some floors take.
    pub extra: Option<f64>,
}

impl Shot {
    /// Reads the words after the floor's name.
    pub fn read(words: &[&str]) -> io::Result<Shot> {
        Ok(Shot {
            target: word(words, 0)?,
            connections: word(words, 1)?,
            seconds: word(words, 2)?,
            bytes: word(words, 3)?,
            extra: words.get(4).map(|_| word(words, 4)).transpose()?,
        })
    }

    /// When it ends, if it begins now.
    pub fn end(&self) -> u64 {
        now() + (self.seconds * 1e9) as u64
    }

    /// All its connections, made one after the other, then non-blocking.
    pub fn connect(&self) -> io::Result<Vec<TcpStream>> {
        (0..self.connections)
            .map(|_| {
                let stream = TcpStream::connect(self.target)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(stream)
            })
            .collect()
    }
}

/// The word at a place, read as what is wanted there.
pub fn word<T: FromStr>(words: &[&str], at: usize) -> io::Result<T> {
    let text = words
        .get(at)
        .ok_or_else(|| io::Error::other(format!("word {} is missing", at + 1)))?;
    text.parse()
        .map_err(|_| io::Error::other(format!("word {}, '{text}', cannot be read", at + 1)))
}
