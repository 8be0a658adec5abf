//! Any bytes as requests to the simulated third party, whole and in pieces: no panic, the same requests either way, and
//! no latency but by the field of a query that is its own.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::upstream::{Incoming, Request, Requests};

/// What is heard, and whether it ended with what is no request.
fn heard(stream: &[u8], size: usize) -> (Vec<Request>, bool) {
    let mut requests = Requests::new();
    let mut found = Vec::new();
    for mut piece in stream.chunks(size) {
        while !piece.is_empty() {
            match requests.hear(piece) {
                Ok((used, what)) => {
                    assert!(used > 0 && used <= piece.len());
                    piece = &piece[used..];
                    if let Incoming::Whole(request) = what {
                        found.push(request);
                    }
                }
                Err(_) => return (found, true),
            }
        }
    }
    (found, false)
}

pub fn check(bytes: &[u8]) {
    let Ok((size, stream)) = <(u8, &[u8])>::arbitrary_take_rest(Unstructured::new(bytes)) else {
        return;
    };
    let whole = heard(stream, stream.len().max(1));
    let pieces = heard(stream, usize::from(size) + 1);
    assert_eq!(whole.0, pieces.0);
    // A head that comes in pieces is looked at when it is whole: one without an end is refused only later.
    assert!(whole.1 || !pieces.1);
    let names_ours = stream
        .windows(b"velodrome-latency=".len())
        .any(|window| window == b"velodrome-latency=");
    let asks = whole.0.iter().any(|request| request.latency.is_some());
    assert!(names_ours || !asks);
}
