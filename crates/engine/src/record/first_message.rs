//! When answers begin that have several messages.

use crate::durations::Durations;

/// Times until the first message of an answer.
#[derive(Debug, Default)]
pub struct FirstMessage {
    /// From due.
    pub due: Durations,
    /// From sent.
    pub sent: Durations,
}
