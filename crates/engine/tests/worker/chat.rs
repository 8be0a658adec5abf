//! A WebSocket server on the simulated clock, with framing of its own: it echoes, and it is a room.

use std::collections::BTreeMap;

use base64::Engine as _;
use velodrome_engine::clock::Nanos;
use velodrome_engine::protocol::websocket::accept;
use velodrome_engine::transport::Token;
use velodrome_engine::transport::simulated::{Act, Script};

/// What the server does with a message, and with a connection.
#[derive(Clone, Debug, Default)]
pub struct Says {
    /// What becomes of the connection itself.
    pub accept: Option<Act>,
    pub accept_after: Nanos,
    pub shake_after: Nanos,
    /// The answer to the handshake, instead of the right one.
    pub head: Option<&'static str>,
    /// Each member hears a message so long after it was said, and so much longer after the one before.
    pub after: Nanos,
    pub apart: Nanos,
    /// An echo is answered with these bytes.
    pub instead: Option<Vec<u8>>,
    /// Members that do not hear it.
    pub deaf: Vec<u32>,
    /// A member whose connection is closed instead.
    pub lose: Option<u32>,
    /// Said to all before it.
    pub noise: Vec<u8>,
    /// It is said twice.
    pub twice: bool,
    /// Its last byte is another.
    pub garbled: bool,
}

/// A server's frame: the only one of its message, and not masked.
pub fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() < 126);
    let mut frame = vec![0x80 | opcode, payload.len() as u8];
    frame.extend_from_slice(payload);
    frame
}

/// The server of a test; `says` tells what it does with message `n`, counted over all connections.
pub struct Chat<F> {
    says: F,
    messages: u64,
    /// Those who have shaken hands, by slot.
    members: BTreeMap<u32, Token>,
    elsewhere: Vec<(Nanos, Token, Act)>,
}

impl<F: FnMut(u64, Nanos) -> Says> Chat<F> {
    pub fn new(says: F) -> Chat<F> {
        Chat {
            says,
            messages: 0,
            members: BTreeMap::new(),
            elsewhere: Vec::new(),
        }
    }

    fn next(&mut self, now: Nanos) -> Says {
        let says = (self.says)(self.messages, now);
        self.messages += 1;
        says
    }

    fn shake(&mut self, token: Token, request: &str, now: Nanos) -> Vec<(Nanos, Act)> {
        let says = (self.says)(u64::MAX, now);
        let key = request
            .lines()
            .find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "))
            .expect("a key");
        let nonce = base64::engine::general_purpose::STANDARD.decode(key);
        assert_eq!(nonce.unwrap().len(), 16);
        let right = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            accept(key.as_bytes())
        );
        let head = says.head.map_or(right, str::to_owned);
        self.members.insert(token.slot, token);
        vec![(now + says.shake_after, Act::Send(head.into_bytes()))]
    }

    /// Sends on what one said to all.
    fn send_on(&mut self, message: &[u8], now: Nanos) {
        let says = self.next(now);
        for (&slot, &token) in &self.members {
            let at = now + says.after + says.apart * Nanos::from(slot);
            if says.lose == Some(slot) {
                self.elsewhere.push((at, token, Act::Close));
            } else if !says.deaf.contains(&slot) {
                let bytes = says.delivery(message);
                self.elsewhere.push((at, token, Act::Send(bytes)));
            }
        }
        if let Some(lost) = says.lose {
            self.members.remove(&lost);
        }
    }
}

impl Says {
    /// What one member hears.
    fn delivery(&self, message: &[u8]) -> Vec<u8> {
        let mut message = message.to_vec();
        if self.garbled
            && let Some(last) = message.last_mut()
        {
            *last ^= 1;
        }
        let heard = frame(1, &message).repeat(if self.twice { 2 } else { 1 });
        [self.noise.clone(), heard].concat()
    }
}

impl<F: FnMut(u64, Nanos) -> Says> Script for Chat<F> {
    fn connection(&mut self, _: Token, now: Nanos) -> Vec<(Nanos, Act)> {
        let says = (self.says)(u64::MAX, now);
        vec![(now + says.accept_after, says.accept.unwrap_or(Act::Accept))]
    }

    fn request(&mut self, _: Token, _: Nanos) -> Vec<(Nanos, Act)> {
        unreachable!("what is asked is read")
    }

    /// The requests of mode connect, and the messages of mode echo.
    fn read(&mut self, token: Token, request: &[u8], now: Nanos) -> Vec<(Nanos, Act)> {
        match request[0] {
            b'G' => self.bytes(token, request, now),
            0x81 => {
                let says = self.next(now);
                let bytes = says.instead.unwrap_or_else(|| frame(1, b"hello"));
                vec![(now + says.after, Act::Send(bytes))]
            }
            // A goodbye.
            0x88 => Vec::new(),
            other => panic!("{other:#x}"),
        }
    }

    fn bytes(&mut self, token: Token, bytes: &[u8], now: Nanos) -> Vec<(Nanos, Act)> {
        if bytes.starts_with(b"GET ") {
            let request = std::str::from_utf8(bytes).expect("a head");
            return self.shake(token, request, now);
        }
        assert_eq!(bytes[1] & 0x80, 0x80, "a client masks");
        let (head, mask) = (usize::from(bytes[1] & 0x7f), &bytes[2..6]);
        let message: Vec<u8> = bytes[6..]
            .iter()
            .zip(mask.iter().cycle())
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        assert_eq!(message.len(), head);
        match bytes[0] {
            0x81 => self.send_on(&message, now),
            // A pong, or a goodbye.
            0x88 | 0x8a => {}
            other => panic!("{other:#x}"),
        }
        Vec::new()
    }

    fn elsewhere(&mut self) -> Vec<(Nanos, Token, Act)> {
        std::mem::take(&mut self.elsewhere)
    }
}
