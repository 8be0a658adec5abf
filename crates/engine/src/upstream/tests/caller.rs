//! A plain blocking client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::upstream::Upstream;

pub(super) struct Caller(pub BufReader<TcpStream>);

pub(super) struct Heard {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Caller {
    pub fn of(upstream: &Upstream) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", upstream.port())).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    pub fn get(&mut self, path: &str) -> Heard {
        self.say(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        self.hear(true)
    }

    pub fn hear(&mut self, body: bool) -> Heard {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(
                self.0.read_line(&mut head).unwrap(),
                0,
                "closed after {head:?}"
            );
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length = length.map_or(0, |text| text.parse().unwrap());
        let mut bytes = vec![0; if body { length } else { 0 }];
        self.0.read_exact(&mut bytes).unwrap();
        Heard {
            status: head[9..12].parse().unwrap(),
            head,
            body: bytes,
        }
    }

    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }
}
