//! What a server does wrong, and what it is called.

use super::*;
use crate::protocol::http1::MAX_HEAD_BYTES;

#[test]
fn a_bad_frame_is_told_by_its_name_and_answered() {
    let close = |payload: &[u8]| frame(frame::CLOSE, true, payload);
    let rows: &[(Vec<u8>, &str, u16)] = &[
        (vec![0x81, 0x80, 0, 0, 0, 0], "it is masked", 1002),
        (
            frame(TEXT | 0x40, true, b"x"),
            "an extension that was not agreed upon",
            1002,
        ),
        (frame(0x3, true, b"x"), "its opcode means nothing", 1002),
        (frame(0xb, true, b"x"), "its opcode means nothing", 1002),
        (
            frame(frame::PING, false, b"x"),
            "a control frame in pieces",
            1002,
        ),
        (
            frame(frame::PING, true, &[0; 126]),
            "more than 125 bytes",
            1002,
        ),
        (
            frame(CONTINUATION, true, b"x"),
            "no message it could continue",
            1002,
        ),
        (
            [frame(TEXT, false, b"x"), text("y")].concat(),
            "a message within another",
            1002,
        ),
        (
            vec![0x82, 126, 0, 125],
            "its length is not written as it must be",
            1002,
        ),
        (
            vec![0x82, 127, 0, 0, 0, 0, 0, 0, 255, 255],
            "its length is not written",
            1002,
        ),
        (
            vec![0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0],
            "its length is not written",
            1002,
        ),
        (frame(TEXT, true, b"\xff"), "not UTF-8", 1007),
        (frame(TEXT, true, b"caf\xc3"), "not UTF-8", 1007),
        (
            [
                frame(TEXT, false, b"\xe2\x82"),
                frame(CONTINUATION, true, b"x"),
            ]
            .concat(),
            "not UTF-8",
            1007,
        ),
        (
            vec![0x82, 127, 0, 0, 0, 0, 0, 0x10, 0, 1],
            "larger than 1048576 bytes",
            1009,
        ),
        (close(&[3]), "a Close frame of one byte", 1002),
        (close(&[3, 237]), "a code that may not be sent", 1002),
        (close(&[0, 0]), "a code that may not be sent", 1002),
        (close(b"\x03\xe8\xff"), "whose reason is not UTF-8", 1002),
    ];
    for (bytes, sentence, code) in rows {
        for size in [1, bytes.len()] {
            let mut play = Play::open();
            let error = bytes.chunks(size).find_map(|piece| play.feed(piece).err());
            let error = error.expect(sentence);
            assert!(
                error.to_string().contains(sentence),
                "{error} instead of {sentence}"
            );
            assert_eq!(
                control(play.take_out()),
                (0x88, code.to_be_bytes().to_vec()),
                "{sentence}"
            );
            assert_eq!(
                (play.feed(b"more"), play.session.eof()),
                (Err(error.clone()), Err(error))
            );
        }
    }
}

#[test]
fn floods_of_frames_that_carry_nothing_are_given_up() {
    for bytes in [
        frame(frame::PING, true, b""),
        frame(frame::PONG, true, b"x"),
        frame(CONTINUATION, false, b""),
    ] {
        let mut play = Play::open();
        play.feed(&frame(TEXT, false, b"x")).unwrap();
        let times = (1..20_000).find(|_| {
            play.out.clear();
            play.feed(&bytes).is_err()
        });
        assert_eq!(times, Some(10_001));
        assert!(
            play.session
                .eof()
                .unwrap_err()
                .to_string()
                .contains("floods")
        );
    }
    let mut play = Play::open();
    for _ in 0..20_000 {
        play.feed(&[frame(frame::PING, true, b""), text("x")].concat())
            .unwrap();
    }
}

#[test]
fn pieces_of_a_message_are_bounded_together() {
    let mut play = Play::open();
    play.feed(&frame(TEXT, false, &[b'x'; 600_000])).unwrap();
    let error = play
        .feed(&frame(CONTINUATION, true, &[b'x'; 600_000]))
        .unwrap_err();
    assert_eq!(error, WebSocketError::MessageTooLarge { limit: 1 << 20 });
}

#[test]
fn an_answer_that_does_not_upgrade_is_told() {
    let (_, right) = Play::opening();
    let without = |name: &str| {
        let lines = right
            .split_inclusive("\r\n")
            .filter(|line| !line.starts_with(name));
        lines.collect::<String>()
    };
    let rows = [
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "answers the opening handshake with 'HTTP/1.1 404 Not Found' where 101 is right",
        ),
        (without("upgrade"), "not with Upgrade: websocket"),
        (without("Connection"), "not with Connection: Upgrade"),
        (
            without("Sec-WebSocket-Accept"),
            "is not the answer to the key",
        ),
        (
            right.replace("Accept: ", "Accept: x"),
            "is not the answer to the key",
        ),
        (
            right.replace(
                "upgrade: ",
                "Sec-WebSocket-Extensions: permessage-deflate\r\nupgrade: ",
            ),
            "an extension that was not offered",
        ),
        ("SSH-2.0-OpenSSH_9.6\r\n".into(), "it begins with 'S"),
        ("HTTP/1.1 101 X\r\nno colon\r\n\r\n".into(), "is not HTTP/1"),
        (
            format!("HTTP/1.1 101 X\r\nX: {}", "x".repeat(MAX_HEAD_BYTES)),
            "a head longer than 65536 bytes",
        ),
    ];
    for (bytes, sentence) in rows {
        for size in [1, bytes.len()] {
            let (mut play, _) = Play::opening();
            play.take_out();
            let error = bytes
                .as_bytes()
                .chunks(size)
                .find_map(|piece| play.feed(piece).err());
            let error = error.expect(sentence).to_string();
            assert!(error.contains(sentence), "{error} instead of {sentence}");
            assert_eq!((play.take_out(), play.heard.open), (vec![], false));
        }
    }
}

#[test]
fn a_close_means_what_the_moment_makes_of_it() {
    let (mut play, answer) = Play::opening();
    assert_eq!(play.session.eof(), Err(WebSocketError::ClosedInHandshake));
    play.feed(&answer.as_bytes()[..30]).unwrap();
    assert_eq!(play.session.eof(), Err(WebSocketError::ClosedInHandshake));
    assert_eq!(
        Play::open().session.eof(),
        Err(WebSocketError::ClosedWithoutGoodbye)
    );
}

#[test]
fn a_session_of_one_connection_is_small() {
    let size = size_of::<Session>();
    assert!(size <= 300, "{size} bytes, times 10 000 connections");
}
