//! When each member of a room got a message, and what else they got.

use serde::Serialize;

use crate::durations::Durations;

/// Times until each delivery.
#[derive(Debug, Default)]
pub struct Deliveries {
    /// From due.
    pub due: Durations,
    /// From sent.
    pub sent: Durations,
}

/// What members heard beside what they were to hear, counted over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RoomCounts {
    /// Messages that a member had already.
    pub again: u64,
    /// Messages that were given up before.
    pub late: u64,
    /// Messages nobody here sent.
    pub strangers: u64,
}
