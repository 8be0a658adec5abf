//! What the session makes of streams of frames: by table, cut in any way, and from servers no one would write.

mod floods;
mod lengths;
mod sending;
mod splits;
mod table;

use super::frame::{self, ACK, END_HEADERS, END_STREAM, Kind};
use super::*;

/// A header block as a server writes it: fields spelt out, into the table of the reader.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        hpack::literal(&mut block, name.as_bytes(), value.as_bytes(), true);
    }
    block
}

fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::begin(&mut bytes, payload.len(), kind, flags, stream);
    bytes.extend_from_slice(payload);
    bytes
}

fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (setting, value) in settings {
        payload.extend_from_slice(&setting.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(Kind::SETTINGS, 0, 0, &payload)
}

fn headers(stream: u32, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
    let flags = END_HEADERS | if end { END_STREAM } else { 0 };
    frame(Kind::HEADERS, flags, stream, &block(fields))
}

fn data(stream: u32, bytes: &[u8], end: bool) -> Vec<u8> {
    frame(Kind::DATA, if end { END_STREAM } else { 0 }, stream, bytes)
}

fn window_update(stream: u32, by: u32) -> Vec<u8> {
    frame(Kind::WINDOW_UPDATE, 0, stream, &by.to_be_bytes())
}

fn get() -> RequestHead {
    RequestHead::new("GET", "http", "127.0.0.1:8000", "/a", &[("x-test", "1")]).unwrap()
}

/// What a caller heard: events with their data joined, each with its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Heard {
    Head(u32, u16, GrpcStatus, Vec<u8>, bool),
    Data(u32, Vec<u8>, bool),
    Trailers(u32, GrpcStatus, Vec<u8>),
    Reset(u32, u32),
    Refused(u32),
    Malformed(u32, &'static str),
}

fn hear(heard: &mut Vec<Heard>, tag: u32, event: StreamEvent<'_>) {
    let event = match event {
        StreamEvent::Head {
            status, grpc, end, ..
        } => Heard::Head(tag, status, grpc.status, grpc.message.to_vec(), end),
        StreamEvent::Data { bytes, end } => match heard.last_mut() {
            Some(Heard::Data(before, joined, ended)) if *before == tag && !*ended => {
                joined.extend_from_slice(bytes);
                *ended = end;
                return;
            }
            _ => Heard::Data(tag, bytes.to_vec(), end),
        },
        StreamEvent::Trailers { grpc } => Heard::Trailers(tag, grpc.status, grpc.message.to_vec()),
        StreamEvent::Reset { code } => Heard::Reset(tag, code),
        StreamEvent::Refused => Heard::Refused(tag),
        StreamEvent::Malformed { why } => Heard::Malformed(tag, why),
    };
    heard.push(event);
}

/// A session whose server has sent its SETTINGS.
struct Play {
    session: Session,
    out: Vec<u8>,
    heard: Vec<Heard>,
}

impl Play {
    fn new(of_server: &[(u16, u32)]) -> Play {
        Play::with(Settings::default(), of_server)
    }

    fn with(of_client: Settings, of_server: &[(u16, u32)]) -> Play {
        let mut play = Play {
            session: Session::new(of_client),
            out: Vec::new(),
            heard: Vec::new(),
        };
        play.session.open(&mut play.out);
        assert_eq!(play.session.room(), 0);
        play.feed(&settings(of_server)).unwrap();
        assert!(play.session.is_ready());
        assert!(play.out.ends_with(&frame(Kind::SETTINGS, ACK, 0, &[])));
        play.out.clear();
        play
    }

    /// One with so many requests in flight, tags from 0.
    fn asking(requests: u32) -> Play {
        let mut play = Play::new(&[]);
        let head = get();
        for tag in 0..requests {
            play.session
                .begin(tag, &head, b"", true, &mut play.out)
                .unwrap();
            assert!(play.session.is_sent(tag));
        }
        play.out.clear();
        play
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), Http2Error> {
        let Play {
            session,
            out,
            heard,
        } = self;
        session.feed(bytes, out, |tag, event| hear(heard, tag, event))
    }

    fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}
