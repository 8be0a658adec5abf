//! Frames as servers write them, each with what it means.

use super::*;

#[test]
fn the_examples_of_section_5_7_are_read_and_written() {
    let hello = [0x48, 0x65, 0x6c, 0x6c, 0x6f];
    let masked = [
        0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
    ];
    assert_eq!(framed(Kind::Text, &hello, [0x37, 0xfa, 0x21, 0x3d]), masked);
    let mut play = Play::open();
    play.feed(&[&[0x81, 0x05][..], &hello].concat()).unwrap();
    play.feed(&[0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f])
        .unwrap();
    play.feed(&[&[0x89, 0x05][..], &hello].concat()).unwrap();
    play.feed(&[&[0x82, 0x7e, 0x01, 0x00][..], &[7; 256]].concat())
        .unwrap();
    play.feed(&[&[0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0][..], &[8; 65_536]].concat())
        .unwrap();
    assert_eq!(control(play.take_out()), (0x8a, hello.to_vec()));
    let right = [
        (Kind::Text, hello.to_vec()),
        (Kind::Text, hello.to_vec()),
        (Kind::Binary, vec![7; 256]),
        (Kind::Binary, vec![8; 65_536]),
    ];
    assert_eq!(play.heard.messages, right);
}

#[test]
fn the_key_of_section_1_3_has_the_answer_of_section_1_3() {
    assert_eq!(
        accept(b"dGhlIHNhbXBsZSBub25jZQ=="),
        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    );
}

#[test]
fn the_request_says_all_that_a_client_must_say() {
    let (mut play, _) = Play::opening();
    let text = String::from_utf8(play.take_out()).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[..2], ["GET /a?b HTTP/1.1", "Host: 127.0.0.1:8000"]);
    for line in [
        "X-Test: 1",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
    ] {
        assert!(lines.contains(&line), "{line}");
    }
    assert!(text.ends_with("==\r\n\r\n"), "16 bytes in base64: {text}");
    let mut upgrade = Upgrade::new("a", "/", &[]).unwrap();
    let keys: Vec<_> = (0..100).map(|_| upgrade.write(&mut Vec::new())).collect();
    let other = upgrade.clone().seeded(7).write(&mut Vec::new());
    assert!((0..100).all(|at| !keys[at + 1..].contains(&keys[at]) && keys[at] != other));
    for name in ["Upgrade", "sec-websocket-key", "Sec-WebSocket-Extensions"] {
        assert_eq!(
            Upgrade::new("a", "/", &[(name, "x")]).err().unwrap().0,
            name
        );
    }
}

#[test]
fn control_frames_come_between_the_pieces_of_a_message() {
    let mut play = Play::open();
    let stream = [
        frame(TEXT, false, b"He"),
        frame(frame::PING, true, b"1"),
        frame(CONTINUATION, false, b""),
        frame(frame::PONG, true, b"not asked for"),
        frame(CONTINUATION, true, b"llo"),
        text(""),
    ];
    play.feed(&stream.concat()).unwrap();
    let right = [(Kind::Text, b"Hello".to_vec()), (Kind::Text, vec![])];
    assert_eq!(play.heard.messages, right);
    assert_eq!(
        control(play.take_out()),
        (0x80 | frame::PONG, b"1".to_vec())
    );
}

#[test]
fn a_goodbye_is_answered_and_told() {
    let mut play = Play::open();
    let error = play
        .feed(&frame(frame::CLOSE, true, b"\x03\xf3\x1b[31m"))
        .unwrap_err();
    let said = r"the server closed the WebSocket: code 1011 (internal error): '\x1b[31m'";
    assert_eq!(error.to_string(), said);
    assert_eq!(
        control(play.take_out()),
        (0x80 | frame::CLOSE, vec![3, 0xf3])
    );
    assert!(!play.session.is_open());
    assert_eq!(
        play.feed(&text("late")),
        Err(error.clone()),
        "nothing follows a goodbye"
    );
    assert_eq!(play.session.eof(), Err(error));
    let mut play = Play::open();
    let error = play.feed(&frame(frame::CLOSE, true, b"")).unwrap_err();
    assert_eq!(
        error,
        WebSocketError::Closed {
            code: None,
            reason: String::new()
        }
    );
    assert_eq!(control(play.take_out()), (0x80 | frame::CLOSE, vec![]));
}

#[test]
fn this_side_says_goodbye_once() {
    let mut play = Play::open();
    play.session.close(1000, &mut play.out);
    play.session.close(1000, &mut play.out);
    assert_eq!(
        control(play.take_out()),
        (0x80 | frame::CLOSE, vec![3, 232])
    );
    play.feed(&[text("on its way"), frame(frame::PING, true, b"")].concat())
        .unwrap();
    assert_eq!(play.heard.messages.len(), 1);
    assert_eq!(
        play.session.eof(),
        Ok(()),
        "the server may close without a word then"
    );
    let error = play
        .feed(&frame(frame::CLOSE, true, &[3, 232]))
        .unwrap_err();
    assert!(matches!(
        error,
        WebSocketError::Closed {
            code: Some(1000),
            ..
        }
    ));
    assert_eq!(play.out, b"");
}

#[test]
fn a_mask_of_any_message_is_undone_by_itself() {
    for length in 0..70_u8 {
        let plain: Vec<u8> = (0..length).collect();
        let mut masked = plain.clone();
        frame::masked(&mut masked, [1, 2, 3, 4]);
        for (at, byte) in masked.iter().enumerate() {
            assert_eq!(*byte, plain[at] ^ [1, 2, 3, 4][at % 4]);
        }
    }
    for length in [0, 125, 126, 65_535, 65_536] {
        let frame = framed(Kind::Binary, &vec![0; length], [0; 4]);
        let header = match length {
            0..=125 => 6,
            126..=65_535 => 8,
            _ => 14,
        };
        assert_eq!(frame.len(), header + length);
    }
}
