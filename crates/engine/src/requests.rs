//! What an HTTP load asks: one request or several by weight, each the same every time or filled in anew.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::chance::{mix, unit};
use crate::place::Place;
use crate::spec::{Lane, LoadSpec, RequestSpec, SpecError};
use crate::template::{Occasion, Template};

pub use crate::outcome::Right;

/// One request, in parts that HTTP/1.1 and HTTP/2 each write in their own way.
#[derive(Clone, Debug)]
pub struct Request {
    /// What results call it; empty where there is only one.
    pub name: String,
    /// How often, compared with the others.
    pub weight: f64,
    /// `GET`.
    pub method: String,
    /// Path and query.
    pub path: Template,
    /// Header fields in their order, `Host` and `User-Agent` among them.
    pub fields: Vec<(String, Template)>,
    /// The body, empty for none.
    pub body: Template,
    /// Whether it says how long its body is.
    pub tells_length: bool,
    /// See [`Right`].
    pub right: Right,
}

/// See the module. Plain data that all workers share; each makes its own side of it.
#[derive(Debug)]
pub struct Requests {
    /// At least one.
    pub all: Vec<Request>,
    /// They have names, and results tell them apart.
    pub are_named: bool,
    /// Each user of the server keeps the cookies it sets.
    pub keep_cookies: bool,
}

impl Request {
    /// Whether it may be sent again when it met the close of an idle connection (RFC 9110, section 9.2.2).
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(&self.method.as_str())
    }

    /// Whether its answers have no body.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Whether it is the same each time.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.path.is_fixed()
            && self.body.is_fixed()
            && self.fields.iter().all(|(_, value)| value.is_fixed())
    }
}

impl Requests {
    /// Reads what is to be asked; `body` and `expected` are those of requests that have none of their own.
    pub fn new(
        spec: &LoadSpec,
        place: &Place,
        body: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<Requests, SpecError> {
        if spec.cookies && spec.http2 {
            return Err(SpecError(
                "cookies: they are kept over HTTP/1.1 only; leave out http2, or give a Cookie header".into(),
            ));
        }
        let reader = Reader {
            spec,
            place,
            body,
            expected,
        };
        let all = match spec.mix.is_empty() {
            true => vec![reader.only()?],
            false => spec
                .mix
                .iter()
                .map(|asked| {
                    let named =
                        |fault: SpecError| SpecError(format!("{}: {}", asked.label(), fault.0));
                    reader.one(asked).map_err(named)
                })
                .collect::<Result<_, _>>()?,
        };
        Ok(Requests {
            all,
            are_named: !spec.mix.is_empty(),
            keep_cookies: spec.cookies,
        })
    }

    fn differ(&self, only: &Request) -> bool {
        self.are_named || self.keep_cookies || !only.is_fixed() || only.right.contains.is_some()
    }

    /// The only request, where there is one that is the same each time.
    #[must_use]
    pub fn plain(&self) -> Option<&Request> {
        match self.all.as_slice() {
            [only] if !self.differ(only) => Some(only),
            _ => None,
        }
    }
}

/// What requests are made of.
struct Reader<'a> {
    spec: &'a LoadSpec,
    place: &'a Place,
    body: &'a [u8],
    expected: Option<&'a [u8]>,
}

/// Which template of a request it is: each draws for itself.
const PATH: u64 = 0;
const BODY: u64 = 1;
const FIELDS: u64 = 2;

impl Reader<'_> {
    fn only(&self) -> Result<Request, SpecError> {
        let none = RequestSpec {
            name: String::new(),
            weight: 1.0,
            method: None,
            path: None,
            headers: Vec::new(),
            body: None,
            expect_status: None,
            expect_body: None,
            expect_contains: None,
        };
        self.one(&none)
    }

    fn one(&self, asked: &RequestSpec) -> Result<Request, SpecError> {
        let spec = self.spec;
        let method = asked.method.as_ref().unwrap_or(&spec.method).clone();
        let body = match &asked.body {
            Some(body) => body.bytes("body")?,
            None => self.body.to_vec(),
        };
        // RFC 9110, section 8.6: a method that anticipates content tells its length even when that is 0.
        let tells_length = !body.is_empty() || ["POST", "PUT", "PATCH"].contains(&method.as_str());
        Ok(Request {
            name: asked.name.clone(),
            weight: asked.weight,
            method,
            path: self.path(asked)?,
            fields: self.fields(asked)?,
            // Bytes that are no text, such as an image, hold braces by chance.
            body: match std::str::from_utf8(&body) {
                Ok(_) => self.template("body", &body, BODY)?,
                Err(_) => Template::fixed(&body[..]),
            },
            tells_length,
            right: self.right(asked)?,
        })
    }

    fn right(&self, asked: &RequestSpec) -> Result<Right, SpecError> {
        let spec = self.spec;
        let own = asked.expect_body.is_some() || asked.expect_contains.is_some();
        let contains = if own {
            &asked.expect_contains
        } else {
            &spec.expect_contains
        };
        let body = match &asked.expect_body {
            Some(body) => Some(body.bytes("expect_body")?),
            None if own => None,
            None => self.expected.map(<[u8]>::to_vec),
        };
        if body.is_some() && contains.is_some() {
            return Err(SpecError(
                "expect_body is the whole body, so expect_contains has nothing to say; give one of them".into(),
            ));
        }
        Ok(Right {
            status: asked.expect_status.or(spec.expect_status),
            body: body.map(Arc::from),
            contains: contains.as_ref().map(|text| Arc::from(text.as_bytes())),
        })
    }

    fn template(&self, field: &str, text: &[u8], salt: u64) -> Result<Template, SpecError> {
        match self.spec.template {
            true => Template::read(field, text, salt).map_err(|fault| {
                SpecError(format!(
                    "{}; --no-template sends braces as they stand",
                    fault.0
                ))
            }),
            false => Ok(Template::fixed(text)),
        }
    }

    fn path(&self, asked: &RequestSpec) -> Result<Template, SpecError> {
        let path = match &asked.path {
            Some(path) => path.clone(),
            None if self.spec.template => unescaped(self.place.path()),
            None => self.place.path().to_owned(),
        };
        let template = self.template("path", path.as_bytes(), PATH)?;
        if !path.starts_with('/') {
            return Err(SpecError(format!("path: {path:?} does not begin with /")));
        }
        if !template.is_made_of(|text| text.iter().all(u8::is_ascii_graphic)) {
            return Err(SpecError(format!(
                "path: {path:?} has a blank or a letter beyond ASCII in it; write a blank as %20"
            )));
        }
        Ok(template)
    }

    /// All fields in their order; those of the load first, but for what the request says itself.
    fn fields(&self, asked: &RequestSpec) -> Result<Vec<(String, Template)>, SpecError> {
        let of_load = self.spec.headers.iter().filter(|(name, _)| {
            let is_it = |(own, _): &(String, String)| own.eq_ignore_ascii_case(name);
            !asked.headers.iter().any(is_it)
        });
        let given: Vec<_> = of_load.chain(&asked.headers).collect();
        let says = |name: &str| given.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        if self.spec.cookies && says("cookie") {
            return Err(SpecError(
                "headers: Cookie is written from what the server sets where cookies are kept; leave one of them out".into(),
            ));
        }
        let mut fields = Vec::new();
        if !says("host") {
            let authority = Template::fixed(self.place.authority());
            fields.push(("Host".to_owned(), authority));
        }
        if !says("user-agent") {
            let agent = Template::fixed(concat!("velodrome/", env!("CARGO_PKG_VERSION")));
            fields.push(("User-Agent".to_owned(), agent));
        }
        for (salt, (name, value)) in (FIELDS..).zip(given) {
            let value = self.template(&format!("header {name}"), value.as_bytes(), salt)?;
            fields.push((name.clone(), value));
        }
        Ok(fields)
    }
}

/// A path in which the braces of places are braces again: a parser of URLs has escaped them, and what is between them.
fn unescaped(path: &str) -> String {
    let path = path.replace("%7B%7B", "{{").replace("%7D%7D", "}}");
    let mut found = String::new();
    let mut rest = path.as_str();
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((place, behind)) = after.split_once("}}") else {
            break;
        };
        let place = place.replace("%20", " ").replace("%7C", "|");
        found += &format!("{before}{{{{{place}}}}}");
        rest = behind;
    }
    found + rest
}

/// The draws of one worker. What request `n` of it is follows from `n` and the seed: a request that has to be sent again
/// is the same one again.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Of each request the share that it and those before it have.
    up_to: Vec<f64>,
    seed: u64,
    lane: Lane,
    check_every: u64,
}

/// Tells which request is drawn from what is drawn for the places in it.
const WHICH: u64 = 0x7768_6963_6821;

impl Draw {
    /// The draws of thread `thread`.
    #[must_use]
    pub fn new(requests: &Requests, spec: &LoadSpec, thread: u64) -> Draw {
        let whole: f64 = requests.all.iter().map(|request| request.weight).sum();
        let up_to = requests.all.iter().scan(0.0, |sum, request| {
            *sum += request.weight;
            Some(*sum / whole)
        });
        Draw {
            up_to: up_to.collect(),
            seed: spec.seed,
            lane: spec.lane(thread),
            check_every: spec.compares_every(0),
        }
    }

    /// What request `number` of this worker is filled in for.
    #[inline]
    #[must_use]
    pub fn occasion(&self, number: u64) -> Occasion {
        Occasion {
            seed: self.seed,
            number: number * self.lane.step + self.lane.first,
            index: 0,
        }
    }

    /// Which request it is.
    #[inline]
    #[must_use]
    pub fn which(&self, occasion: Occasion) -> usize {
        if self.up_to.len() == 1 {
            return 0;
        }
        let drawn = unit(mix(mix(occasion.seed ^ WHICH) ^ occasion.number));
        let which = self.up_to.partition_point(|&up_to| up_to <= drawn);
        which.min(self.up_to.len() - 1)
    }

    /// Whether the body of its answer is compared.
    #[inline]
    #[must_use]
    pub fn compares(&self, number: u64) -> bool {
        number.is_multiple_of(self.check_every)
    }
}
