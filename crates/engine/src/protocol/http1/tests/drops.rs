//! However the answers to several requests are cut, and whatever is dropped of them, they come to the same.

use super::super::{Ask, Exchange};
use crate::outcome::Outcome;
use crate::place::Place;
use crate::protocol::{Need, Progress, Protocol};
use crate::requests::{Draw, Requests};
use crate::spec::LoadSpec;
use proptest::prelude::*;
use serde_json::json;

const NEEDLE: &str = "needle";
const CHECK_EVERY: u64 = 3;

fn right() -> Vec<u8> {
    (0..600_u32).map(|at| b'a' + (at % 23) as u8).collect()
}

/// Three requests: of one any body is right, of one what has something in it, of one a whole known body.
fn ask() -> Ask {
    let right = String::from_utf8(right()).unwrap();
    let spec = json!({
        "url": "http://127.0.0.1:8000/", "duration_s": 1, "check_every": CHECK_EVERY,
        "mix": [
            {"name": "any", "path": "/a", "weight": 2},
            {"name": "has", "path": "/b", "expect_contains": NEEDLE},
            {"name": "is", "path": "/c", "weight": 2, "expect_body": {"text": right}}
        ]
    });
    let spec = LoadSpec::from_json(&spec.to_string()).unwrap();
    let place = Place::parse(&spec.url).unwrap();
    let requests = Requests::new(&spec, &place, b"", None).unwrap();
    Ask::drawn(&requests, Draw::new(&requests, &spec, 0), true, false)
}

/// An answer as the server writes it.
#[derive(Debug, Clone)]
struct Written {
    status: u16,
    body: Vec<u8>,
    chunked: bool,
}

impl Written {
    fn bytes(&self) -> Vec<u8> {
        let mut out = format!("HTTP/1.1 {} So\r\n", self.status).into_bytes();
        match self.chunked {
            false => out.extend(format!("Content-Length: {}\r\n\r\n", self.body.len()).bytes()),
            true => out.extend(b"Transfer-Encoding: chunked\r\n\r\n"),
        }
        if !self.chunked {
            out.extend(&self.body);
            return out;
        }
        for chunk in self.body.chunks(250) {
            out.extend(format!("{:x}\r\n", chunk.len()).bytes());
            out.extend(chunk);
            out.extend(b"\r\n");
        }
        out.extend(b"0\r\n\r\n");
        out
    }

    /// What it comes to as the answer to `which`, the content of its body compared or not.
    fn outcome(&self, which: usize, compared: bool) -> Outcome {
        let right = right();
        let is_right = match which {
            0 => true,
            1 => memchr::memmem::find(&self.body, NEEDLE.as_bytes()).is_some(),
            _ if compared => self.body == right,
            _ => self.body.len() == right.len(),
        };
        match (self.status, is_right) {
            (200, true) => Outcome::Ok,
            (200, false) => Outcome::WrongBody,
            _ => Outcome::BadStatus,
        }
    }
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let spoilt = (0..right().len()).prop_map(|at| {
        let mut body = right();
        body[at] ^= 1;
        body
    });
    let with_needle = (0_usize..3_000, 0_usize..300).prop_map(|(before, behind)| {
        [vec![b'-'; before], NEEDLE.into(), vec![b'-'; behind]].concat()
    });
    prop_oneof![
        Just(right()),
        spoilt,
        with_needle,
        prop::collection::vec(any::<u8>(), 0..5),
        (0_usize..20_000).prop_map(|bytes| vec![b'x'; bytes]),
    ]
}

fn written() -> impl Strategy<Value = Written> {
    let status = prop::sample::select(vec![200_u16, 200, 200, 404]);
    (status, body(), any::<bool>()).prop_map(|(status, body, chunked)| Written {
        status,
        body,
        chunked,
    })
}

/// How many of the next bytes may be dropped.
fn left(need: Need) -> u64 {
    match need {
        Need::NoneOf(left) => left,
        _ => 0,
    }
}

/// Plays an answer in pieces of these sizes, some of them dropped where they may be; what it comes to, and how many of its
/// bytes were dropped.
fn play(
    side: &mut Exchange,
    ask: &mut Ask,
    stream: &[u8],
    cuts: &[(usize, bool)],
) -> (Outcome, u64) {
    let (mut rest, mut dropped) = (stream, 0);
    for (size, drops) in cuts.iter().cycle() {
        let left = left(side.need(ask));
        let piece = &rest[..(*size).min(rest.len())];
        let answered = if *drops && left > 0 {
            dropped += piece.len() as u64;
            rest = &rest[piece.len()..];
            side.skip(piece.len() as u64, ask)
        } else {
            rest = &rest[piece.len()..];
            match side.feed(piece, ask).unwrap() {
                Progress::Done(answered) => Some(answered),
                _ => None,
            }
        };
        if let Some(answered) = answered {
            assert!(rest.is_empty(), "{} bytes after its end", rest.len());
            side.weigh(ask);
            return (Exchange::judge(&answered, ask, 0), dropped);
        }
        assert!(!rest.is_empty(), "it never ends");
    }
    unreachable!("there are cuts")
}

proptest! {
    #[test]
    fn answers_large_and_small_come_to_the_same_however_they_are_cut_and_whatever_is_dropped(
        answers in prop::collection::vec(written(), 1..12),
        cuts in prop::collection::vec((1_usize..4_000, any::<bool>()), 1..8),
    ) {
        let mut ask = ask();
        let mut side = Exchange::new();
        for (number, written) in (0_u64..).zip(&answers) {
            side.begin(&mut ask, number);
            let which = side.which().unwrap();
            let compared = number.is_multiple_of(CHECK_EVERY);
            let (outcome, dropped) = play(&mut side, &mut ask, &written.bytes(), &cuts);
            prop_assert_eq!(outcome, written.outcome(which, compared), "to {}: {:?}", which, written);
            let must_be_read = written.chunked || which == 1 || which == 2 && compared;
            prop_assert!(!(must_be_read && dropped > 0), "{} bytes of {:?} were not read", dropped, written);
        }
    }
}

#[test]
fn bytes_dropped_behind_an_answer_are_noticed() {
    let (mut ask, mut side) = (ask(), Exchange::new());
    let number = (0..)
        .find(|&number| asks(&mut side, &mut ask, number) == 0)
        .unwrap();
    side.begin(&mut ask, number);
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    assert!(matches!(side.feed(head, &ask), Ok(Progress::More)));
    assert_eq!(side.need(&ask), Need::NoneOf(1000));
    assert!(side.skip(999, &ask).is_none());
    let answered = side.skip(3, &ask).unwrap();
    assert_eq!(Exchange::judge(&answered, &ask, 0), Outcome::BadProtocol);
    let why = side.explain(&answered, &ask);
    assert!(why.starts_with("2 bytes more than the answer"), "{why}");
    assert!(!Exchange::is_reusable(&answered));
}

fn asks(side: &mut Exchange, ask: &mut Ask, number: u64) -> usize {
    side.begin(ask, number);
    side.which().unwrap()
}

#[test]
fn only_the_request_with_large_answers_is_bulky_and_only_where_nobody_looks() {
    let (mut ask, mut side) = (ask(), Exchange::new());
    let body = "x".repeat(100_000);
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{body}");
    let in_chunks = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n{body}\r\n0\r\n\r\n"
    );
    for (which, stream, bulk) in [(0, &in_chunks, 0), (1, &large, 0), (0, &large, 100_000)] {
        let number = (1..)
            .find(|&number| asks(&mut side, &mut ask, number) == which)
            .unwrap();
        assert_eq!(asks(&mut side, &mut ask, number), which);
        assert!(
            side.need(&ask) != Need::Head,
            "nothing large was dropped of {which} so far"
        );
        assert!(matches!(
            side.feed(stream.as_bytes(), &ask),
            Ok(Progress::Done(_))
        ));
        assert_eq!(side.weigh(&mut ask), bulk, "of {which}");
    }
    let bulky: Vec<(usize, bool)> = (0..50)
        .map(|number| {
            (
                asks(&mut side, &mut ask, number),
                side.need(&ask) == Need::Head,
            )
        })
        .collect();
    assert!(
        bulky
            .iter()
            .all(|(which, is_bulky)| (*which == 0) == *is_bulky),
        "{bulky:?}"
    );
}
