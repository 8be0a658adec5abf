//! Frames as servers write them, each with what it means.

use super::*;

const OK: (&str, &str) = (":status", "200");

#[test]
fn an_answer_is_told_as_it_comes() {
    let mut play = Play::asking(2);
    let no = (GrpcStatus::Missing, vec![]);
    play.feed(&headers(3, &[OK, ("server", "x")], false))
        .unwrap();
    play.feed(&headers(1, &[(":status", "404")], true)).unwrap();
    play.feed(&data(3, b"hello ", false)).unwrap();
    play.feed(&data(3, b"world", true)).unwrap();
    assert_eq!(
        play.heard,
        [
            Seen::Head(1, 200, no.0, no.1.clone(), false),
            Seen::Head(0, 404, no.0, no.1, true),
            Seen::Data(1, b"hello world".to_vec(), true),
        ]
    );
    assert_eq!((play.session.in_flight(), play.session.room()), (0, 100));
    assert_eq!(play.out, b"", "nothing is to be answered");
}

#[test]
fn a_grpc_answer_says_its_status_in_trailers_or_at_once() {
    let mut play = Play::asking(2);
    play.feed(&headers(
        1,
        &[OK, ("content-type", "application/grpc")],
        false,
    ))
    .unwrap();
    play.feed(&data(1, b"\0\0\0\0\x01x", false)).unwrap();
    play.feed(&headers(1, &[("grpc-status", "0")], true))
        .unwrap();
    let failed = [OK, ("grpc-status", "14"), ("grpc-message", "not%20yet")];
    play.feed(&headers(3, &failed, true)).unwrap();
    assert_eq!(
        play.heard[2..],
        [
            Seen::Trailers(0, GrpcStatus::Code(0), vec![]),
            Seen::Head(1, 200, GrpcStatus::Code(14), b"not%20yet".to_vec(), true),
        ]
    );
    assert_eq!(
        play.heard[1],
        Seen::Data(0, b"\0\0\0\0\x01x".to_vec(), false)
    );
}

#[test]
fn the_bound_of_a_message_is_its_bound() {
    let mut play = Play::asking(1);
    let long = "x".repeat(3000);
    play.feed(&headers(
        1,
        &[OK, ("grpc-status", "+1"), ("grpc-message", &long)],
        true,
    ))
    .unwrap();
    let Seen::Head(_, _, status, message, _) = &play.heard[0] else {
        panic!()
    };
    assert_eq!(
        (*status, message.len()),
        (GrpcStatus::Unreadable, MAX_MESSAGE)
    );
}

#[test]
fn padding_priority_interim_heads_and_unknown_frames_are_passed_over() {
    let mut play = Play::asking(1);
    let mut padded = vec![3];
    padded.extend_from_slice(&[0, 0, 0, 0, 16]);
    padded.extend_from_slice(&block(&[OK]));
    padded.extend_from_slice(&[0; 3]);
    for bytes in [
        frame(Kind(0xfa), 0xff, 9, b"whatever"),
        frame(Kind::PRIORITY, 0, 1, &[0, 0, 0, 0, 16]),
        headers(1, &[(":status", "103"), ("link", "</x>")], false),
        frame(
            Kind::HEADERS,
            END_HEADERS | frame::PADDED | frame::PRIORITY,
            1,
            &padded,
        ),
        frame(Kind::DATA, frame::PADDED, 1, b"\x02hi\0\0"),
        frame(Kind::DATA, frame::PADDED | END_STREAM, 1, b"\x01\0"),
    ] {
        play.feed(&bytes).unwrap();
    }
    let head = Seen::Head(0, 200, GrpcStatus::Missing, vec![], false);
    assert_eq!(play.heard, [head, Seen::Data(0, b"hi".to_vec(), true)]);
}

#[test]
fn a_head_may_come_in_several_frames() {
    let mut play = Play::asking(1);
    let whole = block(&[OK, ("x", "y"), ("grpc-status", "7")]);
    play.feed(&frame(Kind::HEADERS, END_STREAM, 1, &whole[..2]))
        .unwrap();
    play.feed(&frame(Kind::CONTINUATION, 0, 1, &whole[2..5]))
        .unwrap();
    assert_eq!(play.heard, []);
    play.feed(&frame(Kind::CONTINUATION, END_HEADERS, 1, &whole[5..]))
        .unwrap();
    assert_eq!(
        play.heard,
        [Seen::Head(0, 200, GrpcStatus::Code(7), vec![], true)]
    );
}

#[test]
fn pings_and_settings_are_answered() {
    let mut play = Play::asking(1);
    play.feed(&frame(Kind::PING, 0, 0, b"12345678")).unwrap();
    play.feed(&frame(Kind::PING, ACK, 0, b"12345678")).unwrap();
    assert_eq!(play.take_out(), frame(Kind::PING, ACK, 0, b"12345678"));
    play.feed(&settings(&[(3, 0), (0xbeef, 5)])).unwrap();
    assert_eq!(play.take_out(), frame(Kind::SETTINGS, ACK, 0, &[]));
    assert_eq!(play.session.room(), 0, "the server allows no streams now");
    play.feed(&settings(&[(3, 8)])).unwrap();
    assert_eq!(play.session.room(), 7);
}

#[test]
fn a_server_that_goes_away_is_asked_nothing_more_and_answers_what_it_took() {
    let mut play = Play::asking(3);
    let goaway = |last: u32, code: u32| {
        let payload = [
            &last.to_be_bytes()[..],
            &code.to_be_bytes(),
            b"too_many\x1b[31m",
        ]
        .concat();
        frame(Kind::GOAWAY, 0, 0, &payload)
    };
    play.feed(&goaway(0x7fff_ffff, 0)).unwrap();
    assert_eq!((play.session.room(), play.heard.len()), (0, 0));
    play.feed(&goaway(3, 11)).unwrap();
    assert_eq!(play.heard, [Seen::Refused(2)]);
    let said = play.session.going_away().unwrap().to_string();
    assert_eq!(
        said,
        r"it said GOAWAY: ENHANCE_YOUR_CALM ('too_many\x1b[31m')"
    );
    play.feed(&headers(3, &[OK], true)).unwrap();
    assert_eq!(play.session.in_flight(), 1);
    let close = play.session.eof().unwrap_err().to_string();
    assert!(
        close.contains("with 1 requests unanswered; before, it said GOAWAY"),
        "{close}"
    );
    assert!(
        play.feed(&goaway(5, 0))
            .unwrap_err()
            .to_string()
            .contains("takes back")
    );
}

#[test]
fn a_reset_ends_a_stream_and_a_refused_one_may_be_sent_again() {
    let mut play = Play::asking(3);
    for (stream, code) in [(1_u32, 8_u32), (3, 7), (1, 8)] {
        play.feed(&frame(Kind::RST_STREAM, 0, stream, &code.to_be_bytes()))
            .unwrap();
    }
    assert_eq!(play.heard, [Seen::Reset(0, 8), Seen::Refused(1)]);
    assert_eq!(play.session.in_flight(), 1);
}

#[test]
fn what_comes_for_a_cancelled_stream_is_ignored_and_its_head_read() {
    let mut play = Play::asking(2);
    play.session.cancel(0, CANCEL, &mut play.out);
    play.session.cancel(0, CANCEL, &mut play.out);
    assert_eq!(
        play.take_out(),
        frame(Kind::RST_STREAM, 0, 1, &CANCEL.to_be_bytes())
    );
    let secret = ("x-secret", "in the table");
    play.feed(&headers(1, &[OK, secret], false)).unwrap();
    play.feed(&data(1, b"late", true)).unwrap();
    play.feed(&frame(Kind::RST_STREAM, 0, 1, &[0; 4])).unwrap();
    play.feed(&window_update(1, 5)).unwrap();
    assert_eq!(play.heard, []);
    // 63 is `:status: 200`, which the ignored head put into the table.
    play.feed(&frame(
        Kind::HEADERS,
        END_HEADERS | END_STREAM,
        3,
        &[0x80 | 63],
    ))
    .unwrap();
    assert_eq!(
        play.heard,
        [Seen::Head(1, 200, GrpcStatus::Missing, vec![], true)]
    );
}

#[test]
fn a_faulty_answer_spoils_its_stream_and_no_other() {
    let rows: &[(&[Vec<u8>], &str)] = &[
        (&[data(1, b"x", false)], "its body comes before its head"),
        (
            &[headers(1, &[("server", "x")], true)],
            "its head has no :status",
        ),
        (
            &[headers(1, &[(":status", "20")], true)],
            "its :status is not a number of three digits",
        ),
        (&[headers(1, &[OK, OK], true)], "it has :status twice"),
        (
            &[headers(1, &[("a", "b"), OK], true)],
            "its :status comes after other fields",
        ),
        (
            &[headers(1, &[OK, (":path", "/")], true)],
            "it has a pseudo-header field other than :status",
        ),
        (
            &[headers(1, &[(":status", "101")], false)],
            "its status is 101, which HTTP/2 has not",
        ),
        (
            &[headers(1, &[(":status", "100")], true)],
            "it ends with an interim head",
        ),
        (
            &[headers(1, &[OK], false), headers(1, &[OK], true)],
            "it has :status after its head",
        ),
        (
            &[headers(1, &[OK], false), headers(1, &[("a", "b")], false)],
            "its trailers do not end it",
        ),
        (
            &[window_update(1, 0)],
            "the server widens its window by nothing",
        ),
        (
            &[window_update(1, 0x7fff_ffff)],
            "the server widens its window beyond 2147483647 bytes",
        ),
    ];
    for (frames, why) in rows {
        let mut play = Play::asking(2);
        for frame in *frames {
            play.feed(frame).unwrap();
        }
        assert_eq!(play.heard.last(), Some(&Seen::Malformed(0, why)));
        assert_eq!(
            play.take_out()[..9],
            frame(Kind::RST_STREAM, 0, 1, &[0; 4])[..9]
        );
        play.feed(&headers(3, &[OK], true)).unwrap();
        assert_eq!(play.session.in_flight(), 0, "{why}");
    }
}

#[test]
fn an_interim_head_may_be_followed_by_another() {
    let mut play = Play::asking(1);
    for _ in 0..3 {
        play.feed(&headers(1, &[(":status", "102")], false))
            .unwrap();
    }
    play.feed(&headers(1, &[OK], true)).unwrap();
    assert_eq!(
        play.heard,
        [Seen::Head(0, 200, GrpcStatus::Missing, vec![], true)]
    );
}
