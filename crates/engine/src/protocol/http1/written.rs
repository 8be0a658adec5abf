//! A request as HTTP/1.1 writes it, made of templates.

use crate::requests::Request;
use crate::template::{Occasion, Template, decimal};

/// See the module. What does not change is one piece.
#[derive(Clone, Debug)]
pub struct Lines {
    /// Up to the length of the body, or to the last line but those that are added.
    head: Template,
    /// None: it stands in the head.
    body: Option<Template>,
    /// Lines behind the length.
    tail: &'static str,
    /// Head, tail and body, where no part of them changes.
    fixed: Option<Fixed>,
}

#[derive(Clone, Debug)]
struct Fixed {
    bytes: Vec<u8>,
    /// Where further lines have their place.
    lines_end: usize,
}

impl Lines {
    /// The request; without `keepalive` the server is asked to close.
    #[must_use]
    pub fn new(request: &Request, keepalive: bool) -> Lines {
        let mut head = Template::fixed(request.method.as_str())
            .text(" ")
            .then(request.path.clone())
            .text(" HTTP/1.1\r\n");
        for (name, value) in &request.fields {
            head = head.text(name).text(": ").then(value.clone()).text("\r\n");
        }
        let tail = if keepalive {
            ""
        } else {
            "Connection: close\r\n"
        };
        let varies = request.tells_length && !request.body.is_fixed();
        if request.tells_length {
            head = head.text("Content-Length: ");
        }
        let mut lines = Lines {
            head,
            body: varies.then(|| request.body.clone()),
            tail,
            fixed: None,
        };
        if varies {
            return lines;
        }
        let body = request.body.filled(Occasion::default());
        if request.tells_length {
            lines.head = lines.head.text(format!("{}\r\n", body.len()));
        }
        if lines.head.is_fixed() {
            let mut bytes = lines.head.filled(Occasion::default());
            bytes.extend_from_slice(tail.as_bytes());
            let lines_end = bytes.len();
            bytes.extend_from_slice(b"\r\n");
            bytes.extend_from_slice(&body);
            lines.fixed = Some(Fixed { bytes, lines_end });
        } else {
            lines.body = (!body.is_empty()).then(|| Template::fixed(body));
        }
        lines
    }

    /// All of it, where it is the same each time.
    #[must_use]
    pub fn fixed(&self) -> Option<&[u8]> {
        self.fixed.as_ref().map(|fixed| fixed.bytes.as_slice())
    }

    /// Writes the request into `out`, which is emptied first; `more` adds further lines, each with its end. A body that
    /// changes is made in `scratch`, for its length stands before it.
    #[inline]
    pub fn write(
        &self,
        occasion: Occasion,
        more: impl FnOnce(&mut Vec<u8>),
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        if let Some(Fixed { bytes, lines_end }) = &self.fixed {
            out.extend_from_slice(&bytes[..*lines_end]);
            more(out);
            return out.extend_from_slice(&bytes[*lines_end..]);
        }
        self.head.fill(occasion, out);
        scratch.clear();
        if let Some(body) = &self.body {
            body.fill(occasion, scratch);
            if !body.is_fixed() {
                decimal(scratch.len() as u64, out);
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(self.tail.as_bytes());
        more(out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(scratch);
    }
}
