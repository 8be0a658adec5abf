//! However a stream of frames is cut into segments, the same events come out; and no bytes make it panic.

use super::*;
use proptest::prelude::*;

/// What a server does on one stream, and on the connection between.
#[derive(Debug, Clone)]
enum Deed {
    Interim,
    Head {
        status: u16,
        extra: Vec<(String, String)>,
        pieces: usize,
        padding: u8,
    },
    Body {
        bytes: Vec<u8>,
        padding: Option<u8>,
    },
    Ping,
    Settings,
    Unknown(Vec<u8>),
}

/// How an answer ends after its deeds.
#[derive(Debug, Clone)]
enum Ending {
    Data(Vec<u8>),
    Trailers { status: u32, message: String },
    Reset(u32),
}

#[derive(Debug, Clone)]
struct Answer {
    deeds: Vec<Deed>,
    ending: Ending,
}

fn deed() -> impl Strategy<Value = Deed> {
    let bytes = prop::collection::vec(any::<u8>(), 0..400);
    prop_oneof![
        4 => (bytes.clone(), prop::option::of(any::<u8>()))
            .prop_map(|(bytes, padding)| Deed::Body { bytes, padding }),
        1 => Just(Deed::Ping),
        1 => Just(Deed::Settings),
        1 => bytes.prop_map(Deed::Unknown),
    ]
}

prop_compose! {
    fn answer()(
        interim in any::<bool>(),
        status in 200_u16..600,
        extra in prop::collection::vec(("x-[a-z]{1,8}", "[ -~]{0,40}"), 0..4),
        pieces in 1_usize..5,
        padding in any::<u8>(),
        deeds in prop::collection::vec(deed(), 0..6),
        ending in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..50).prop_map(Ending::Data),
            (0_u32..20, "[ -~]{0,30}").prop_map(|(status, message)| Ending::Trailers { status, message }),
            (0_u32..14).prop_map(Ending::Reset),
        ],
    ) -> Answer {
        let mut all = vec![Deed::Interim; usize::from(interim)];
        all.push(Deed::Head { status, extra, pieces, padding });
        all.extend(deeds);
        Answer { deeds: all, ending }
    }
}

/// The frames of one deed on a stream, and what has to be heard of them under its tag.
fn write(deed: &Deed, stream: u32, tag: u32, right: &mut Vec<Seen>) -> Vec<u8> {
    match deed {
        Deed::Interim => headers(stream, &[(":status", "103")], false),
        Deed::Ping => frame(Kind::PING, 0, 0, b"abcdefgh"),
        Deed::Settings => settings(&[(3, 100)]),
        Deed::Unknown(bytes) => frame(Kind(0x77), 0xff, stream, bytes),
        Deed::Head {
            status,
            extra,
            pieces,
            padding,
        } => {
            let status_text = status.to_string();
            let mut fields = vec![(":status", status_text.as_str())];
            fields.extend(
                extra
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str())),
            );
            right.push(Seen::Head(tag, *status, GrpcStatus::Missing, vec![], false));
            let whole = block(&fields);
            let mut parts = whole.chunks(whole.len().div_ceil(*pieces));
            let mut first = vec![*padding];
            first.extend_from_slice(parts.next().unwrap());
            first.resize(first.len() + usize::from(*padding), 0);
            let last = parts.len() == 0;
            let flag = frame::PADDED | if last { END_HEADERS } else { 0 };
            let mut bytes = frame(Kind::HEADERS, flag, stream, &first);
            let count = parts.len();
            for (number, part) in parts.enumerate() {
                let flag = if number + 1 == count { END_HEADERS } else { 0 };
                bytes.extend(frame(Kind::CONTINUATION, flag, stream, part));
            }
            bytes
        }
        Deed::Body { bytes, padding } => {
            if !bytes.is_empty() {
                hear(right, tag, StreamEvent::Data { bytes, end: false });
            }
            let Some(padding) = padding else {
                return data(stream, bytes, false);
            };
            let mut payload = vec![*padding];
            payload.extend_from_slice(bytes);
            payload.resize(payload.len() + usize::from(*padding), 0);
            frame(Kind::DATA, frame::PADDED, stream, &payload)
        }
    }
}

fn write_ending(ending: &Ending, stream: u32, tag: u32, right: &mut Vec<Seen>) -> Vec<u8> {
    match ending {
        Ending::Data(bytes) => {
            hear(right, tag, StreamEvent::Data { bytes, end: true });
            data(stream, bytes, true)
        }
        Ending::Trailers { status, message } => {
            let text = message.as_bytes().to_vec();
            right.push(Seen::Trailers(tag, GrpcStatus::Code(*status), text));
            let status = status.to_string();
            headers(
                stream,
                &[("grpc-status", &status), ("grpc-message", message)],
                true,
            )
        }
        Ending::Reset(code) => {
            right.push(match *code {
                REFUSED_STREAM => Seen::Refused(tag),
                code => Seen::Reset(tag, code),
            });
            frame(Kind::RST_STREAM, 0, stream, &code.to_be_bytes())
        }
    }
}

/// Frames of several answers, mixed in the order that `turns` say.
fn mix(answers: &[Answer], turns: &[usize]) -> (Vec<u8>, Vec<Seen>) {
    let mut bytes = settings(&[]);
    let mut right = vec![];
    let mut left: Vec<_> = answers.iter().map(|answer| answer.deeds.iter()).collect();
    let mut open: Vec<usize> = (0..answers.len()).collect();
    let mut turns = turns.iter().cycle();
    while !open.is_empty() {
        let at = turns.next().unwrap() % open.len();
        let number = open[at];
        let (stream, tag) = (2 * number as u32 + 1, number as u32);
        match left[number].next() {
            Some(deed) => bytes.extend(write(deed, stream, tag, &mut right)),
            None => {
                bytes.extend(write_ending(
                    &answers[number].ending,
                    stream,
                    tag,
                    &mut right,
                ));
                open.remove(at);
            }
        }
    }
    (bytes, right)
}

/// Plays pieces to a session with so many requests in flight.
fn play<'p>(
    requests: usize,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (Vec<Seen>, Vec<u8>, bool) {
    let mut session = Session::new(Settings::default());
    let (mut out, mut heard) = (vec![], vec![]);
    session.open(&mut out);
    let mut failed = false;
    for piece in pieces {
        let fed = session.feed(piece, &mut out, |tag, event| hear(&mut heard, tag, event));
        failed |= fed.is_err();
        if session.is_ready() && session.next_id == 1 {
            let head = get();
            for tag in 0..requests as u32 {
                session
                    .begin(tag, &head, b"body", tag % 2 == 0, &mut out)
                    .unwrap();
            }
        }
    }
    (heard, out, failed)
}

/// Cuts after the nine bytes of the server's SETTINGS, then after the given numbers of bytes, over and over.
fn cut<'s>(stream: &'s [u8], sizes: &[usize]) -> Vec<&'s [u8]> {
    let (start, mut rest) = stream.split_at(stream.len().min(9));
    let mut pieces = vec![start];
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

/// Fragments from which streams are put together that get deep into the session before they go wrong.
fn shards() -> Vec<Vec<u8>> {
    vec![
        headers(1, &[(":status", "200"), ("grpc-status", "0")], false),
        headers(3, &[(":status", "200"), ("grpc-message", "x%20y")], true),
        frame(Kind::HEADERS, 0, 1, &[0x88]),
        frame(Kind::CONTINUATION, END_HEADERS, 1, &[0xbe]),
        frame(Kind::CONTINUATION, 0, 3, &[0xbf, 0x40]),
        frame(
            Kind::HEADERS,
            END_HEADERS | frame::PADDED | frame::PRIORITY,
            5,
            &[1, 0, 0, 0, 0, 0, 0x88, 0],
        ),
        frame(
            Kind::HEADERS,
            END_HEADERS,
            1,
            &[0x3f, 0xe1, 0x1f, 0xbe, 0xbf],
        ),
        data(1, b"\0\0\0\0\x03abc", false),
        data(3, b"", true),
        frame(Kind::DATA, frame::PADDED, 1, &[2, 7, 0, 0]),
        frame(Kind::RST_STREAM, 0, 5, &[0, 0, 0, 7]),
        frame(Kind::PING, 0, 0, b"12345678"),
        frame(Kind::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]),
        settings(&[(4, 0), (1, 0)]),
        settings(&[(4, 0x7fff_ffff), (5, 20_000)]),
        window_update(0, 100),
        window_update(1, 0x7fff_0000),
        frame(Kind(200), 0, 0, b"??"),
        b"\0\0".to_vec(),
        b"\xff".to_vec(),
        b"HTTP/1.1 200 OK\r\n".to_vec(),
    ]
}

/// That a fault is found, and all that was heard before it, may not depend on the cut. What is written may: windows
/// are widened as pieces come.
fn same_in_pieces(stream: &[u8], sizes: &[usize]) -> Result<(), TestCaseError> {
    let whole = play(3, cut(stream, &[usize::MAX]));
    let pieces = play(3, cut(stream, sizes));
    prop_assert_eq!(&whole.0, &pieces.0, "{}", stream.escape_ascii());
    prop_assert_eq!(whole.2, pieces.2, "{}", stream.escape_ascii());
    prop_assert_eq!(&whole.1, &pieces.1);
    Ok(())
}

proptest! {
    #[test]
    fn any_cut_of_any_valid_stream_gives_the_same_events(
        answers in prop::collection::vec(answer(), 1..5),
        turns in prop::collection::vec(0_usize..4, 1..12),
        sizes in prop::collection::vec(1_usize..90, 1..12),
    ) {
        let (stream, right) = mix(&answers, &turns);
        let whole = play(answers.len(), cut(&stream, &[usize::MAX]));
        prop_assert!(!whole.2);
        prop_assert_eq!(per_stream(&whole.0), per_stream(&right));
        prop_assert_eq!(&play(answers.len(), cut(&stream, &[1])), &whole);
        prop_assert_eq!(&play(answers.len(), cut(&stream, &sizes)), &whole);
    }

    #[test]
    fn nearly_right_streams_never_panic(
        picks in prop::collection::vec(0_usize..21, 0..24),
        sizes in prop::collection::vec(1_usize..30, 1..6),
        (at, byte) in (any::<prop::sample::Index>(), any::<u8>()),
    ) {
        let shards = shards();
        let mut stream = settings(&[]);
        stream.extend(picks.into_iter().flat_map(|pick| shards[pick].clone()));
        same_in_pieces(&stream, &sizes)?;
        let at = at.index(stream.len() - 9 + 1) + 9;
        if let Some(place) = stream.get_mut(at) {
            *place = byte;
        }
        same_in_pieces(&stream, &sizes)?;
    }

    #[test]
    fn random_bytes_never_panic(
        stream in prop::collection::vec(any::<u8>(), 0..400),
        sizes in prop::collection::vec(1_usize..50, 1..4),
        greet in any::<bool>(),
    ) {
        let stream = [if greet { settings(&[]) } else { vec![] }, stream].concat();
        same_in_pieces(&stream, &sizes)?;
    }
}

/// Data is joined where pieces of one stream follow each other, so other streams between them show: by stream they
/// do not.
fn per_stream(heard: &[Seen]) -> Vec<Vec<Seen>> {
    let mut streams = vec![vec![]; 4];
    for event in heard {
        match event.clone() {
            Seen::Data(tag, bytes, end) => {
                hear(
                    &mut streams[tag as usize],
                    tag,
                    StreamEvent::Data { bytes: &bytes, end },
                );
            }
            other => streams[other.tag() as usize].push(other),
        }
    }
    streams
}

impl Seen {
    fn tag(&self) -> u32 {
        match self {
            Seen::Head(tag, ..)
            | Seen::Data(tag, ..)
            | Seen::Trailers(tag, ..)
            | Seen::Reset(tag, _)
            | Seen::Refused(tag)
            | Seen::Malformed(tag, _) => *tag,
        }
    }
}
