//! What its own word of its length makes of an answer: by table, and however its body is cut.

use super::*;
use crate::outcome::Outcome;
use crate::protocol::{Fed, Protocol};
use crate::requests::{Draw, Requests};
use crate::spec::LoadSpec;
use crate::target::Place;
use proptest::prelude::*;

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
                Ok(Fed::More) => return,
                Ok(Fed::Done(answer)) => (Plain::judge(&answer, &ask, 0), String::new()),
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
