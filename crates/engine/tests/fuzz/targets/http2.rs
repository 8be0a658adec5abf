//! Frames of a hostile server, whole and in pieces, through a session with requests in flight: no panic, the same
//! events either way, and no more written than a server could make an honest client write.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::protocol::http2::{RequestHead, Session, Settings, StreamEvent};

const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const REQUESTS: u32 = 4;
const BODY: usize = 80_000;

/// Makes frames of arbitrary bytes, so that most of them get past the first check: kind, flags, stream and length
/// are a byte each, the payload follows. Some stay as they are.
fn frames(mut input: &[u8]) -> Vec<u8> {
    let mut stream = SETTINGS.to_vec();
    while let [kind, flags, id, length, rest @ ..] = input {
        let (payload, after) = rest.split_at(rest.len().min(usize::from(*length)));
        if *kind < 250 {
            stream.extend_from_slice(&[
                0,
                0,
                payload.len() as u8,
                kind % 11,
                *flags,
                0,
                0,
                0,
                id % 12,
            ]);
        }
        stream.extend_from_slice(payload);
        input = after;
    }
    stream
}

type Events = Vec<(u32, String)>;

fn play(stream: &[u8], size: usize, head: &RequestHead) -> (Events, Vec<u8>, bool) {
    let mut session = Session::new(Settings::default());
    let (mut out, mut events) = (Vec::new(), Events::new());
    session.open(&mut out);
    let mut failed = false;
    let (greeting, rest) = stream.split_at(stream.len().min(9));
    for piece in [greeting].into_iter().chain(rest.chunks(size)) {
        let mut tags = Vec::new();
        let fed = session.feed(piece, &mut out, |tag, event| {
            if event.ends() {
                tags.push(tag);
            }
            match (event, events.last_mut()) {
                (StreamEvent::Data { bytes, end: false }, Some((before, text)))
                    if *before == tag && text.starts_with("data ") =>
                {
                    *text += &bytes.escape_ascii().to_string();
                }
                (StreamEvent::Data { bytes, end: false }, _) => {
                    events.push((tag, format!("data {}", bytes.escape_ascii())));
                }
                (StreamEvent::Data { bytes, end: true }, _) => {
                    // Where the end is told depends on the cut: joined or alone it is the same.
                    if !bytes.is_empty() {
                        match events.last_mut() {
                            Some((before, text)) if *before == tag && text.starts_with("data ") => {
                                *text += &bytes.escape_ascii().to_string();
                            }
                            _ => events.push((tag, format!("data {}", bytes.escape_ascii()))),
                        }
                    }
                    events.push((tag, "end".into()));
                }
                _ => events.push((tag, format!("{event:?}"))),
            }
        });
        for tag in tags {
            assert!(
                session.send(tag, b"x", false, &mut Vec::new()).is_err(),
                "tag {tag} has ended"
            );
        }
        failed |= fed.is_err();
        if session.is_ready()
            && session.in_flight() == 0
            && session.room() == 100
            && events.is_empty()
        {
            for tag in 0..REQUESTS {
                let body = if tag == 0 {
                    vec![b'u'; BODY]
                } else {
                    Vec::new()
                };
                let _ = session.begin(tag, head, &body, tag % 2 == 0, &mut out);
            }
        }
    }
    let _ = session.eof();
    (events, out, failed)
}

pub fn check(bytes: &[u8]) {
    let input = <(u8, &[u8])>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok((size, input)) = input else { return };
    let head = RequestHead::new("POST", "http", "a:1", "/x", &[("te", "trailers")]).unwrap();
    let stream = frames(input);
    let whole = play(&stream, stream.len(), &head);
    let pieces = play(&stream, usize::from(size) + 1, &head);
    assert_eq!(whole, pieces);
    // A PING is answered by as much as it took; an upload is written once.
    assert!(
        whole.1.len() <= 2 * stream.len() + 2 * BODY + 1000,
        "{}",
        whole.1.len()
    );
}
