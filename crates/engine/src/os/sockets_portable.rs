//! What the kernel tells of a socket: here nothing that is understood.

/// A connection at one moment. See `sockets.rs`; none is ever made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes in the socket that have not gone out.
    pub unsent: u32,
    /// Shortest round trip so far, microseconds.
    pub rtt_us: Option<u32>,
    /// Segments sent again so far.
    pub retransmitted: u32,
}
