//! Any bytes, whole and in pieces, through the parser: no panic, and the same answers either way; also where the kernel
//! discards bodies that nobody compares.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::protocol::http1::{Answer, Http1, Parsed};

const EXPECTED: Option<&[u8]> = Some(b"hello");

struct Reading {
    parser: Http1,
    head: bool,
    compare: bool,
    answers: Vec<Answer>,
}

impl Reading {
    fn of(head: bool, compare: bool) -> Self {
        let mut parser = Http1::new();
        parser.begin(head, compare);
        Self {
            parser,
            head,
            compare,
            answers: Vec::new(),
        }
    }

    fn answered(&mut self, answer: Answer) {
        self.answers.push(answer);
        self.parser.begin(self.head, self.compare);
    }

    /// Whether it goes on.
    fn take(&mut self, mut piece: &[u8]) -> bool {
        while !piece.is_empty() {
            match self.parser.feed(piece, EXPECTED) {
                Ok(Parsed::More) => return true,
                Ok(Parsed::Done { consumed, answer }) => {
                    assert!(consumed > 0);
                    piece = &piece[consumed..];
                    self.answered(answer);
                }
                Err(_) => return false,
            }
        }
        true
    }

    /// All answers, and whether it ended with a fault.
    fn end(mut self, fault: bool) -> (Vec<Answer>, bool) {
        if fault {
            return (self.answers, true);
        }
        let last = self.parser.eof(EXPECTED);
        let fault = last.is_err();
        self.answers.extend(last.ok().flatten());
        (self.answers, fault)
    }
}

fn answers(stream: &[u8], size: usize, head: bool, compare: bool) -> (Vec<Answer>, bool) {
    let mut reading = Reading::of(head, compare);
    let fault = !stream.chunks(size).all(|piece| reading.take(piece));
    reading.end(fault)
}

/// As where bodies are discarded unread, in pieces of so many bytes.
fn skipping(mut stream: &[u8], size: usize, head: bool) -> (Vec<Answer>, bool) {
    let mut reading = Reading::of(head, false);
    while !stream.is_empty() {
        let left = reading.parser.skippable().min(stream.len() as u64) as usize;
        let (piece, rest) = stream.split_at(if left > 0 {
            left
        } else {
            size.min(stream.len())
        });
        stream = rest;
        if left > 0 {
            if let Some(answer) = reading.parser.skip(left as u64, EXPECTED) {
                reading.answered(answer);
            }
        } else if !reading.take(piece) {
            return reading.end(true);
        }
    }
    reading.end(false)
}

pub fn check(bytes: &[u8]) {
    let input = <(u8, bool, &[u8])>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok((size, head, stream)) = input else {
        return;
    };
    let size = usize::from(size) + 1;
    let whole = answers(stream, stream.len().max(1), head, true);
    assert_eq!(whole, answers(stream, size, head, true));
    let unseen = answers(stream, size, head, false);
    assert_eq!(unseen, skipping(stream, size, head));
    assert_eq!(unseen.0.len(), whole.0.len());
}
