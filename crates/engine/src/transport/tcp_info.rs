//! What the kernel tells of one TCP connection (`TCP_INFO`).

use std::os::fd::AsRawFd;

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

#[cfg(test)]
mod tests {
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
