//! Closed loop on kept connections over epoll: a send, a receive and a share of a wait for each request.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use crate::shot::{REQUEST, Shot};
use crate::system::{Poll, discard, now, receive, send};

/// Large enough that a body comes in few pieces.
const BUFFER: usize = 512 * 1024;
/// Whoever discards reads so much, where the head would be.
const HEAD: usize = 4096;

/// What becomes of the bytes.
#[derive(Clone, Copy, PartialEq)]
pub enum Reading {
    /// All are copied.
    Copied,
    /// All but the first are dropped in the kernel.
    Discarded,
}

/// Loads; returns how many requests were answered.
pub fn load(shot: &Shot, reading: Reading) -> io::Result<u64> {
    let connections = shot.connect()?;
    let mut poll = Poll::new()?;
    for (number, stream) in connections.iter().enumerate() {
        poll.add(stream.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET, number)?;
    }
    let end = shot.end();
    for stream in &connections {
        send(stream.as_raw_fd(), REQUEST)?;
    }
    let mut missing = vec![shot.bytes; connections.len()];
    let mut buffer = vec![0; BUFFER];
    let mut requests = 0;
    while now() < end {
        for (number, _) in poll.wait(100_000_000)? {
            let left = &mut missing[number];
            take(&connections[number], left, shot.bytes, reading, &mut buffer)?;
            if *left == 0 {
                *left = shot.bytes;
                requests += 1;
                send(connections[number].as_raw_fd(), REQUEST)?;
            }
        }
    }
    Ok(requests)
}

/// Reads what is there.
fn take(
    stream: &TcpStream,
    left: &mut usize,
    whole: usize,
    reading: Reading,
    buffer: &mut [u8],
) -> io::Result<()> {
    let socket = stream.as_raw_fd();
    while *left > 0 {
        let drops = reading == Reading::Discarded;
        let came = match drops && *left < whole {
            true => discard(socket, *left)?,
            false if drops => receive(socket, &mut buffer[..HEAD])?,
            false => receive(socket, buffer)?,
        };
        match came {
            None => return Ok(()),
            Some(0) => return Err(io::Error::other("the target has closed")),
            Some(count) => *left = left.saturating_sub(count),
        }
        // A short read has emptied the socket, and what comes later makes a new edge.
        if !drops && came.is_some_and(|count| count < buffer.len()) {
            return Ok(());
        }
    }
    Ok(())
}
