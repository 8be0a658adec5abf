//! Frames of a hostile server after a right handshake, and any bytes instead of one, whole and in pieces: no panic,
//! the same messages and the same end either way, and no more written than was asked for.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::protocol::websocket::{Event, Kind, Piece, Session, Upgrade, accept};

type Messages = Vec<(Kind, Vec<u8>)>;

fn play(stream: &[u8], greet: bool, size: usize) -> (Messages, Vec<u8>, Option<String>) {
    let mut upgrade = Upgrade::new("a", "/", &[]).unwrap();
    let (mut session, mut out) = (Session::new(1000), Vec::new());
    let key = session.open(&mut upgrade, &mut out);
    out.clear();
    if greet {
        let head = format!(
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: {}\r\n\r\n",
            accept(&key)
        );
        session.feed(head.as_bytes(), &mut out, |_| {}).unwrap();
    }
    let (mut messages, mut rest) = (Messages::new(), Vec::new());
    let failed = stream.chunks(size).find_map(|piece| {
        let fed = session.feed(piece, &mut out, |event| {
            if let Event::Data(Piece { kind, bytes, end }) = event {
                rest.extend_from_slice(bytes);
                assert!(rest.len() <= 1000);
                if end {
                    assert!(kind == Kind::Binary || std::str::from_utf8(&rest).is_ok());
                    messages.push((kind, std::mem::take(&mut rest)));
                }
            }
        });
        fed.err()
    });
    assert_eq!(
        failed.is_some(),
        session.feed(&[], &mut Vec::new(), |_| {}).is_err()
    );
    // An excerpt of what does not speak HTTP is as long as its first piece.
    let failed = failed.map(|error| {
        if greet {
            error.to_string()
        } else {
            String::new()
        }
    });
    (messages, out, failed)
}

pub fn check(bytes: &[u8]) {
    let input = <(u8, bool, &[u8])>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok((size, greet, stream)) = input else {
        return;
    };
    let whole = play(stream, greet, stream.len().max(1));
    assert_eq!(whole, play(stream, greet, usize::from(size) + 1));
    assert!(whole.1.len() <= 4 * stream.len() + 8);
}
