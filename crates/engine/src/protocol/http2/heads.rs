//! The head of each request of a load: encoded once, or spelt out anew each time.

use std::sync::Arc;

use super::hpack;
use super::request::{BadField, RequestHead};
use crate::requests::Request;
use crate::template::{Occasion, Template, decimal};

/// See the module.
#[derive(Clone, Debug)]
pub enum Heads {
    /// Always the same one.
    Fixed(Arc<RequestHead>),
    /// Another each time.
    Made(Arc<Made>),
}

#[derive(Debug)]
enum Piece {
    /// Fields that do not change, encoded.
    Coded(Vec<u8>),
    Field(String, Template),
    /// How long the body is.
    Length,
}

/// A head that differs from request to request: none of its fields is put into the server's table, which they would
/// only flood.
#[derive(Debug)]
pub struct Made(Vec<Piece>);

impl Heads {
    /// The head of a request.
    ///
    /// # Errors
    /// A field that HTTP/2 does not allow.
    pub fn of(request: &Request, scheme: &str) -> Result<Heads, BadField> {
        let first = Occasion::default();
        let text =
            |template: &Template| String::from_utf8_lossy(&template.filled(first)).into_owned();
        let is_host = |(name, _): &&(String, Template)| name.eq_ignore_ascii_case("host");
        let host = request.fields.iter().find(is_host);
        let mut fields: Vec<(String, Template)> = request
            .fields
            .iter()
            .filter(|field| !is_host(field))
            .cloned()
            .collect();
        let length = Template::fixed(request.body.filled(first).len().to_string());
        if request.tells_length {
            fields.push(("content-length".to_owned(), length));
        }
        let filled: Vec<(String, String)> = fields
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect();
        let borrowed: Vec<(&str, &str)> = filled
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let authority = host.map(|(_, value)| value.clone()).unwrap_or_default();
        let head = RequestHead::new(
            &request.method,
            scheme,
            &text(&authority),
            &text(&request.path),
            &borrowed,
        )?;
        if request.is_fixed() {
            return Ok(Heads::Fixed(Arc::new(head)));
        }
        let mut made = Made(Vec::new());
        made.push(":method", Template::fixed(request.method.as_str()));
        made.push(":scheme", Template::fixed(scheme));
        made.push(":path", request.path.clone());
        made.push(":authority", authority);
        for (name, value) in fields {
            match name == "content-length" && !request.body.is_fixed() {
                true => made.0.push(Piece::Length),
                false => made.push(&name.to_ascii_lowercase(), value),
            }
        }
        Ok(Heads::Made(Arc::new(made)))
    }
}

impl Heads {
    /// A copy for one thread: a count that all share would travel between CPUs with each request.
    #[must_use]
    pub fn own(&self) -> Heads {
        match self {
            Heads::Fixed(head) => Heads::Fixed(Arc::new(RequestHead::clone(head))),
            Heads::Made(made) => Heads::Made(made.clone()),
        }
    }
}

impl Made {
    fn push(&mut self, name: &str, value: Template) {
        if !value.is_fixed() {
            return self.0.push(Piece::Field(name.to_owned(), value));
        }
        if !matches!(self.0.last(), Some(Piece::Coded(_))) {
            self.0.push(Piece::Coded(Vec::new()));
        }
        let value = value.filled(Occasion::default());
        if let Some(Piece::Coded(coded)) = self.0.last_mut() {
            spell(coded, name.as_bytes(), &value);
        }
    }

    /// Makes `head` that of one request whose body has so many bytes.
    pub fn spell(
        &self,
        occasion: Occasion,
        body_bytes: usize,
        scratch: &mut Vec<u8>,
        head: &mut RequestHead,
    ) {
        head.spelt.clear();
        for piece in &self.0 {
            scratch.clear();
            match piece {
                Piece::Coded(coded) => head.spelt.extend_from_slice(coded),
                Piece::Field(name, value) => {
                    value.fill(occasion, scratch);
                    spell(&mut head.spelt, name.as_bytes(), scratch);
                }
                Piece::Length => {
                    decimal(body_bytes as u64, scratch);
                    spell(&mut head.spelt, b"content-length", scratch);
                }
            }
        }
    }
}

fn spell(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    match hpack::find_static(name, value) {
        Some((index, true)) => hpack::indexed(out, index),
        _ => hpack::literal(out, name, value, false),
    }
}
