//! A message to all members of a room, as a worker drives it: it is answered when the last of them has it.

use crate::clock::Nanos;
use crate::outcome::Outcome;
use crate::protocol::websocket::frame::{Kind, framed_into};
use crate::protocol::{Delivered, Fault, Progress, Protocol, Rounds};

/// The room; what is said in it is the transport's.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// How many members there are, the one that speaks included.
    pub members: u32,
}

/// All have the message.
#[derive(Debug)]
pub struct Answer {
    /// Members that got another message under its number.
    wrong: u32,
}

/// One message at a time.
#[derive(Debug, Default)]
pub struct Broadcast {
    got: u32,
    wrong: u32,
    /// When the members of the last piece got it.
    moments: Vec<Nanos>,
}

impl Protocol for Broadcast {
    type Medium = Rounds;
    type Ask = Ask;
    type Answer = Answer;

    fn new() -> Self {
        Broadcast::default()
    }

    #[inline]
    fn begin<'a>(&mut self, _: &'a mut Ask, _: u64) -> &'a () {
        (self.got, self.wrong) = (0, 0);
        &()
    }

    #[inline]
    fn feed(&mut self, piece: Delivered<'_>, ask: &Ask) -> Result<Progress<Answer>, Fault> {
        // The cast is exact: there are fewer members than 2^32.
        self.got += piece.moments.len() as u32;
        self.wrong += piece.wrong;
        self.moments.clear();
        self.moments.extend_from_slice(piece.moments);
        match self.got < ask.members {
            true => Ok(Progress::More),
            false => Ok(Progress::Done(Answer { wrong: self.wrong })),
        }
    }

    fn eof(&mut self, _: &Ask) -> Result<Option<Answer>, Fault> {
        Ok(None)
    }

    #[inline]
    fn deliveries(&self) -> &[Nanos] {
        &self.moments
    }

    fn shortfall(&self, ask: &Ask) -> Option<String> {
        let members = ask.members;
        Some(format!("{} of {members} members had the message", self.got))
    }

    #[inline]
    fn judge(answer: &Answer, _: &Ask, _: Nanos) -> Outcome {
        match answer.wrong {
            0 => Outcome::Ok,
            _ => Outcome::WrongBody,
        }
    }

    fn explain(&self, answer: &Answer, ask: &Ask) -> String {
        let members = ask.members;
        format!(
            "{} of {members} members got another message under the number of this one",
            answer.wrong
        )
    }

    fn is_reusable(_: &Answer) -> bool {
        true
    }
}

/// Digits of a number: hexadecimal, so that it stands in text as well.
pub const DIGITS: usize = 16;

/// Where the number stands in a message that says it itself.
const PLACE: &[u8] = b"{id}";

/// See the module.
#[derive(Debug, Clone)]
pub struct Letter {
    kind: Kind,
    /// With digits where the number belongs.
    message: Vec<u8>,
    /// Where that is.
    at: usize,
}

/// What a message turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// The letter with this number; `right`: all else in it is as it was sent.
    Letter { number: u64, right: bool },
    /// Something else.
    Stranger,
}

impl Letter {
    /// A letter with these words: its number stands where they say `{id}`, else before them.
    #[must_use]
    pub fn new(kind: Kind, words: &[u8]) -> Letter {
        let digits = [b'0'; DIGITS];
        let (message, at) = match memchr::memmem::find(words, PLACE) {
            Some(at) => (
                [&words[..at], &digits, &words[at + PLACE.len()..]].concat(),
                at,
            ),
            None if words.is_empty() => (digits.to_vec(), 0),
            None => ([&digits[..], b" ", words].concat(), 0),
        };
        Letter { kind, message, at }
    }

    /// A letter of so many bytes; its number alone takes 16.
    #[must_use]
    pub fn of_size(size: usize) -> Letter {
        let message = vec![b'0'; size.max(DIGITS)];
        Letter {
            kind: Kind::Text,
            message,
            at: 0,
        }
    }

    /// How long it is.
    #[must_use]
    pub fn size(&self) -> usize {
        self.message.len()
    }

    /// Appends the frame of the letter with a number.
    pub fn write(&mut self, number: u64, mask: [u8; 4], out: &mut Vec<u8>) {
        for (place, digit) in self.message[self.at..self.at + DIGITS]
            .iter_mut()
            .enumerate()
        {
            let nibble = number >> (4 * (DIGITS - 1 - place)) & 0xf;
            // The cast is exact: a nibble.
            *digit = b"0123456789abcdef"[nibble as usize];
        }
        framed_into(out, self.kind, &self.message, mask);
    }
}

/// The reader of one message; keeps the digits and nothing else.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader {
    passed: usize,
    number: u64,
    stranger: bool,
    differs: bool,
}

impl Reader {
    /// Takes a piece of the message.
    pub fn take(&mut self, letter: &Letter, mut piece: &[u8]) {
        let (from, to) = (letter.at, letter.at + DIGITS);
        while !piece.is_empty() {
            let here = match self.passed {
                passed if passed < from => piece.len().min(from - passed),
                passed if passed < to => piece.len().min(to - passed),
                _ => piece.len(),
            };
            let (part, rest) = piece.split_at(here);
            if (from..to).contains(&self.passed) {
                self.digits(part);
            } else {
                let right = letter.message.get(self.passed..self.passed + here);
                self.differs |= right != Some(part);
            }
            self.passed += here;
            piece = rest;
        }
    }

    fn digits(&mut self, part: &[u8]) {
        for byte in part {
            match char::from(*byte).to_digit(16) {
                Some(digit) => self.number = self.number << 4 | u64::from(digit),
                None => self.stranger = true,
            }
        }
    }

    /// The message is complete, and another one may begin.
    pub fn end(&mut self, letter: &Letter, kind: Kind) -> Known {
        let Reader {
            passed,
            number,
            stranger,
            differs,
        } = std::mem::take(self);
        match stranger || passed < letter.at + DIGITS {
            true => Known::Stranger,
            false => Known::Letter {
                number,
                right: !differs && passed == letter.size() && kind == letter.kind,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::websocket::frame::masked;
    use proptest::prelude::*;

    fn written(letter: &mut Letter, number: u64) -> Vec<u8> {
        let mut frame = Vec::new();
        letter.write(number, [1, 2, 3, 4], &mut frame);
        let mut message = frame.split_off(frame.len() - letter.size());
        masked(&mut message, [1, 2, 3, 4]);
        message
    }

    fn read(letter: &Letter, message: &[u8], size: usize) -> Known {
        let mut reader = Reader::default();
        for piece in message.chunks(size) {
            reader.take(letter, piece);
        }
        reader.end(letter, Kind::Text)
    }

    #[test]
    fn a_letter_says_its_number_where_it_is_told_to() {
        let rows: &[(&str, &str)] = &[
            ("hello", "00000000000000ff hello"),
            ("", "00000000000000ff"),
            (
                r#"{"id": "{id}", "to": "all"}"#,
                r#"{"id": "00000000000000ff", "to": "all"}"#,
            ),
        ];
        for (words, message) in rows {
            let mut letter = Letter::new(Kind::Text, words.as_bytes());
            assert_eq!(written(&mut letter, 255), message.as_bytes());
        }
        assert_eq!(
            written(&mut Letter::of_size(20), 1),
            b"00000000000000010000"
        );
        assert_eq!(Letter::of_size(3).size(), DIGITS);
    }

    #[test]
    fn what_comes_back_is_known_or_a_stranger() {
        let mut letter = Letter::new(Kind::Text, b"a{id}b");
        let message = written(&mut letter, 7);
        let known = |right| Known::Letter { number: 7, right };
        assert_eq!(read(&letter, &message, 99), known(true));
        assert_eq!(
            read(&letter, &[&message[..], b"!"].concat(), 99),
            known(false)
        );
        assert_eq!(read(&letter, &message[..17], 99), known(false));
        assert_eq!(
            read(&letter, &[b"A", &message[1..]].concat(), 99),
            known(false)
        );
        for stranger in [&b"welcome"[..], b"", &message[..16], b"a00000000000000x7b"] {
            assert_eq!(read(&letter, stranger, 99), Known::Stranger);
        }
        let mut reader = Reader::default();
        reader.take(&letter, &message);
        assert_eq!(reader.end(&letter, Kind::Binary), known(false));
    }

    proptest! {
        #[test]
        fn any_cut_of_any_letter_reads_the_same(
            words in prop::collection::vec(any::<u8>(), 0..60), number in any::<u64>(), size in 1_usize..20,
        ) {
            let mut letter = Letter::new(Kind::Text, &words);
            let message = written(&mut letter, number);
            prop_assert_eq!(read(&letter, &message, size), Known::Letter { number, right: true });
        }
    }
}
