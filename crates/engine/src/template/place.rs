//! What can stand between the braces, and what is written for it.

use super::Occasion;
use crate::chance::mix;

/// As faults name them.
pub const KNOWN: &str = "{{n}} (the number of the request), {{i}} (that of the message in a gRPC call), {{random}}, {{random 1..100}}, {{hex 16}}, {{uuid}} and {{pick one|another}}";

/// More digits are a body, and that is better a file.
const MOST_DIGITS: u32 = 65_536;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Number,
    Index,
    /// The least, and how many there are beyond it.
    Random(u64, u64),
    Hex(u32),
    Uuid,
    Pick(Vec<String>),
}

impl Place {
    /// Reads what is between the braces; None: it stands for nothing.
    pub fn read(text: &str) -> Option<Place> {
        let (name, given) = match text.split_once(char::is_whitespace) {
            Some((name, given)) => (name, given.trim()),
            None => (text, ""),
        };
        match (name, given) {
            ("n", "") => Some(Place::Number),
            ("i", "") => Some(Place::Index),
            ("random", "") => Some(Place::Random(0, (1 << 31) - 1)),
            ("random", given) => {
                let (low, high) = given.split_once("..")?;
                let (low, high) = (low.trim().parse::<u64>().ok()?, high.trim().parse().ok()?);
                (low <= high).then(|| Place::Random(low, high - low))
            }
            ("hex", given) => {
                let digits = given.parse().ok()?;
                (1..=MOST_DIGITS)
                    .contains(&digits)
                    .then_some(Place::Hex(digits))
            }
            ("uuid", "") => Some(Place::Uuid),
            ("pick", given) if !given.is_empty() => Some(Place::Pick(
                given
                    .split('|')
                    .map(|word| word.trim().to_owned())
                    .collect(),
            )),
            _ => None,
        }
    }

    /// The words of a choice.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let words = match self {
            Place::Pick(words) => words.as_slice(),
            _ => &[],
        };
        words.iter().map(String::as_str)
    }

    #[inline]
    pub fn fill(&self, occasion: Occasion, salt: u64, out: &mut Vec<u8>) {
        match self {
            Place::Number => decimal(occasion.number, out),
            Place::Index => decimal(occasion.index, out),
            Place::Random(low, beyond) => decimal(low + below(occasion.draw(salt), *beyond), out),
            Place::Hex(digits) => {
                let mut drawn = occasion.draw(salt);
                for at in 0..*digits {
                    if at % 16 == 0 && at > 0 {
                        drawn = mix(drawn);
                    }
                    out.push(HEX[(drawn >> (4 * (at % 16)) & 0xf) as usize]);
                }
            }
            Place::Uuid => uuid(occasion.draw(salt), out),
            Place::Pick(words) => {
                let which = below(occasion.draw(salt), words.len() as u64 - 1);
                out.extend_from_slice(words[which as usize].as_bytes());
            }
        }
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A number from 0 to `most`, of one that is drawn from all.
fn below(drawn: u64, most: u64) -> u64 {
    ((u128::from(drawn) * (u128::from(most) + 1)) >> 64) as u64
}

/// Decimal digits.
pub fn decimal(mut number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return out.extend_from_slice(&digits[at..]);
        }
    }
}

fn uuid(drawn: u64, out: &mut Vec<u8>) {
    let more = mix(drawn);
    let mut bits = u128::from(drawn) << 64 | u128::from(more);
    // Version 4 and the variant of RFC 9562, section 5.4.
    bits = bits & !(0xf << 76) | 0x4 << 76;
    bits = bits & !(0x3 << 62) | 0x2 << 62;
    for digit in 0..32 {
        if [8, 12, 16, 20].contains(&digit) {
            out.push(b'-');
        }
        out.push(HEX[(bits >> (4 * (31 - digit)) & 0xf) as usize]);
    }
}
