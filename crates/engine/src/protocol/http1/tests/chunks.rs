//! However a body in chunks is cut into segments, the same data come out, and its end is found at the same byte.

use super::super::chunked::Chunks;
use proptest::prelude::*;

#[derive(Debug, Clone)]
struct Chunk {
    data: Vec<u8>,
    zeros: usize,
    upper: bool,
    extension: String,
    line: &'static str,
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["\r\n", "\n"])
}

prop_compose! {
    fn chunk(most: usize)(
        data in prop::collection::vec(any::<u8>(), 1..most),
        zeros in 0_usize..20,
        upper in any::<bool>(),
        extension in "([;\t ][ -~]{0,20})?",
        line in line(),
    ) -> Chunk {
        Chunk { data, zeros, upper, extension, line }
    }
}

impl Chunk {
    fn write(&self, out: &mut Vec<u8>) {
        let size = match self.upper {
            true => format!("{:X}", self.data.len()),
            false => format!("{:x}", self.data.len()),
        };
        let zeros = "0".repeat(self.zeros);
        out.extend(format!("{zeros}{size}{}{}", self.extension, self.line).bytes());
        out.extend(&self.data);
        out.extend(self.line.bytes());
    }
}

/// The data, and at which byte the body ended.
fn read<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> (Vec<u8>, Option<usize>) {
    let (mut chunks, mut data, mut before) = (Chunks::new(), Vec::new(), 0);
    for piece in pieces {
        let (used, complete) = chunks
            .feed(piece, |bytes| data.extend_from_slice(bytes))
            .unwrap();
        if complete {
            return (data, Some(before + used));
        }
        assert_eq!(used, piece.len());
        before += used;
    }
    (data, None)
}

proptest! {
    #[test]
    fn any_cut_of_any_valid_body_gives_the_same_data_and_the_same_end(
        chunks in prop::collection::vec(chunk(60), 0..8),
        (zeros, end) in (1_usize..5, line()),
        trailers in prop::collection::vec("[A-Za-z-]{1,12}:[ -~]{0,20}", 0..3),
        behind in prop::collection::vec(any::<u8>(), 0..20),
        sizes in prop::collection::vec(1_usize..90, 1..12),
    ) {
        let mut stream = Vec::new();
        chunks.iter().for_each(|chunk| chunk.write(&mut stream));
        stream.extend(format!("{}{end}", "0".repeat(zeros)).bytes());
        for trailer in trailers {
            stream.extend(format!("{trailer}{end}").bytes());
        }
        stream.extend(end.bytes());
        let data: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.data.clone()).collect();
        let right = (data, Some(stream.len()));
        stream.extend(behind);
        prop_assert_eq!(&read([stream.as_slice()]), &right, "whole: {}", stream.escape_ascii());
        prop_assert_eq!(&read(stream.chunks(1)), &right, "byte by byte: {}", stream.escape_ascii());
        let (mut rest, mut pieces) = (stream.as_slice(), Vec::new());
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(&read(pieces), &right, "cut: {}", stream.escape_ascii());
    }
}
