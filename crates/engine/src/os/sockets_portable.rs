//! Sockets where nothing is known of them beyond what `std` tells: no stamps, no `TCP_INFO`, nothing dropped unread.

use std::io::{self, Read};
use std::net::TcpStream;

use crate::clock::Nanos;

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

/// Never asked for here: no socket has any.
#[derive(Debug)]
pub struct Stamps;

impl Stamps {
    pub fn new() -> Stamps {
        Stamps
    }

    pub fn ask(_: &TcpStream) -> io::Result<()> {
        Ok(())
    }

    pub fn align(&mut self) {}

    pub fn last(&self) -> Option<Nanos> {
        None
    }
}

/// Whether the kernel can drop what a TCP connection brought without handing it out.
pub const CAN_DISCARD: bool = false;

/// Reads what has come, as much as there is room for.
pub fn read(mut stream: &TcpStream, room: &mut [u8], _: &mut Option<Stamps>) -> io::Result<usize> {
    stream.read(room)
}

/// Never called here.
pub fn discard(_: &TcpStream, _: usize, _: &mut Option<Stamps>) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
