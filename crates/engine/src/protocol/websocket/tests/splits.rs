//! However a stream of frames is cut into segments, the same messages come out.

use super::*;
use proptest::prelude::*;

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
