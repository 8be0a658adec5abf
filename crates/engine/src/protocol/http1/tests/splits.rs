//! However a stream is cut into segments, the same answers come out.

use super::*;
use proptest::prelude::*;

/// An answer as some server writes it, with what has to come out of it.
#[derive(Debug, Clone)]
struct Written {
    bytes: Vec<u8>,
    body: Vec<u8>,
    head: bool,
    status: u16,
    keep_alive: bool,
}

impl Written {
    fn asked(&self) -> Asked<'_> {
        Asked {
            head: self.head,
            compare: true,
            expected: Some(&self.body),
        }
    }

    fn answer(&self) -> Answer {
        let bodiless = self.head || matches!(self.status, 204 | 304);
        let (body_len, body) = match bodiless {
            true => (0, BodyCheck::Unchecked),
            false => (self.body.len() as u64, BodyCheck::Right),
        };
        Answer {
            status: self.status,
            keep_alive: self.keep_alive,
            body_len,
            body,
        }
    }
}

#[derive(Debug, Clone)]
enum Ending {
    Length,
    Chunks {
        sizes: Vec<usize>,
        extension: String,
        trailers: Vec<(String, String)>,
    },
}

fn ending() -> impl Strategy<Value = Ending> {
    let trailers = prop::collection::vec(("[A-Za-z-]{1,12}", "[ -~]{0,20}"), 0..3);
    let chunks = (
        prop::collection::vec(1_usize..40, 1..6),
        "(;[a-z]{1,5}(=[a-z]{1,3})?)?",
        trailers,
    )
        .prop_map(|(sizes, extension, trailers)| Ending::Chunks {
            sizes,
            extension,
            trailers,
        });
    prop_oneof![Just(Ending::Length), chunks]
}

prop_compose! {
    fn written()(
        status in prop::sample::select(vec![200_u16, 201, 204, 304, 404, 500]),
        body in prop::collection::vec(any::<u8>(), 0..300),
        ending in ending(),
        line in prop::sample::select(vec!["\r\n", "\n"]),
        interim in 0_usize..3,
        blank in any::<bool>(),
        extra in prop::collection::vec(("X-[A-Za-z-]{1,12}", "[!-~]([ -~]{0,30}[!-~])?"), 0..4),
        connection in prop::sample::select(vec!["", "Connection: close", "connection: x, CLOSE", "Connection: Keep-Alive"]),
        (version, head) in (0_u8..2, any::<bool>()),
    ) -> Written {
        let mut text = String::new();
        if blank { text.push_str(line); }
        for _ in 0..interim { text += &format!("HTTP/1.1 103 Early Hints{line}Link: </x>{line}{line}"); }
        text += &format!("HTTP/1.{version} {status} Some Reason{line}");
        for (name, value) in extra { text += &format!("{name}: {value}{line}"); }
        if !connection.is_empty() { text += &format!("{connection}{line}"); }
        match &ending {
            Ending::Length => text += &format!("Content-Length: {}{line}{line}", body.len()),
            Ending::Chunks { .. } => text += &format!("Transfer-Encoding: chunked{line}{line}"),
        }
        let mut bytes = text.into_bytes();
        if !head && !matches!(status, 204 | 304) { write_body(&mut bytes, &body, &ending, line); }
        let lower = connection.to_ascii_lowercase();
        let keep_alive = if version == 0 { lower.contains("keep-alive") } else { !lower.contains("close") };
        Written { bytes, body, head, status, keep_alive }
    }
}

fn write_body(bytes: &mut Vec<u8>, body: &[u8], ending: &Ending, line: &str) {
    let Ending::Chunks {
        sizes,
        extension,
        trailers,
    } = ending
    else {
        bytes.extend_from_slice(body);
        return;
    };
    let mut rest = body;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        bytes.extend_from_slice(format!("{:X}{extension}{line}", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(line.as_bytes());
        rest = after;
    }
    bytes.extend_from_slice(format!("0{line}").as_bytes());
    for (name, value) in trailers {
        bytes.extend_from_slice(format!("{name}: {value}{line}").as_bytes());
    }
    bytes.extend_from_slice(line.as_bytes());
}

/// Cuts a stream after the given numbers of bytes, over and over.
fn cut<'s>(stream: &'s [u8], sizes: &[usize]) -> Vec<&'s [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), stream);
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

proptest! {
    #[test]
    fn any_cut_of_any_valid_stream_gives_the_same_answers(
        written in prop::collection::vec(written(), 1..4),
        sizes in prop::collection::vec(1_usize..90, 1..12),
    ) {
        let stream = written.iter().flat_map(|one| one.bytes.clone()).collect::<Vec<_>>();
        let asked = written.iter().map(Written::asked).collect::<Vec<_>>();
        let right = Heard { answers: written.iter().map(Written::answer).collect(), failed: None };
        prop_assert_eq!(&play(&asked, [stream.as_slice()]), &right, "whole: {}", stream.escape_ascii());
        prop_assert_eq!(&play(&asked, stream.chunks(1)), &right, "byte by byte: {}", stream.escape_ascii());
        prop_assert_eq!(&play(&asked, cut(&stream, &sizes)), &right, "cut: {}", stream.escape_ascii());
    }

    #[test]
    fn a_body_that_ends_with_the_connection_is_the_same_in_any_cut(
        body in prop::collection::vec(any::<u8>(), 0..300),
        sizes in prop::collection::vec(1_usize..90, 1..12),
    ) {
        let stream = [b"HTTP/1.0 200 OK\n\n".as_slice(), &body].concat();
        let answer = Answer { status: 200, keep_alive: false, body_len: body.len() as u64, body: BodyCheck::Right };
        let heard = play(&[Asked::expecting(&body)], cut(&stream, &sizes));
        prop_assert_eq!(heard, Heard { answers: vec![answer], failed: None });
    }
}
