//! What a call comes to: by table, and however its messages are cut.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::outcome::{BodyCheck, Outcome};
use crate::protocol::http2::{GrpcStatus, GrpcTrailer, Length, StreamEvent};

fn head(status: u16) -> StreamEvent<'static> {
    StreamEvent::Head {
        status,
        length: Length::Untold,
        grpc: GrpcTrailer::default(),
        end: false,
    }
}

fn trailer(code: u32, message: &'static str) -> GrpcTrailer<'static> {
    GrpcTrailer {
        status: GrpcStatus::Code(code),
        message: message.as_bytes(),
    }
}

const fn trailers(grpc: GrpcTrailer<'static>) -> StreamEvent<'static> {
    StreamEvent::Trailers { grpc }
}

fn data(bytes: &[u8]) -> StreamEvent<'_> {
    StreamEvent::Data { bytes, end: false }
}

fn right(messages: &[&str]) -> Vec<Box<[u8]>> {
    messages
        .iter()
        .map(|message| message.as_bytes().into())
        .collect()
}

/// Plays events to a call; its end, and why it ended so.
fn play(events: &[StreamEvent], expected: &Expected, compare: bool) -> (Ended, String) {
    let mut call = Call::new();
    call.begin(compare);
    for event in events {
        match call.feed(*event, expected) {
            CallProgress::More => {}
            CallProgress::Done(ended) => return (ended, call.why(expected)),
            CallProgress::Refused => panic!("refused"),
        }
    }
    panic!("no end")
}

#[test]
fn a_call_comes_to_what_the_server_said() {
    let hello = frame(b"hello");
    let cut = &hello[..7];
    let bare = GrpcTrailer::default();
    let garbled = GrpcTrailer {
        status: GrpcStatus::Unreadable,
        message: b"",
    };
    let with = |grpc| StreamEvent::Head {
        status: 200,
        length: Length::Untold,
        grpc,
        end: true,
    };
    let ok = trailers(trailer(0, ""));
    let late = trailer(4, "Deadline%20Exceeded%0a");
    let rows: &[(&[StreamEvent], Outcome, &str)] = &[
        (
            &[head(200), data(&hello), ok],
            Outcome::Ok,
            "the call was right",
        ),
        (
            &[with(late)],
            Outcome::BadStatus,
            "grpc-status 4 DEADLINE_EXCEEDED: Deadline Exceeded\\n",
        ),
        (
            &[head(200), trailers(trailer(99, ""))],
            Outcome::BadStatus,
            "grpc-status 99 (no such code)",
        ),
        (
            &[head(200), data(cut), trailers(trailer(13, "x"))],
            Outcome::BadStatus,
            "grpc-status 13 INTERNAL: x",
        ),
        (
            &[StreamEvent::Head {
                status: 502,
                length: Length::Untold,
                grpc: bare,
                end: true,
            }],
            Outcome::BadStatus,
            "HTTP status 502 where 200 is right",
        ),
        (
            &[
                head(404),
                data(b"<html>"),
                StreamEvent::Data {
                    bytes: b"",
                    end: true,
                },
            ],
            Outcome::BadStatus,
            "HTTP status 404 where 200 is right",
        ),
        (
            &[StreamEvent::Head {
                status: 503,
                length: Length::Untold,
                grpc: trailer(14, "no"),
                end: true,
            }],
            Outcome::BadStatus,
            "HTTP status 503 where 200 is right, with grpc-status 14 UNAVAILABLE: no",
        ),
        (
            &[
                head(200),
                StreamEvent::Data {
                    bytes: &hello,
                    end: true,
                },
            ],
            Outcome::BadProtocol,
            "the answer ends without grpc-status",
        ),
        (
            &[head(200), trailers(bare)],
            Outcome::BadProtocol,
            "the answer ends without grpc-status",
        ),
        (
            &[with(garbled)],
            Outcome::BadProtocol,
            "the grpc-status of the answer is not a number",
        ),
        (
            &[head(200), data(cut), ok],
            Outcome::BadProtocol,
            "the answer ends after 2 of the 5 bytes of a message",
        ),
        (
            &[head(200), data(&hello[..3]), ok],
            Outcome::BadProtocol,
            "the answer ends within the prefix of a message",
        ),
        (
            &[head(200), ok],
            Outcome::WrongBody,
            "0 messages where 1 are right",
        ),
        (
            &[head(200), data(&hello), data(&hello), ok],
            Outcome::WrongBody,
            "2 messages where 1 are right",
        ),
        (
            &[head(200), StreamEvent::Reset { code: 2 }],
            Outcome::Reset,
            "the server reset the stream: INTERNAL_ERROR",
        ),
        (
            &[StreamEvent::Malformed {
                why: "its head has no :status",
            }],
            Outcome::BadProtocol,
            "the answer is not HTTP/2: its head has no :status",
        ),
    ];
    for (events, outcome, why) in rows {
        let (ended, said) = play(events, &Expected::unary(), true);
        assert_eq!(
            (ended.outcome, said.as_str(), ended.cancel),
            (*outcome, *why, false)
        );
    }
}

#[test]
fn a_compressed_message_ends_the_call_at_once() {
    let events = [head(200), data(&[1, 0, 0, 0, 1, 9])];
    let (ended, why) = play(&events, &Expected::unary(), false);
    assert_eq!((ended.outcome, ended.cancel), (Outcome::BadProtocol, true));
    assert!(why.contains("compressed"), "{why}");
    let last = [
        head(200),
        StreamEvent::Data {
            bytes: &[7, 0, 0, 0, 1, 9],
            end: true,
        },
    ];
    let (ended, why) = play(&last, &Expected::unary(), false);
    assert!(!ended.cancel && why.contains("flag 7"), "{why}");
}

#[test]
fn a_refused_call_may_be_sent_again() {
    let mut call = Call::new();
    call.begin(false);
    assert_eq!(
        call.feed(StreamEvent::Refused, &Expected::unary()),
        CallProgress::Refused
    );
    assert_eq!(
        call.why(&Expected::unary()),
        "the server refused the stream"
    );
}

#[test]
fn lengths_are_always_compared_and_contents_when_asked() {
    let messages = right(&["hello", "again"]);
    let expected = Expected {
        messages: &messages,
        ..Expected::streaming()
    };
    let check = |came: &[&str], compare| {
        let bytes: Vec<u8> = came
            .iter()
            .flat_map(|message| frame(message.as_bytes()))
            .collect();
        let (ended, why) = play(
            &[head(200), data(&bytes), trailers(trailer(0, ""))],
            &expected,
            compare,
        );
        assert_eq!(ended.messages, came.len() as u64);
        assert_eq!(
            ended.bytes,
            came.iter().map(|message| message.len() as u64).sum::<u64>()
        );
        (ended.outcome, ended.check, why)
    };
    let ok = |check| (Outcome::Ok, check, "the call was right".to_owned());
    let wrong = |why: &str| (Outcome::WrongBody, BodyCheck::Wrong, why.to_owned());
    assert_eq!(
        check(&["hello", "again", "again"], true),
        ok(BodyCheck::Right)
    );
    assert_eq!(check(&["hellO", "again"], false), ok(BodyCheck::Unchecked));
    assert_eq!(
        check(&["hellO", "again"], true),
        wrong("message 1 of 2 is not the right one")
    );
    assert_eq!(
        check(&["hello", "agai"], false),
        wrong("message 2 of 2 is not the right one")
    );
    assert_eq!(
        check(&["hello", "again", "hello"], true),
        wrong("message 3 of 3 is not the right one")
    );
    assert_eq!(check(&[], true), ok(BodyCheck::Unchecked));
}

#[test]
fn another_status_may_be_the_right_one() {
    let expected = Expected {
        status: 3,
        ..Expected::unary()
    };
    let refused = [StreamEvent::Head {
        status: 200,
        length: Length::Untold,
        grpc: trailer(3, "bad"),
        end: true,
    }];
    assert_eq!(play(&refused, &expected, true).0.outcome, Outcome::Ok);
    let (ended, why) = play(
        &[head(200), data(&frame(b"")), trailers(trailer(0, ""))],
        &expected,
        true,
    );
    assert_eq!(ended.outcome, Outcome::BadStatus);
    assert_eq!(why, "grpc-status 0 OK where 3 INVALID_ARGUMENT is right");
}

#[test]
fn messages_of_a_server_are_shown_decoded_and_tamed() {
    let rows: &[(&str, &str)] = &[
        ("plain", "plain"),
        ("caf%C3%A9", "café"),
        ("%1b[31mred%0A", "\\u{1b}[31mred\\n"),
        ("100% sure %zz %4", "100% sure %zz %4"),
        ("%FF", "\u{fffd}"),
    ];
    for (message, shown) in rows {
        assert_eq!(readable(message.as_bytes()), *shown);
    }
    assert_eq!(readable(&[b'x'; 1000]).chars().count(), 301);
}

#[test]
fn a_deadline_is_told_in_eight_digits() {
    let rows = [
        (Duration::from_nanos(1), "1u"),
        (Duration::from_millis(250), "250000u"),
        (Duration::from_secs(99), "99000000u"),
        (Duration::from_secs(100), "100000m"),
        (Duration::from_secs(200_000), "200000S"),
    ];
    for (deadline, text) in rows {
        assert_eq!(super::timeout(deadline), text);
    }
}

proptest! {
    #[test]
    fn any_cut_of_any_messages_is_counted_the_same(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8),
        sizes in prop::collection::vec(1_usize..70, 1..12),
        spoil in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let right: Vec<Box<[u8]>> = messages.iter().map(|message| message.as_slice().into()).collect();
        let count = right.len() as u64;
        let mut sent = messages.clone();
        let spoilt = spoil.and_then(|index| {
            let last = sent.len().checked_sub(1)?;
            let message = index.index(last + 1);
            let byte = sent[message].first_mut()?;
            *byte ^= 1;
            Some(message)
        });
        let bytes: Vec<u8> = sent.iter().flat_map(|message| frame(message)).collect();
        let expected = Expected { messages: &right, count: Some(count), status: 0 };
        let mut events = vec![head(200)];
        let mut rest = bytes.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            events.push(data(piece));
            rest = after;
        }
        events.push(trailers(trailer(0, "")));
        let (ended, _) = play(&events, &expected, true);
        prop_assert_eq!(ended.messages, count);
        prop_assert_eq!(ended.outcome, if spoilt.is_some() { Outcome::WrongBody } else { Outcome::Ok });
        let (unseen, _) = play(&events, &expected, false);
        prop_assert_eq!(unseen.outcome, Outcome::Ok, "lengths are right");
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(0_u8..8, 0..200), size in 1_usize..20) {
        let mut events = vec![head(200)];
        events.extend(bytes.chunks(size).map(data));
        events.push(trailers(trailer(0, "")));
        let pieces = play(&events, &Expected::streaming(), true);
        let whole = play(&[head(200), data(&bytes), trailers(trailer(0, ""))], &Expected::streaming(), true);
        prop_assert_eq!(pieces, whole);
    }
}
