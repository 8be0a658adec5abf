//! What a right answer is.

use std::sync::Arc;

use crate::outcome::Outcome;
use crate::protocol::BodyCheck;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Right {
    /// The right status; None: any 2xx.
    pub status: Option<u16>,
    /// The right body, where it is known.
    pub body: Option<Arc<[u8]>>,
    /// What the body has in it.
    pub contains: Option<Arc<[u8]>>,
}

impl Right {
    /// What an answer comes to.
    #[inline]
    #[must_use]
    pub fn judge(&self, status: u16, body: BodyCheck) -> Outcome {
        let is_right = match self.status {
            Some(right) => status == right,
            None => (200..300).contains(&status),
        };
        match body {
            _ if !is_right => Outcome::BadStatus,
            BodyCheck::Wrong => Outcome::WrongBody,
            _ => Outcome::Ok,
        }
    }

    /// What is wrong with an answer that is not right; its body had `bytes`.
    #[must_use]
    #[cold]
    pub fn explain(&self, status: u16, bytes: u64) -> String {
        if self.judge(status, BodyCheck::Unchecked) == Outcome::BadStatus {
            let wanted = self
                .status
                .map_or("2xx".into(), |status| status.to_string());
            return format!("status {status} where {wanted} is right");
        }
        if let Some(contains) = &self.contains {
            let wanted = String::from_utf8_lossy(contains);
            return format!("a body of {bytes} bytes without {wanted:?} in it");
        }
        match self.body.as_ref().map_or(0, |body| body.len()) {
            right if bytes == right as u64 => {
                format!("the body has the right length, {right} bytes, and is another")
            }
            right => format!("a body of {bytes} bytes where {right} bytes are right"),
        }
    }
}
