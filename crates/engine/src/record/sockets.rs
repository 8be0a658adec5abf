//! What the kernel told of connections while they were loaded.

use serde::Serialize;

use crate::transport::TcpInfo;

/// Looks at connections, some four times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sockets {
    /// How often a connection was looked at.
    pub looked: u64,
    /// How often bytes lay in it that could not go out.
    pub with_unsent: u64,
    /// The most that lay in one.
    pub unsent_bytes_max: u32,
    /// Shortest round trip, microseconds.
    pub rtt_us: Option<u32>,
    /// Segments sent again on the connections that stood at the end.
    pub retransmitted: u64,
}

impl Sockets {
    /// Takes in a look at one connection.
    pub fn see(&mut self, info: TcpInfo) {
        self.looked += 1;
        self.with_unsent += u64::from(info.unsent > 0);
        self.unsent_bytes_max = self.unsent_bytes_max.max(info.unsent);
        self.rtt_us = shorter(self.rtt_us, info.rtt_us);
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Sockets) {
        self.looked += other.looked;
        self.with_unsent += other.with_unsent;
        self.unsent_bytes_max = self.unsent_bytes_max.max(other.unsent_bytes_max);
        self.rtt_us = shorter(self.rtt_us, other.rtt_us);
        self.retransmitted += other.retransmitted;
    }
}

fn shorter(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    a.into_iter().chain(b).min()
}
