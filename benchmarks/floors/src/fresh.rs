//! Closed loop, a connection for each request: socket, connect, send, receive, close, and epoll between them.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::shot::{LAST_REQUEST, Shot};
use crate::system::{Poll, check, now, receive, send};

/// The address as the kernel takes it.
fn address(shot: &Shot) -> io::Result<libc::sockaddr_in> {
    let std::net::SocketAddr::V4(target) = shot.target else {
        return Err(io::Error::other("an IPv4 address is needed"));
    };
    Ok(libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: target.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from_ne_bytes(target.ip().octets()),
        },
        sin_zero: [0; 8],
    })
}

fn open(target: &libc::sockaddr_in, poll: &Poll, number: usize) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: numbers in, a descriptor out, which is checked.
    let socket = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
    // SAFETY: just made, and nobody else's.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address lives to the end of the call.
    let began = check(unsafe {
        libc::connect(socket.as_raw_fd(), std::ptr::from_ref(target).cast(), size)
    });
    match began {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
        _ => {}
    }
    let wanted = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLET;
    poll.add(socket.as_raw_fd(), wanted, number)?;
    Ok(socket)
}

/// One place and what is missing of its answer; `asked`: the request is out.
struct Place {
    socket: OwnedFd,
    asked: bool,
    left: usize,
}

/// Loads; returns how many requests were answered.
pub fn load(shot: &Shot) -> io::Result<u64> {
    let target = address(shot)?;
    let mut poll = Poll::new()?;
    let fresh = |poll: &Poll, number| -> io::Result<Place> {
        Ok(Place {
            socket: open(&target, poll, number)?,
            asked: false,
            left: shot.bytes,
        })
    };
    let mut places = (0..shot.connections)
        .map(|number| fresh(&poll, number))
        .collect::<io::Result<Vec<_>>>()?;
    let (end, mut requests, mut buffer) = (shot.end(), 0, vec![0; 16 * 1024]);
    while now() < end {
        let ready: Vec<(usize, u32)> = poll.wait(100_000_000)?.collect();
        for (number, flags) in ready {
            let place = &mut places[number];
            let socket: RawFd = place.socket.as_raw_fd();
            if !place.asked && flags & libc::EPOLLOUT as u32 != 0 {
                place.asked = true;
                send(socket, LAST_REQUEST)?;
            }
            if flags & libc::EPOLLIN as u32 != 0 {
                let count = receive(socket, &mut buffer)?.unwrap_or(0);
                place.left = place.left.saturating_sub(count);
            }
            if place.left == 0 {
                requests += 1;
                places[number] = fresh(&poll, number)?;
            }
        }
    }
    Ok(requests)
}
