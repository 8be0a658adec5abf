//! What goes out: heads, bodies as far as the windows let them, and the limits of the server.

use super::frame::Header;
use super::hpack::Decoder;
use super::*;

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
