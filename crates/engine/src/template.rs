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

mod place;
#[cfg(test)]
mod tests;

use crate::chance::mix;
use crate::spec::SpecError;
use place::Place;
pub use place::decimal;

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
                    place::KNOWN
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
