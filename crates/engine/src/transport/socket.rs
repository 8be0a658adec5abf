//! Making the sockets of a load.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

/// Makes sockets for connections to one address.
pub struct Sockets {
    target: SocketAddr,
    /// Number of the loopback address that connections come from; 0: the system chooses.
    source: u8,
}

/// Source addresses tried when the ports of one are used up: 127.0.0.2 and so on.
const SOURCES: u8 = 200;

impl Sockets {
    /// Sockets that will connect to `target`.
    pub fn new(target: SocketAddr) -> Sockets {
        Sockets { target, source: 0 }
    }

    /// A socket without Nagle's delay, which would hold back the last segment of a request.
    pub fn open(&self) -> io::Result<Socket> {
        let domain = Domain::for_address(self.target);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if self.source > 0 {
            #[cfg(target_os = "linux")]
            super::os::bind_address_no_port(&socket)?;
            let source = Ipv4Addr::new(127, 0, 0, 1 + self.source);
            socket.bind(&SocketAddr::new(source.into(), 0).into())?;
        }
        Ok(socket)
    }

    /// A non-blocking socket on its way to the target.
    pub fn connect(&mut self) -> io::Result<Socket> {
        loop {
            let socket = self.open()?;
            socket.set_nonblocking(true)?;
            match socket.connect(&self.target.into()) {
                Ok(()) => return Ok(socket),
                Err(error) if is_under_way(&error) => return Ok(socket),
                Err(error)
                    if error.kind() == io::ErrorKind::AddrNotAvailable && self.next_source() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Goes on to the next source address. A source has some 28 000 ports, and each is kept for 60 s after its
    /// connection (TIME_WAIT), so a load without keep-alive uses them up; loopback has 16 million addresses.
    /// Returns false where there is none to go on to.
    pub fn next_source(&mut self) -> bool {
        let spreadable = matches!(self.target, SocketAddr::V4(target) if target.ip().is_loopback());
        if !spreadable || self.source >= SOURCES || cfg!(not(target_os = "linux")) {
            return false;
        }
        self.source += 1;
        true
    }

    /// The address in the kernel's form.
    #[cfg(target_os = "linux")]
    pub fn target(&self) -> socket2::SockAddr {
        self.target.into()
    }
}

fn is_under_way(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS) || error.kind() == io::ErrorKind::WouldBlock
}
