//! How long it takes until connections stand.

use crate::clock::Nanos;
use crate::durations::Durations;

use super::os::monotonic;

/// One stage that all connections of a transport go through: each slot's last beginning, and how long each took.
#[derive(Debug)]
pub struct Stage {
    since: Vec<Nanos>,
    times: Durations,
}

impl Stage {
    /// A stage for up to `slots` connections.
    pub fn new(slots: usize) -> Stage {
        Stage {
            since: vec![0; slots],
            times: Durations::default(),
        }
    }

    /// The connection in this slot has come to the stage.
    pub fn begin(&mut self, slot: u32) {
        self.since[slot as usize] = monotonic();
    }

    /// It has left it.
    pub fn end(&mut self, slot: u32) {
        self.times
            .record(monotonic().saturating_sub(self.since[slot as usize]));
    }

    /// How long each took.
    pub fn times(&self) -> Durations {
        self.times.clone()
    }
}

/// How long connections took until they stood, over the whole run; None where a transport has no such stage, or does
/// not tell.
#[derive(Debug, Default)]
pub struct Standing {
    /// From the first packet until TCP stood.
    pub connect: Option<Durations>,
    /// From there until the TLS handshake was done.
    pub tls: Option<Durations>,
}

impl Standing {
    /// Adds those of another thread.
    pub fn add(&mut self, other: Standing) {
        for (mine, theirs) in [
            (&mut self.connect, other.connect),
            (&mut self.tls, other.tls),
        ] {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) => mine.add(&theirs),
                (None, theirs) => *mine = theirs,
                _ => {}
            }
        }
    }
}
