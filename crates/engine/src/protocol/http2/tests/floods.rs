//! What a server does wrong, what it is called, and that nothing fills the memory.

use super::*;

const OK: (&str, &str) = (":status", "200");

/// Feeds until the session gives up; how many times that took, and why it gave up.
fn flood(play: &mut Play, bytes: &[u8], most: u32) -> (u32, Http2Error) {
    for times in 1..=most {
        // The transport moves what is written.
        play.out.clear();
        if let Err(error) = play.feed(bytes) {
            return (times, error);
        }
        assert!(play.session.framer.memory() <= 20_000);
    }
    panic!("never given up")
}

#[test]
fn a_fault_of_the_connection_is_told_by_its_name() {
    let bad = |kind: Kind, flags, stream, payload: &[u8]| frame(kind, flags, stream, payload);
    let rows: &[(Vec<u8>, &str)] = &[
        (
            bad(Kind::HEADERS, 4, 0, &[0x88]),
            "a bad HEADERS frame: it is for no stream",
        ),
        (
            bad(Kind::DATA, 0, 0, b"x"),
            "a bad DATA frame: it is for no stream",
        ),
        (
            bad(Kind::HEADERS, 4, 2, &[0x88]),
            "HEADERS on stream 2, which was never begun",
        ),
        (
            bad(Kind::DATA, 0, 5, b"x"),
            "DATA on stream 5, which was never begun",
        ),
        (
            bad(Kind::RST_STREAM, 0, 5, &[0; 4]),
            "RST_STREAM on stream 5, which was never begun",
        ),
        (
            bad(Kind::RST_STREAM, 0, 1, &[0; 3]),
            "a bad RST_STREAM frame: it is not of 4 bytes",
        ),
        (
            bad(Kind::WINDOW_UPDATE, 0, 7, &[1; 4]),
            "WINDOW_UPDATE on stream 7",
        ),
        (
            bad(Kind::WINDOW_UPDATE, 0, 0, &[0; 4]),
            "it widens the window by nothing",
        ),
        (
            bad(Kind::WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            "a window larger than",
        ),
        (
            bad(Kind::SETTINGS, 0, 1, &[]),
            "a bad SETTINGS frame: it is for a stream",
        ),
        (bad(Kind::SETTINGS, 0, 0, &[0; 7]), "not a multiple of 6"),
        (
            bad(Kind::SETTINGS, 1, 0, &[0; 6]),
            "an acknowledgement has a payload",
        ),
        (settings(&[(2, 1)]), "set ENABLE_PUSH to 1"),
        (
            settings(&[(4, 1 << 31)]),
            "set INITIAL_WINDOW_SIZE to 2147483648",
        ),
        (settings(&[(5, 16_383)]), "set MAX_FRAME_SIZE to 16383"),
        (bad(Kind::PING, 0, 0, b"1234567"), "it is not of 8 bytes"),
        (
            bad(Kind::GOAWAY, 0, 0, b"1234567"),
            "it is shorter than 8 bytes",
        ),
        (bad(Kind::PRIORITY, 0, 1, b"1"), "it is not of 5 bytes"),
        (
            bad(Kind::PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]),
            "the server pushes although that was refused",
        ),
        (
            bad(Kind::CONTINUATION, 4, 1, &[0x88]),
            "there is no header block it could continue",
        ),
        (
            bad(Kind::DATA, frame::PADDED, 1, &[]),
            "its padding is longer than its payload",
        ),
        (
            bad(Kind::DATA, frame::PADDED, 1, &[1]),
            "its padding is longer than its payload",
        ),
        (
            bad(Kind::HEADERS, 4 | frame::PADDED, 1, &[9, 0x88]),
            "its padding is longer than its payload",
        ),
        (
            bad(Kind::HEADERS, 4 | frame::PRIORITY, 1, &[0x88]),
            "its padding is longer than its payload",
        ),
        (
            bad(Kind::HEADERS, 4, 1, &[0x80]),
            "the server's header block cannot be read: it names entry 0",
        ),
        (
            bad(Kind::DATA, 0, 1, &[0; 16_385]),
            "a DATA frame of 16385 bytes where 16384 are allowed",
        ),
        (
            bad(Kind::SETTINGS, 0, 0, &[0; 16_386]),
            "a SETTINGS frame of 16386 bytes",
        ),
    ];
    for (bytes, sentence) in rows {
        let mut play = Play::asking(1);
        let error = play.feed(bytes).expect_err(sentence);
        assert!(
            error.to_string().contains(sentence),
            "{error} instead of {sentence}"
        );
        let goodbye = [&[0; 4][..], &error.code().to_be_bytes()].concat();
        assert_eq!(
            play.take_out(),
            frame(Kind::GOAWAY, 0, 0, &goodbye),
            "{sentence}"
        );
        assert_eq!(play.feed(b"more"), Err(error.clone()), "it stays so");
        assert_eq!((play.session.room(), play.session.eof()), (0, Err(error)));
    }
}

#[test]
fn a_header_block_may_not_be_interrupted() {
    let interruptions = [
        frame(Kind::PING, 0, 0, b"12345678"),
        frame(Kind(99), 0, 0, b""),
        data(1, b"x", false),
        headers(3, &[OK], true),
        frame(Kind::CONTINUATION, END_HEADERS, 3, &[]),
    ];
    for bytes in interruptions {
        let mut play = Play::asking(2);
        play.feed(&frame(Kind::HEADERS, 0, 1, &[0x88])).unwrap();
        let error = play.feed(&bytes).unwrap_err();
        assert!(matches!(error, Http2Error::Interrupted { .. }), "{error}");
    }
}

#[test]
fn floods_of_frames_that_carry_nothing_are_given_up() {
    let one = Kind::HEADERS;
    let rows: &[(Vec<u8>, Kind)] = &[
        (frame(Kind::PING, 0, 0, b"12345678"), Kind::PING),
        (settings(&[]), Kind::SETTINGS),
        (frame(Kind::SETTINGS, ACK, 0, &[]), Kind::SETTINGS),
        (frame(Kind::RST_STREAM, 0, 1, &[0; 4]), Kind::RST_STREAM),
        (frame(Kind::PRIORITY, 0, 1, &[0; 5]), Kind::PRIORITY),
        (
            frame(Kind::GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
            Kind::GOAWAY,
        ),
        (frame(Kind(0x42), 0, 0, b""), Kind(0x42)),
        (data(3, b"", false), Kind::DATA),
        (frame(Kind::DATA, frame::PADDED, 3, b"\x02\0\0"), Kind::DATA),
        (headers(3, &[(":status", "100")], false), one),
        (window_update(1, 1), Kind::WINDOW_UPDATE),
    ];
    for (bytes, kind) in rows {
        let mut play = Play::asking(2);
        play.session.cancel(0, CANCEL, &mut play.out);
        play.feed(&headers(3, &[(":status", "100")], false))
            .unwrap();
        if *kind == Kind::DATA {
            play.feed(&headers(3, &[OK], false)).unwrap();
        }
        let (times, error) = flood(&mut play, bytes, 10_001);
        assert!(times > 9_990, "{times} {kind}");
        assert!(
            error
                .to_string()
                .contains(&format!("10000 {kind} and like frames")),
            "{error}"
        );
    }
}

#[test]
fn a_header_block_that_never_ends_is_given_up_at_its_bound() {
    let mut play = Play::asking(1);
    play.feed(&frame(Kind::HEADERS, 0, 1, &[0; 16_384]))
        .unwrap();
    let (times, error) = flood(
        &mut play,
        &frame(Kind::CONTINUATION, 0, 1, &[0; 16_384]),
        100,
    );
    assert_eq!(
        (times, error),
        (
            4,
            Http2Error::HeadersTooLarge {
                limit: MAX_HEADER_BLOCK
            }
        )
    );
    let mut play = Play::asking(1);
    play.feed(&frame(Kind::HEADERS, 0, 1, &[0x88])).unwrap();
    let (_, error) = flood(&mut play, &frame(Kind::CONTINUATION, 0, 1, &[]), 10_001);
    assert!(
        matches!(
            error,
            Http2Error::Flood {
                kind: Kind::CONTINUATION,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_small_block_that_unpacks_to_much_is_given_up() {
    let mut play = Play::asking(1);
    let mut bomb = vec![];
    hpack::literal(&mut bomb, b"x", &[b'v'; 4000], true);
    bomb.extend_from_slice(&[0x80 | 62; 8000]);
    let error = play
        .feed(&frame(Kind::HEADERS, END_HEADERS, 1, &bomb))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("more than 65536 bytes when unpacked"),
        "{error}"
    );
}

#[test]
fn windows_are_widened_as_they_are_used_and_an_overrun_is_noticed() {
    let narrow = Settings {
        stream_window: 10,
        connection_window: 65_535,
        ..Settings::default()
    };
    let mut play = Play::with(narrow, &[]);
    for tag in 0..2 {
        play.session
            .begin(tag, &get(), b"", true, &mut play.out)
            .unwrap();
    }
    play.take_out();
    play.feed(&headers(1, &[OK], false)).unwrap();
    play.feed(&data(1, &[0; 6], false)).unwrap();
    assert_eq!(play.take_out(), window_update(1, 6));
    play.feed(&data(1, &[0; 11], false)).unwrap();
    assert_eq!(
        play.heard.last(),
        Some(&Heard::Malformed(0, "it overruns its window"))
    );
    play.session.cancel(1, CANCEL, &mut play.out);
    play.take_out();
    // What comes for streams that are over counts against the window of the connection all the same.
    play.feed(&frame(Kind::DATA, frame::PADDED, 3, &[0; 16_384]))
        .unwrap();
    assert_eq!(play.take_out(), b"");
    play.feed(&data(3, &[0; 16_384], false)).unwrap();
    assert_eq!(play.take_out(), window_update(0, 2 * 16_384 + 17));
}

#[test]
fn a_server_that_does_not_speak_http2_is_told_what_it_speaks() {
    let rows: &[(&[u8], &str)] = &[
        (
            b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            "the server answers HTTP/1.1, not HTTP/2: 'HTTP/1.1 400 Bad Request'",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "it begins with 'SSH-2.0-"),
        (
            b"\x15\x03\x01\x00\x02\x02\x46\0\0",
            "answers with a TLS alert",
        ),
        (
            &[0, 0, 8, 6, 0, 0, 0, 0, 0],
            "the server's first frame is PING",
        ),
        (
            &[0, 0, 0, 4, 0, 0, 0, 0, 1],
            "the server's first frame is SETTINGS",
        ),
    ];
    for (stream, sentence) in rows {
        for size in [1, 5, stream.len()] {
            let (mut session, mut out) = (Session::new(Settings::default()), vec![]);
            session.open(&mut out);
            let error = stream
                .chunks(size)
                .find_map(|piece| session.feed(piece, &mut out, |_, _| {}).err());
            let error = error.expect("a fault").to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }
    let mut session = Session::new(Settings::default());
    assert_eq!(session.eof(), Err(Http2Error::ClosedAtOnce));
    session.feed(b"HTTP/1.1 4", &mut vec![], |_, _| {}).unwrap();
    assert_eq!(
        session.eof(),
        Err(Http2Error::Http1 {
            line: "HTTP/1.1 4".into()
        })
    );
    let mut session = Session::new(Settings::default());
    session.feed(b"220 hi", &mut vec![], |_, _| {}).unwrap();
    assert_eq!(
        session.eof(),
        Err(Http2Error::NotHttp2 {
            start: "220 hi".into()
        })
    );
}
