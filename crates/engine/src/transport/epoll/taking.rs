//! Taking what has come from a socket: copied, or dropped where it is; with the kernel's time stamp or without.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use crate::os::sockets::Stamps;
use crate::transport::Reading;

/// Whether an end was announced with the event, which then has to be fetched: otherwise a short read has emptied the
/// socket, and what comes later makes a new edge.
#[inline]
pub fn ends(reading: &Reading) -> bool {
    reading.length & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0
}

/// Reads what has come, as much as there is room for.
#[inline]
pub fn read(
    mut stream: &TcpStream,
    room: &mut [u8],
    stamps: &mut Option<Stamps>,
) -> io::Result<usize> {
    match stamps {
        None => stream.read(room),
        // SAFETY: `room` is borrowed mutably, whole.
        Some(stamps) => unsafe { stamps.receive(stream, room.as_mut_ptr(), room.len(), 0) },
    }
}

/// Lets the kernel throw away up to `most` bytes that have come; how many there were.
pub fn drop_bytes(
    stream: &TcpStream,
    most: usize,
    stamps: &mut Option<Stamps>,
) -> io::Result<usize> {
    let (nowhere, flags) = (std::ptr::null_mut(), libc::MSG_TRUNC);
    loop {
        let dropped = match stamps {
            // SAFETY: with MSG_TRUNC, TCP drops the bytes and writes to no memory (tcp(7)); the descriptor is open
            // while `stream` is borrowed.
            None => match unsafe { libc::recv(stream.as_raw_fd(), nowhere, most, flags) } {
                count @ 0.. => Ok(count as usize),
                _ => Err(io::Error::last_os_error()),
            },
            // SAFETY: as above.
            Some(stamps) => unsafe { stamps.receive(stream, nowhere.cast(), most, flags) },
        };
        match dropped {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
