//! Open loop: each request at its moment, as well as this kernel's timers let a thread that sleeps in between.
//!
//! `epoll_pwait2` with a timer slack of 1 ns, no spinning; connections in turn.

use std::io;
use std::os::fd::AsRawFd;

use crate::shot::{REQUEST, Shot};
use crate::system::{Poll, now, receive, send, sharpen_timers};

/// Loads at `extra` requests a second; returns how many were sent.
pub fn load(shot: &Shot) -> io::Result<u64> {
    let rate = shot
        .extra
        .ok_or_else(|| io::Error::other("say how many requests a second"))?;
    let connections = shot.connect()?;
    let mut poll = Poll::new()?;
    for (number, stream) in connections.iter().enumerate() {
        poll.add(stream.as_raw_fd(), libc::EPOLLIN | libc::EPOLLET, number)?;
    }
    sharpen_timers();
    let mut buffer = vec![0; 64 * 1024];
    let (origin, total) = (now(), (shot.seconds * rate) as u64);
    let due = |number: u64| origin + (number as f64 * 1e9 / rate) as u64;
    let mut sent = 0;
    while sent < total {
        let present = now();
        if present >= due(sent) {
            let stream = &connections[sent as usize % connections.len()];
            send(stream.as_raw_fd(), REQUEST)?;
            sent += 1;
            continue;
        }
        for (number, _) in poll.wait(due(sent) - present)? {
            while receive(connections[number].as_raw_fd(), &mut buffer)?
                .is_some_and(|count| count == buffer.len())
            {}
        }
    }
    Ok(sent)
}
