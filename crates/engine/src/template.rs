//! Text with places in it for what differs from request to request: `/items/{{random 1..100}}`.
//!
//! | place | is |
//! |---|---|
//! | `{{n}}` | the number of the request, from 0, over all threads |
//! | `{{i}}` | the number of the message within its gRPC call, from 0 |
//! | `{{random}}` | a whole number below 2³¹, which fits every type of number |
//! | `{{random 1..100}}` | one of these, both ends included |
//! | `{{hex 16}}` | so many random hexadecimal digits |
//! | `{{uuid}}` | a random UUID (RFC 9562, version 4) |
//! | `{{pick red\|green\|blue}}` | one of these words |
//!
//! What is drawn follows from the seed, the number of the request and the place: the same load is the same again.
//! Filling writes behind what is there, so in the steady state nothing is allocated.

#[cfg(test)]
mod tests;

use crate::chance::mix;
use crate::spec::SpecError;

/// What a template is filled for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occasion {
    /// Draws what is random.
    pub seed: u64,
    /// Number of the request.
    pub number: u64,
    /// Number of the message in it.
    pub index: u64,
}

impl Occasion {
    /// A number that no other place of no other request is drawn.
    fn draw(self, place: u64) -> u64 {
        mix(mix(mix(self.seed ^ self.number) ^ self.index) ^ place)
    }
}

#[derive(Clone, Debug)]
enum Part {
    Text(Vec<u8>),
    /// A place, and what tells its draws from those of others.
    Place(Place, u64),
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Template(Vec<Part>);

impl Template {
    /// Text in which nothing changes.
    #[must_use]
    pub fn fixed(text: impl Into<Vec<u8>>) -> Template {
        Template(vec![Part::Text(text.into())])
    }

    /// Reads a template; `option` is what to call it in a fault. `salt` tells its draws from those of another template
    /// that is filled for the same request.
    pub fn read(option: &str, text: &[u8], salt: u64) -> Result<Template, SpecError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(begin) = memchr::memmem::find(rest, b"{{") {
            let Some(length) = memchr::memmem::find(&rest[begin + 2..], b"}}") else {
                break;
            };
            let named = &rest[begin + 2..begin + 2 + length];
            let place = std::str::from_utf8(named)
                .ok()
                .and_then(|named| Place::read(named.trim()));
            let Some(place) = place else {
                return Err(SpecError(format!(
                    "{option}: {{{{{}}}}} stands for nothing; there are {}",
                    String::from_utf8_lossy(named),
                    KNOWN
                )));
            };
            parts.push(Part::Text(rest[..begin].to_vec()));
            // Text and place take turns, so each place has a number of its own.
            parts.push(Part::Place(place, (salt << 16) + parts.len() as u64));
            rest = &rest[begin + 4 + length..];
        }
        parts.push(Part::Text(rest.to_vec()));
        Ok(Template(parts))
    }

    /// Whether it is the same each time.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Whether every text in it passes, that a place may put in too.
    pub fn is_made_of(&self, allowed: impl Fn(&[u8]) -> bool) -> bool {
        self.0.iter().all(|part| match part {
            Part::Text(text) => allowed(text),
            Part::Place(place, _) => place.words().all(|word| allowed(word.as_bytes())),
        })
    }

    /// This one, and another behind it.
    #[must_use]
    pub fn then(mut self, other: Template) -> Template {
        for part in other.0 {
            match (self.0.last_mut(), part) {
                (Some(Part::Text(text)), Part::Text(more)) => text.extend_from_slice(&more),
                (_, part) => self.0.push(part),
            }
        }
        self
    }

    /// This one, and text behind it.
    #[must_use]
    pub fn text(self, text: impl AsRef<[u8]>) -> Template {
        self.then(Template::fixed(text.as_ref()))
    }

    /// Writes it, filled in, behind what is in `out`.
    #[inline]
    pub fn fill(&self, occasion: Occasion, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Text(text) => out.extend_from_slice(text),
                Part::Place(place, salt) => place.fill(occasion, *salt, out),
            }
        }
    }

    /// The same in a buffer of its own.
    #[must_use]
    pub fn filled(&self, occasion: Occasion) -> Vec<u8> {
        let mut out = Vec::new();
        self.fill(occasion, &mut out);
        out
    }
}

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
