//! What Linux tells of a socket beyond what `std` asks for: when bytes came, how a connection fares (`TCP_INFO`), and bytes
//! dropped unread.

use std::io::{self, ErrorKind, Read};
use std::mem;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::ptr;

use crate::clock::{Nanos, SECOND, monotonic};

/// Of a control message, before its contents: as 64-bit systems align it.
const HEAD: usize = size_of::<libc::cmsghdr>().next_multiple_of(size_of::<usize>());
/// Of a control message with a stamp.
pub const CONTROL: usize = HEAD + size_of::<libc::timespec>();

/// See the module. Stamps are of `CLOCK_REALTIME`, which may be set; all else here is `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct Stamps {
    /// What the one clock shows more than the other, as last seen.
    ahead: i64,
    /// Of the last bytes read that had a stamp.
    last: Option<Nanos>,
}

impl Stamps {
    /// Nothing was read yet.
    pub fn new() -> Stamps {
        let mut stamps = Stamps {
            ahead: 0,
            last: None,
        };
        stamps.align();
        stamps
    }

    /// Asks for the stamps of a socket.
    pub fn ask(socket: &impl AsRawFd) -> io::Result<()> {
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open while `socket` is borrowed, and the option is one `int` that lives to the end.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Looks at both clocks; to be called before what a wake-up announced is read.
    pub fn align(&mut self) {
        let mut real = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `real` is a valid place to write to.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut real) };
        self.ahead = nanos(real) as i64 - monotonic() as i64;
    }

    /// When what was read last came; None: no stamp was with it.
    pub fn last(&self) -> Option<Nanos> {
        self.last
    }

    /// Notes the stamp among control messages as a ring hands them over, behind one another in a buffer.
    pub fn note(&mut self, control: &[u8]) {
        // The first message, as with `stamp`: nothing but stamps is asked for.
        self.last = None;
        if control.len() < CONTROL {
            return;
        }
        let start = control.as_ptr();
        // SAFETY: there are as many bytes as both take, which are plain numbers; the alignment does not matter.
        let (head, time) = unsafe {
            (
                ptr::read_unaligned(start.cast::<libc::cmsghdr>()),
                ptr::read_unaligned(start.add(HEAD).cast::<libc::timespec>()),
            )
        };
        if is_stamp(&head) {
            self.last = Some(self.here(nanos(time)));
        }
    }

    /// A moment of the kernel's clock on ours.
    fn here(&self, at: Nanos) -> Nanos {
        (at as i64 - self.ahead).max(0) as Nanos
    }

    /// Reads up to `length` bytes to `to` and notes their stamp: that of the last of them.
    ///
    /// # Safety
    /// `to` is valid to write `length` bytes to, or `flags` hold `MSG_TRUNC`, with which TCP writes none.
    unsafe fn receive(
        &mut self,
        stream: &TcpStream,
        to: *mut u8,
        length: usize,
        flags: libc::c_int,
    ) -> io::Result<usize> {
        let mut control = [0_u64; 8];
        let mut piece = libc::iovec {
            iov_base: to.cast(),
            iov_len: length,
        };
        // SAFETY: `msghdr` is plain numbers and pointers, for which all zeroes is a value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: all that `message` points at lives to the end of this function, or longer, as the caller warrants.
        let count = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, flags) };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        self.last = stamp(&message).map(|at| self.here(at));
        Ok(count)
    }
}

/// The time stamp among the control messages.
fn stamp(message: &libc::msghdr) -> Option<Nanos> {
    // SAFETY: the kernel filled the control buffer of `message`, which is aligned, and told its length.
    let first = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if !is_stamp(first) {
        return None;
    }
    // SAFETY: a message of this kind carries one `timespec`.
    Some(nanos(unsafe {
        ptr::read_unaligned(libc::CMSG_DATA(first).cast())
    }))
}

fn is_stamp(head: &libc::cmsghdr) -> bool {
    (head.cmsg_level, head.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)
}

fn nanos(time: libc::timespec) -> Nanos {
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// A connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes in the socket that have not gone out: the peer's window, or congestion, is in the way.
    pub unsent: u32,
    /// Shortest round trip so far, microseconds; None: not told.
    pub rtt_us: Option<u32>,
    /// Segments sent again so far.
    pub retransmitted: u32,
}

/// `struct tcp_info` of Linux 4.9 and later is at least this long; it only ever grows at its end.
const LENGTH: usize = 152;
/// Offsets in it (include/uapi/linux/tcp.h).
const TOTAL_RETRANS: usize = 100;
const NOTSENT_BYTES: usize = 144;
const MIN_RTT: usize = 148;

impl TcpInfo {
    /// Asks the kernel, about 1 us; None for what is no TCP socket, and on older kernels.
    pub fn of(socket: &impl AsRawFd) -> Option<TcpInfo> {
        let mut bytes = [0u8; LENGTH];
        let mut length = LENGTH as libc::socklen_t;
        // SAFETY: the descriptor is open while `socket` is borrowed; `bytes` has `length` bytes to be written to, and
        // both outlive the call.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result != 0 || (length as usize) < LENGTH {
            return None;
        }
        let number = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(TcpInfo {
            unsent: number(NOTSENT_BYTES),
            // All ones: not measured yet.
            rtt_us: Some(number(MIN_RTT)).filter(|&rtt| rtt != u32::MAX),
            retransmitted: number(TOTAL_RETRANS),
        })
    }
}

/// Whether the kernel can drop what a TCP connection brought without handing it out.
pub const CAN_DISCARD: bool = true;

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
pub fn discard(stream: &TcpStream, most: usize, stamps: &mut Option<Stamps>) -> io::Result<usize> {
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stamp_tells_when_bytes_came_however_late_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        Stamps::ask(&server).unwrap();
        // The first socket that asks switches stamps on for the system, a moment later.
        std::thread::sleep(Duration::from_millis(50));
        let before = monotonic();
        client.write_all(b"now").unwrap();
        let after = monotonic();
        std::thread::sleep(Duration::from_millis(30));
        let mut stamps = Stamps::new();
        let mut buffer = [0_u8; 16];
        // SAFETY: the buffer has as many bytes as are told.
        let count = unsafe { stamps.receive(&server, buffer.as_mut_ptr(), buffer.len(), 0) };
        assert_eq!(count.unwrap(), 3);
        let at = stamps.last().unwrap();
        // The two clocks are not read at the same moment.
        assert!(
            (before - 100_000..after + 5_000_000).contains(&at),
            "{before} {at} {after}"
        );
    }
}

#[cfg(test)]
mod tcp_info_tests {
    use super::*;
    use std::io::{ErrorKind, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_peer_that_does_not_read_leaves_bytes_unsent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _theirs = listener.accept().unwrap();
        let fresh = TcpInfo::of(&ours).unwrap();
        assert_eq!((fresh.unsent, fresh.retransmitted), (0, 0));
        assert!(fresh.rtt_us.is_some_and(|rtt| rtt < 1_000_000), "{fresh:?}");
        ours.set_nonblocking(true).unwrap();
        let full = loop {
            if let Err(error) = ours.write_all(&[0; 65_536]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        assert!(TcpInfo::of(&ours).unwrap().unsent > 0);
    }

    #[test]
    fn what_is_no_tcp_socket_tells_nothing() {
        assert_eq!(
            TcpInfo::of(&std::fs::File::open("/dev/null").unwrap()),
            None
        );
    }
}
