//! The examples of RFC 6455, what a server does wrong, and streams cut in any way.

mod table;

use proptest::prelude::*;

use crate::protocol::http1::MAX_HEAD_BYTES;
use crate::protocol::websocket::frame::{CONTINUATION, TEXT};
use crate::protocol::websocket::*;

/// A server's frame: not masked.
fn frame(opcode: u8, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![opcode | if last { 0x80 } else { 0 }];
    match payload.len() {
        length @ 0..=125 => frame.push(length as u8),
        length @ 126..=65_535 => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

fn text(message: &str) -> Vec<u8> {
    frame(TEXT, true, message.as_bytes())
}

fn answer(key: &[u8]) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accept(key)
    )
}

/// What was heard: whole messages, and the bytes of one that is not.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Seen {
    open: bool,
    messages: Vec<(Kind, Vec<u8>)>,
    rest: Vec<u8>,
}

impl Seen {
    fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Open => self.open = true,
            Event::Data(Piece { kind, bytes, end }) => {
                self.rest.extend_from_slice(bytes);
                if end {
                    self.messages.push((kind, std::mem::take(&mut self.rest)));
                }
            }
        }
    }
}

struct Play {
    session: Session,
    out: Vec<u8>,
    heard: Seen,
}

impl Play {
    /// A session that awaits the answer to its request, and the answer.
    fn opening() -> (Play, String) {
        let mut upgrade = Upgrade::new("127.0.0.1:8000", "/a?b", &[("X-Test", "1")]).unwrap();
        let mut play = Play {
            session: Session::new(1 << 20),
            out: Vec::new(),
            heard: Seen::default(),
        };
        let key = play.session.open(&mut upgrade, &mut play.out);
        (play, answer(&key))
    }

    fn open() -> Play {
        let (mut play, answer) = Play::opening();
        play.feed(answer.as_bytes()).unwrap();
        assert!(play.heard.open && play.session.is_open());
        play.out.clear();
        play
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), WebSocketError> {
        let Play {
            session,
            out,
            heard,
        } = self;
        session.feed(bytes, out, |event| heard.hear(event))
    }

    fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// A client's control frame, unmasked: opcode and payload.
fn control(mut bytes: Vec<u8>) -> (u8, Vec<u8>) {
    let mask = [bytes[2], bytes[3], bytes[4], bytes[5]];
    let mut payload = bytes.split_off(6);
    assert_eq!(usize::from(bytes[1] & 0x7f), payload.len());
    frame::masked(&mut payload, mask);
    (bytes[0], payload)
}

#[derive(Debug, Clone)]
struct Message {
    kind: Kind,
    bytes: Vec<u8>,
    pieces: Vec<usize>,
    pings: bool,
}

prop_compose! {
    fn message()(
        text in any::<bool>(),
        string in ".{0,90}",
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        pieces in prop::collection::vec(0_usize..200, 0..5),
        pings in any::<bool>(),
    ) -> Message {
        match text {
            true => Message { kind: Kind::Text, bytes: string.into_bytes(), pieces, pings },
            false => Message { kind: Kind::Binary, bytes, pieces, pings },
        }
    }
}

/// The frames of a message: cut where `pieces` say, in the middle of characters too.
fn write(message: &Message) -> Vec<u8> {
    let mut opcode = match message.kind {
        Kind::Text => TEXT,
        Kind::Binary => frame::BINARY,
    };
    let (mut out, mut rest) = (vec![], message.bytes.as_slice());
    for size in &message.pieces {
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        out.extend(frame(opcode, false, piece));
        if message.pings {
            out.extend(frame(frame::PING, true, b"ping"));
        }
        (opcode, rest) = (CONTINUATION, after);
    }
    out.extend(frame(opcode, true, rest));
    out
}

fn cut<'s>(stream: &'s [u8], sizes: &[usize]) -> Vec<&'s [u8]> {
    let (mut pieces, mut rest) = (vec![], stream);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Whole messages, what was written, and the error it ended with.
type Outcome = (Vec<(Kind, Vec<u8>)>, Vec<u8>, Option<WebSocketError>);

fn play<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Outcome {
    let (mut play, _) = Play::opening();
    play.out.clear();
    let failed = pieces.into_iter().find_map(|piece| play.feed(piece).err());
    (play.heard.messages, play.out, failed)
}

/// The answer to the key that every [`Play`] begins with.
fn greeting() -> Vec<u8> {
    Play::opening().1.into_bytes()
}

proptest! {
    #[test]
    fn any_cut_of_any_valid_stream_gives_the_same_messages(
        messages in prop::collection::vec(message(), 0..5),
        sizes in prop::collection::vec(1_usize..90, 1..12),
        goodbye in any::<bool>(),
    ) {
        let mut stream = greeting();
        stream.extend(messages.iter().flat_map(write));
        if goodbye {
            stream.extend(frame(frame::CLOSE, true, b"\x03\xe8bye"));
        }
        let right: Vec<_> = messages.iter().map(|message| (message.kind, message.bytes.clone())).collect();
        let whole = play([stream.as_slice()]);
        prop_assert_eq!(&whole.0, &right);
        prop_assert_eq!(whole.2.is_some(), goodbye);
        prop_assert_eq!(&play(stream.chunks(1)), &whole);
        prop_assert_eq!(&play(cut(&stream, &sizes)), &whole);
    }

    #[test]
    fn nearly_right_streams_never_panic(
        messages in prop::collection::vec(message(), 0..4),
        sizes in prop::collection::vec(1_usize..40, 1..6),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        greet in any::<bool>(),
    ) {
        let mut stream = if greet { greeting() } else { vec![] };
        stream.extend(messages.iter().flat_map(write));
        for (at, byte) in spoilt {
            if !stream.is_empty() {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
        }
        let whole = play([stream.as_slice()]);
        let pieces = play(cut(&stream, &sizes));
        prop_assert_eq!(&whole.0, &pieces.0);
        prop_assert_eq!(whole.2.as_ref().map(std::mem::discriminant), pieces.2.as_ref().map(std::mem::discriminant));
    }

    #[test]
    fn random_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let stream = [greeting(), bytes].concat();
        let (whole, pieces) = (play([stream.as_slice()]), play(cut(&stream, &sizes)));
        prop_assert_eq!(whole, pieces);
    }
}

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
