//! What the session makes of streams of frames: by table, cut in any way, and from servers no one would write.

mod floods;
mod splits;
mod table;

use proptest::prelude::*;

use crate::outcome::Outcome;
use crate::place::Place;
use crate::protocol::http2::frame::{ACK, END_HEADERS, END_STREAM, Kind};
use crate::protocol::http2::*;
use crate::protocol::{Progress, Protocol};
use crate::requests::{Draw, Requests};
use crate::spec::LoadSpec;

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
enum Seen {
    Head(u32, u16, GrpcStatus, Vec<u8>, bool),
    Data(u32, Vec<u8>, bool),
    Trailers(u32, GrpcStatus, Vec<u8>),
    Reset(u32, u32),
    Refused(u32),
    Malformed(u32, &'static str),
}

fn hear(heard: &mut Vec<Seen>, tag: u32, event: StreamEvent<'_>) {
    let event = match event {
        StreamEvent::Head {
            status, grpc, end, ..
        } => Seen::Head(tag, status, grpc.status, grpc.message.to_vec(), end),
        StreamEvent::Data { bytes, end } => match heard.last_mut() {
            Some(Seen::Data(before, joined, ended)) if *before == tag && !*ended => {
                joined.extend_from_slice(bytes);
                *ended = end;
                return;
            }
            _ => Seen::Data(tag, bytes.to_vec(), end),
        },
        StreamEvent::Trailers { grpc } => Seen::Trailers(tag, grpc.status, grpc.message.to_vec()),
        StreamEvent::Reset { code } => Seen::Reset(tag, code),
        StreamEvent::Refused => Seen::Refused(tag),
        StreamEvent::Malformed { why } => Seen::Malformed(tag, why),
    };
    heard.push(event);
}

/// A session whose server has sent its SETTINGS.
struct Play {
    session: Session,
    out: Vec<u8>,
    heard: Vec<Seen>,
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

/// Pieces of a body, each a frame of its own.
type Body<'b> = &'b [&'b [u8]];

fn ask(method: &str) -> PlainAsk {
    let spec = format!(
        r#"{{"url": "http://127.0.0.1:8000/a", "duration_s": 1, "http2": true, "method": "{method}"}}"#
    );
    let spec = LoadSpec::from_json(&spec).unwrap();
    let place = Place::parse(&spec.url).unwrap();
    let requests = Requests::new(&spec, &place, b"", None).unwrap();
    let heads: Vec<_> = requests
        .all
        .iter()
        .map(|request| Heads::of(request, "http").unwrap())
        .collect();
    PlainAsk::new(&requests, &heads, Draw::new(&requests, &spec, 0))
}

/// What a request of this method comes to when its stream, the first, is answered with these pieces of frames.
fn come_to<'p>(method: &str, pieces: impl IntoIterator<Item = &'p [u8]>) -> (Outcome, String) {
    let (mut play, mut ask, mut plain) = (Play::new(&[]), ask(method), Plain::new());
    let request = plain.begin(&mut ask, 0).clone();
    play.session
        .begin(0, &request.head.unwrap(), b"", true, &mut play.out)
        .unwrap();
    let mut ended = None;
    for piece in pieces {
        let fed = play.session.feed(piece, &mut play.out, |_, event| {
            let end = match plain.feed(event, &ask) {
                Ok(Progress::More) => return,
                Ok(Progress::Done(answer)) => (Plain::judge(&answer, &ask, 0), String::new()),
                Ok(other) => panic!("{other:?}"),
                Err(fault) => (fault.outcome, fault.why),
            };
            assert!(ended.replace(end).is_none(), "it ended twice");
        });
        fed.unwrap();
    }
    // However it ended, the connection goes on.
    assert_eq!((play.session.in_flight(), play.session.room()), (0, 100));
    ended.unwrap()
}

/// A head of this status with fields of this name, then data, of which the last ends the stream.
fn answer(status: &str, lengths: &[&str], body: Body) -> Vec<u8> {
    let mut fields = vec![(":status", status)];
    fields.extend(lengths.iter().map(|length| ("content-length", *length)));
    let mut bytes = headers(1, &fields, body.is_empty());
    for (number, piece) in body.iter().enumerate() {
        bytes.extend(data(1, piece, number + 1 == body.len()));
    }
    bytes
}

#[test]
fn a_body_is_as_long_as_its_head_tells() {
    let five: Body = &[b"fi", b"", b"ve!"];
    let rows: &[(&str, &str, &[&str], Body)] = &[
        ("GET", "200", &[], five),
        ("GET", "200", &["5"], five),
        ("GET", "200", &["05, 5"], five),
        ("GET", "200", &["5", " 5 "], five),
        ("GET", "200", &["0"], &[]),
        ("GET", "200", &["0"], &[b""]),
        ("HEAD", "200", &["5"], &[]),
        ("HEAD", "200", &["many"], &[]),
        ("GET", "204", &["5"], &[]),
    ];
    for (method, status, lengths, body) in rows {
        let came = come_to(method, [answer(status, lengths, body).as_slice()]);
        assert_eq!(came.0, Outcome::Ok, "{lengths:?}: {}", came.1);
    }
    // Right by its length, and wrong otherwise.
    let came = come_to("GET", [answer("304", &["5"], &[]).as_slice()]);
    assert_eq!(came.0, Outcome::BadStatus);
    // Of an interim head it tells nothing, and trailers come too late for it.
    let mut bytes = headers(1, &[(":status", "103"), ("content-length", "9")], false);
    bytes.extend(headers(1, &[(":status", "200")], false));
    bytes.extend(data(1, b"four", false));
    bytes.extend(headers(1, &[("content-length", "5")], true));
    assert_eq!(come_to("GET", [bytes.as_slice()]).0, Outcome::Ok);
}

#[test]
fn a_body_of_another_length_is_malformed() {
    let five: Body = &[b"fi", b"ve!"];
    let rows: &[(&str, &[&str], Body, &str)] = &[
        (
            "200",
            &["6"],
            five,
            "is 6, and its body ended after 5 bytes",
        ),
        (
            "200",
            &["4"],
            five,
            "is 4, and its body ended after 5 bytes",
        ),
        ("200", &["5"], &[], "is 5, and its body ended after 0 bytes"),
        (
            "500",
            &["0"],
            five,
            "is 0, and its body ended after 5 bytes",
        ),
        ("200", &["+5"], five, "is not one number"),
        ("200", &[""], five, "is not one number"),
        ("200", &["5, 6"], five, "is not one number"),
        ("200", &["6", "5"], five, "is not one number"),
        ("200", &["x", "5"], five, "is not one number"),
        ("200", &["99999999999999999999"], five, "is not one number"),
    ];
    for (status, lengths, body, why) in rows {
        let came = come_to("GET", [answer(status, lengths, body).as_slice()]);
        assert_eq!(came.0, Outcome::BadProtocol, "{lengths:?}");
        let told = format!("the answer is not HTTP/2: its content-length {why}");
        assert_eq!(came.1, told, "{lengths:?}");
    }
}

proptest! {
    #[test]
    fn an_answer_is_right_just_when_its_body_is_as_long_as_told(
        body in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..40), prop::option::of(any::<u8>())), 0..6),
        off in prop_oneof![Just(0), -3_i64..4],
        told in any::<bool>(),
        trailers in any::<bool>(),
        sizes in prop::collection::vec(1_usize..30, 1..6),
    ) {
        let came: usize = body.iter().map(|(bytes, _)| bytes.len()).sum();
        let length = (came as i64 + off).max(0) as usize;
        let text = length.to_string();
        let mut fields = vec![(":status", "200")];
        if told {
            fields.push(("content-length", &text));
        }
        let mut stream = headers(1, &fields, body.is_empty() && !trailers);
        for (number, (bytes, padding)) in body.iter().enumerate() {
            let last = number + 1 == body.len() && !trailers;
            let mut payload: Vec<u8> = padding.iter().copied().collect();
            payload.extend_from_slice(bytes);
            payload.resize(payload.len() + usize::from(padding.unwrap_or(0)), 0);
            let flags = if last { END_STREAM } else { 0 } | padding.map_or(0, |_| frame::PADDED);
            stream.extend(frame(Kind::DATA, flags, 1, &payload));
        }
        if trailers {
            stream.extend(headers(1, &[("x", "y")], true));
        }
        let wanted = match !told || length == came {
            true => Outcome::Ok,
            false => Outcome::BadProtocol,
        };
        prop_assert_eq!(come_to("GET", [stream.as_slice()]).0, wanted);
        let (mut pieces, mut rest) = (Vec::new(), stream.as_slice());
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(come_to("GET", pieces).0, wanted);
    }
}
