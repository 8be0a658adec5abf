//! HTTP/1.1 as a worker drives it: the one request it sends, and its answers judged.

use std::sync::Arc;

use super::{Answer, BodyCheck, Http1, Parsed, ProtocolError};
use crate::clock::Nanos;
use crate::outcome::Outcome;
use crate::protocol;
use crate::protocol::{Bytes, Fault, Protocol};

/// What is asked, and what a right answer is.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Head and body of the request.
    pub request: Arc<[u8]>,
    /// The method is HEAD.
    pub head: bool,
    /// The right body, where it is known.
    pub expected: Option<Arc<[u8]>>,
    /// The right status; None: any 2xx.
    pub status: Option<u16>,
    /// Every n-th body is compared.
    pub check_every: u64,
    /// An answer had a large body that nobody looked at.
    pub bulky: bool,
}

/// An answer, and how many bytes came behind it that nobody asked for.
#[derive(Debug)]
pub struct Heard {
    answer: Answer,
    surplus: usize,
}

impl From<ProtocolError> for Fault {
    #[cold]
    fn from(error: ProtocolError) -> Fault {
        let outcome = match error {
            ProtocolError::EarlyClose { .. } => Outcome::Reset,
            _ => Outcome::BadProtocol,
        };
        let why = error.to_string();
        Fault { outcome, why }
    }
}

impl Protocol for Http1 {
    type Medium = Bytes;
    type Ask = Ask;
    type Answer = Heard;

    fn new() -> Self {
        Http1::new()
    }

    #[inline]
    fn begin<'a>(&mut self, ask: &'a mut Ask, number: u64) -> &'a Arc<[u8]> {
        // Without a right body there is nothing to compare with, and the bytes need not be looked at.
        let compare = ask.expected.is_some() && number.is_multiple_of(ask.check_every);
        Http1::begin(self, ask.head, compare);
        &ask.request
    }

    #[inline]
    fn feed(&mut self, bytes: &[u8], ask: &Ask) -> Result<protocol::Progress<Heard>, Fault> {
        match Http1::feed(self, bytes, ask.expected.as_deref())? {
            Parsed::More => Ok(protocol::Progress::More),
            Parsed::Done { consumed, answer } => Ok(protocol::Progress::Done(Heard {
                answer,
                surplus: bytes.len() - consumed,
            })),
        }
    }

    #[inline]
    fn skippable(&self) -> u64 {
        Http1::skippable(self)
    }

    fn skip(&mut self, count: u64, ask: &Ask) -> Option<Heard> {
        let surplus = count.saturating_sub(Http1::skippable(self)) as usize;
        let answer = Http1::skip(self, count, ask.expected.as_deref())?;
        Some(Heard { answer, surplus })
    }

    fn eof(&mut self, ask: &Ask) -> Result<Option<Heard>, Fault> {
        let answer = Http1::eof(self, ask.expected.as_deref())?;
        Ok(answer.map(|answer| Heard { answer, surplus: 0 }))
    }

    /// One request has one answer: this is never asked for.
    fn reply<'a>(&mut self, ask: &'a mut Ask) -> &'a Arc<[u8]> {
        &ask.request
    }

    #[inline]
    fn judge(heard: &Heard, ask: &Ask, _age: Nanos) -> Outcome {
        let status = heard.answer.status;
        let right_status = match ask.status {
            Some(right) => status == right,
            None => (200..300).contains(&status),
        };
        match heard.answer.body {
            _ if heard.surplus > 0 => Outcome::BadProtocol,
            _ if !right_status => Outcome::BadStatus,
            BodyCheck::Wrong => Outcome::WrongBody,
            _ => Outcome::Ok,
        }
    }

    fn explain(&self, heard: &Heard, ask: &Ask) -> String {
        let Answer {
            status, body_len, ..
        } = heard.answer;
        let right = ask.expected.as_ref().map_or(0, |body| body.len());
        match Self::judge(heard, ask, 0) {
            Outcome::BadStatus => {
                let wanted = ask.status.map_or("2xx".into(), |status| status.to_string());
                format!("status {status} where {wanted} is right")
            }
            Outcome::WrongBody if body_len == right as u64 => {
                format!("the body has the right length, {right} bytes, and is another")
            }
            Outcome::WrongBody => {
                format!("a body of {body_len} bytes where {right} bytes are right")
            }
            _ => format!(
                "{} bytes more than the answer (status {status}) said it has",
                heard.surplus
            ),
        }
    }

    #[inline]
    fn is_bulky(&self, ask: &Ask) -> bool {
        ask.bulky && self.is_blind()
    }

    #[inline]
    fn weigh(&self, ask: &mut Ask) -> u64 {
        let bulk = self.bulk();
        ask.bulky |= bulk > 0;
        bulk
    }

    #[inline]
    fn is_reusable(heard: &Heard) -> bool {
        heard.surplus == 0 && heard.answer.keep_alive
    }
}
