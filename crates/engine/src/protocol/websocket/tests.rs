//! The examples of RFC 6455, what a server does wrong, and streams cut in any way.

mod faults;
mod splits;
mod table;

use super::frame::{self, CONTINUATION, TEXT};
use super::*;

/// A server's frame: not masked.
fn frame(opcode: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opcode | if last { 0x80 } else { 0 }];
    match payload.len() {
        length @ 0..=125 => frame.push(length as u8),
        length @ 126..=65_535 => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

fn text(message: &str) -> Vec<u8> {
    frame(TEXT, true, message.as_bytes())
}

fn answer(key: &[u8]) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accept(key)
    )
}

/// What was heard: whole messages, and the bytes of one that is not.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Heard {
    open: bool,
    messages: Vec<(Kind, Vec<u8>)>,
    rest: Vec<u8>,
}

impl Heard {
    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Open => self.open = true,
            Event::Data(Piece { kind, bytes, end }) => {
                self.rest.extend_from_slice(bytes);
                if end {
                    self.messages.push((kind, std::mem::take(&mut self.rest)));
                }
            }
        }
    }
}

struct Play {
    session: Session,
    out: Vec<u8>,
    heard: Heard,
}

impl Play {
    /// A session that awaits the answer to its request, and the answer.
    fn opening() -> (Play, String) {
        let mut upgrade = Upgrade::new("127.0.0.1:8000", "/a?b", &[("X-Test", "1")]).unwrap();
        let mut play = Play {
            session: Session::new(1 << 20),
            out: Vec::new(),
            heard: Heard::default(),
        };
        let key = play.session.open(&mut upgrade, &mut play.out);
        (play, answer(&key))
    }

    fn open() -> Play {
        let (mut play, answer) = Play::opening();
        play.feed(answer.as_bytes()).unwrap();
        assert!(play.heard.open && play.session.is_open());
        play.out.clear();
        play
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), WebSocketError> {
        let Play {
            session,
            out,
            heard,
        } = self;
        session.feed(bytes, out, |event| heard.hear(event))
    }

    fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// A client's control frame, unmasked: opcode and payload.
fn control(mut bytes: Vec<u8>) -> (u8, Vec<u8>) {
    let mask = [bytes[2], bytes[3], bytes[4], bytes[5]];
    let mut payload = bytes.split_off(6);
    assert_eq!(usize::from(bytes[1] & 0x7f), payload.len());
    frame::masked(&mut payload, mask);
    (bytes[0], payload)
}
