//! What a server does wrong, what it is called, and that nothing fills the memory.

use crate::protocol::http2::tests::frame::Header;
use crate::protocol::http2::tests::hpack::Decoder;
use crate::protocol::http2::tests::*;

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
        Some(&Seen::Malformed(0, "it overruns its window"))
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

/// What a server reads: kind, flags, stream and payload of each frame.
fn read(mut bytes: &[u8]) -> Vec<(Kind, u8, u32, Vec<u8>)> {
    let mut frames = vec![];
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let header = Header::parse(header);
        let (payload, rest) = rest.split_at(header.length as usize);
        frames.push((header.kind, header.flags, header.stream, payload.to_vec()));
        bytes = rest;
    }
    assert!(bytes.is_empty());
    frames
}

fn fields(decoder: &mut Decoder, block: &[u8]) -> Vec<String> {
    let mut fields = vec![];
    decoder
        .decode(block, 65_536, |name, value| {
            fields.push([name, b"=", value].concat().escape_ascii().to_string());
        })
        .unwrap();
    fields
}

/// The bytes of DATA frames on a stream, and whether they ended it.
fn body(frames: &[(Kind, u8, u32, Vec<u8>)], stream: u32) -> (Vec<u8>, bool) {
    let of = frames
        .iter()
        .filter(|frame| frame.0 == Kind::DATA && frame.2 == stream);
    let ended = of.clone().any(|frame| frame.1 & END_STREAM != 0);
    (of.flat_map(|frame| frame.3.clone()).collect(), ended)
}

#[test]
fn a_client_begins_with_its_preface_and_wide_windows() {
    let (mut session, mut out) = (Session::new(Settings::default()), vec![]);
    session.open(&mut out);
    let frames = read(&out[24..]);
    assert_eq!(&out[..24], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(frames[0].0, Kind::SETTINGS);
    assert_eq!(frames[0].3[..6], [0, 2, 0, 0, 0, 0], "no pushes");
    let wider = (1_u32 << 30) - 1 - 65_535;
    assert_eq!(
        frames[1..],
        [(Kind::WINDOW_UPDATE, 0, 0, wider.to_be_bytes().to_vec())]
    );
}

#[test]
fn a_head_is_spelt_out_once_and_named_afterwards() {
    let (mut play, mut server) = (Play::new(&[]), Decoder::new());
    let (head, other) = (
        get(),
        RequestHead::new("POST", "http", "b", "/b", &[]).unwrap(),
    );
    let mut sizes = vec![];
    for (tag, head) in [&head, &head, &other, &head].into_iter().enumerate() {
        play.session
            .begin(tag as u32, head, b"", true, &mut play.out)
            .unwrap();
        let frames = read(&play.take_out());
        let (kind, flags, stream, block) = &frames[0];
        assert_eq!((*kind, *flags), (Kind::HEADERS, END_HEADERS | END_STREAM));
        assert_eq!(*stream, 2 * tag as u32 + 1);
        sizes.push(block.len());
        let right = match tag {
            2 => vec![":method=POST", ":scheme=http", ":path=/b", ":authority=b"],
            _ => vec![
                ":method=GET",
                ":scheme=http",
                ":path=/a",
                ":authority=127.0.0.1:8000",
                "x-test=1",
            ],
        };
        assert_eq!(fields(&mut server, block), right);
    }
    assert_eq!(sizes[1], 5, "a byte for each field");
    assert_eq!(sizes[1], sizes[3]);
}

#[test]
fn a_server_without_a_table_is_obeyed() {
    let (mut play, mut server) = (Play::new(&[(1, 0)]), Decoder::new());
    for tag in 0..2 {
        play.session
            .begin(tag, &get(), b"", true, &mut play.out)
            .unwrap();
    }
    play.feed(&settings(&[(1, 4096)])).unwrap();
    play.session
        .begin(2, &get(), b"", true, &mut play.out)
        .unwrap();
    let blocks: Vec<_> = read(&play.out)
        .into_iter()
        .filter(|frame| frame.0 == Kind::HEADERS)
        .collect();
    assert_eq!(blocks[0].3[0], 0x20, "the table is made empty first");
    for block in &blocks {
        assert_eq!(fields(&mut server, &block.3).len(), 5);
    }
    // A table that shrinks below the head it holds is left, once and for all.
    let (mut play, mut server, head) = (Play::new(&[]), Decoder::new(), get());
    play.session
        .begin(0, &head, b"", true, &mut play.out)
        .unwrap();
    play.feed(&settings(&[(1, 60)])).unwrap();
    for tag in 1..3 {
        play.session
            .begin(tag, &head, b"", true, &mut play.out)
            .unwrap();
    }
    for (kind, _, _, block) in read(&play.out) {
        assert!(kind != Kind::HEADERS || fields(&mut server, &block).len() == 5);
    }
}

#[test]
fn a_head_larger_than_a_frame_goes_out_in_several() {
    let long = "v".repeat(20_000);
    let head = RequestHead::new("GET", "http", "a", "/", &[("x-long", &long)]).unwrap();
    let mut play = Play::new(&[]);
    play.session
        .begin(0, &head, b"", true, &mut play.out)
        .unwrap();
    let frames = read(&play.out);
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.0, frame.1)).collect();
    assert_eq!(
        kinds,
        [
            (Kind::HEADERS, END_STREAM),
            (Kind::CONTINUATION, END_HEADERS)
        ]
    );
    let block: Vec<u8> = frames.into_iter().flat_map(|frame| frame.3).collect();
    assert!(fields(&mut Decoder::new(), &block)[4].contains(&long));
}

#[test]
fn a_body_goes_out_as_far_as_the_windows_let_it() {
    let mut play = Play::new(&[(4, 30_000)]);
    let upload: Vec<u8> = (0..100_000_u32).map(|at| at as u8).collect();
    play.session
        .begin(0, &get(), &upload, true, &mut play.out)
        .unwrap();
    let mut frames = read(&play.take_out());
    assert_eq!(
        frames[1].3.len(),
        16_384,
        "no frame is larger than the server takes"
    );
    assert_eq!(body(&frames, 1).0.len(), 30_000);
    assert!(!play.session.is_sent(0));
    play.feed(&window_update(1, 50_000)).unwrap();
    frames.extend(read(&play.take_out()));
    assert_eq!(
        body(&frames, 1).0.len(),
        65_535,
        "the window of the connection"
    );
    play.feed(&window_update(0, 1_000_000)).unwrap();
    frames.extend(read(&play.take_out()));
    assert_eq!(body(&frames, 1).0.len(), 80_000);
    // A larger initial window counts for streams in flight too.
    play.feed(&settings(&[(4, 50_000), (5, 65_536)])).unwrap();
    frames.extend(read(&play.take_out()));
    assert_eq!(body(&frames, 1), (upload, true));
    assert!(play.session.is_sent(0));
}

#[test]
fn a_window_may_shrink_below_nothing_and_must_recover() {
    let mut play = Play::new(&[]);
    play.session
        .begin(0, &get(), &[1; 50_000], false, &mut play.out)
        .unwrap();
    play.feed(&settings(&[(4, 10_000)])).unwrap();
    play.take_out();
    play.session.send(0, b"more", true, &mut play.out).unwrap();
    play.feed(&window_update(1, 40_000)).unwrap();
    assert_eq!(play.out, b"");
    play.feed(&window_update(1, 3)).unwrap();
    play.feed(&window_update(1, 3)).unwrap();
    assert_eq!(
        play.take_out(),
        [data(1, b"mor", false), data(1, b"e", true)].concat()
    );
}

#[test]
fn pieces_go_out_in_order_and_the_last_ends_the_stream() {
    let mut play = Play::new(&[(4, 5)]);
    play.session
        .begin(0, &get(), b"", false, &mut play.out)
        .unwrap();
    assert_eq!(read(&play.take_out())[0].1, END_HEADERS);
    for (piece, end) in [
        (&b"abc"[..], false),
        (b"def", false),
        (b"ghi", false),
        (b"", true),
    ] {
        play.session.send(0, piece, end, &mut play.out).unwrap();
    }
    let refused = play.session.send(0, b"x", true, &mut play.out);
    assert_eq!(refused, Err(NotTaken::NotSending(0)));
    for _ in 0..9 {
        assert!(play.session.is_sent(0) == (body(&read(&play.out), 1).0.len() == 9));
        play.feed(&window_update(1, 1)).unwrap();
    }
    assert_eq!(body(&read(&play.out), 1), (b"abcdefghi".to_vec(), true));
    // With nothing waiting, an empty last piece is an empty frame.
    play.session
        .begin(1, &get(), b"x", false, &mut play.out)
        .unwrap();
    play.take_out();
    play.session.send(1, b"", true, &mut play.out).unwrap();
    assert_eq!(play.take_out(), data(3, b"", true));
}

#[test]
fn streams_take_turns_with_the_window_of_the_connection() {
    let mut play = Play::new(&[(4, 1 << 20)]);
    for tag in 0..3 {
        play.session
            .begin(tag, &get(), &[tag as u8; 65_535], true, &mut play.out)
            .unwrap();
    }
    play.take_out();
    for _ in 0..4 {
        play.feed(&window_update(0, 1000)).unwrap();
    }
    let streams: Vec<_> = read(&play.out).iter().map(|frame| frame.2).collect();
    assert_eq!(streams, [3, 5, 3, 5]);
}

#[test]
fn an_early_answer_stops_the_upload() {
    let mut play = Play::new(&[(4, 5)]);
    play.session
        .begin(0, &get(), b"0123456789", true, &mut play.out)
        .unwrap();
    play.take_out();
    play.feed(&headers(1, &[(":status", "413")], true)).unwrap();
    assert_eq!(play.take_out(), frame(Kind::RST_STREAM, 0, 1, &[0; 4]));
    assert!(!play.session.is_sent(0), "to be asked after the end");
    play.feed(&window_update(0, 1000)).unwrap();
    assert_eq!(play.out, b"");
    play.session
        .begin(0, &get(), b"", true, &mut play.out)
        .unwrap();
    assert!(play.session.is_sent(0));
}

#[test]
fn what_cannot_be_taken_is_refused_and_nothing_written() {
    let limit = 1000;
    let small = Settings {
        max_waiting: limit,
        ..Settings::default()
    };
    let mut play = Play::with(small, &[(3, 2), (4, 0)]);
    let head = get();
    let mut begin = |tag, body: &[u8]| play.session.begin(tag, &head, body, true, &mut play.out);
    assert_eq!(begin(100, b""), Err(NotTaken::TagTooLarge(100)));
    assert_eq!(
        begin(0, &[0; 1001]),
        Err(NotTaken::TooMuchWaiting { limit })
    );
    begin(7, &[0; 1000]).unwrap();
    assert_eq!(begin(7, b""), Err(NotTaken::TagInUse(7)));
    begin(8, b"").unwrap();
    assert_eq!(begin(9, b""), Err(NotTaken::NoRoom));
    assert_eq!(play.session.room(), 0);
    assert_eq!(read(&play.out).len(), 2);
    let mut play = Play::with(small, &[(4, 0)]);
    play.session
        .begin(0, &head, &[0; 1000], false, &mut play.out)
        .unwrap();
    let more = play.session.send(0, b"x", true, &mut play.out);
    assert_eq!(more, Err(NotTaken::TooMuchWaiting { limit }));
    assert_eq!(play.session.send(0, b"", true, &mut play.out), Ok(()));
}

#[test]
fn fields_that_http2_does_not_allow_are_refused() {
    let new = |name, value| RequestHead::new("GET", "http", "a", "/", &[(name, value)]).map(|_| ());
    assert_eq!(new("X-Upper", "is made lower"), Ok(()));
    assert!(matches!(
        new("Connection", "close"),
        Err(BadField::ConnectionSpecific(_))
    ));
    for (name, value) in [
        ("", "x"),
        ("a b", "x"),
        (":path", "x"),
        ("a", "x\ny"),
        ("a", " x"),
    ] {
        assert!(
            matches!(new(name, value), Err(BadField::Characters(_))),
            "{name} {value}"
        );
    }
}
