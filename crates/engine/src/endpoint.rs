//! Where connections are made to, and how their sockets are made.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;
use std::{fmt, io};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    address: SockAddr,
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Endpoint {
        Endpoint {
            address: address.into(),
        }
    }
}

impl Endpoint {
    /// A socket in the file system; an error where its path is too long for one.
    pub fn unix(path: &Path) -> io::Result<Endpoint> {
        let address = SockAddr::unix(path)?;
        Ok(Endpoint { address })
    }

    /// In the kernel's form.
    #[must_use]
    pub fn address(&self) -> &SockAddr {
        &self.address
    }

    /// Whether it is a socket in the file system.
    #[must_use]
    pub fn is_unix(&self) -> bool {
        self.address.is_unix()
    }

    /// A socket without Nagle's delay, which would hold back the last segment of a request.
    pub fn socket(&self) -> io::Result<Socket> {
        self.socket_as(Type::STREAM)
    }

    /// The same, of a kind such as one that does not block.
    pub fn socket_as(&self, kind: Type) -> io::Result<Socket> {
        if self.is_unix() {
            return Socket::new(Domain::UNIX, kind, None);
        }
        let socket = Socket::new(self.address.domain(), kind, Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        Ok(socket)
    }

    /// A blocking connection for a question before the load, which waits no longer than `patience` for anything.
    pub fn reach(&self, patience: Duration) -> io::Result<TcpStream> {
        let socket = self.socket()?;
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        match self.is_unix() {
            true => socket.connect(&self.address)?,
            false => socket.connect_timeout(&self.address, patience)?,
        }
        // Whatever its family: the standard library reads and writes a socket by its descriptor alone.
        Ok(TcpStream::from(socket))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address.as_socket(), self.address.as_pathname()) {
            (Some(address), _) => address.fmt(out),
            (None, Some(path)) => path.display().fmt(out),
            (None, None) => out.write_str("a socket without a name"),
        }
    }
}

/// Makes sockets for connections to one endpoint.
pub struct Sockets {
    target: Endpoint,
    /// Number of the loopback address that connections come from; 0: the system chooses.
    source: u8,
    /// Sockets that are still to be made before all connections of the load have one.
    unopened: usize,
    /// Sockets made since then for the source in use.
    of_source: usize,
}

/// Source addresses tried when the ports of one are used up: 127.0.0.2 and so on.
const SOURCES: u8 = 200;
/// Connections of a load that come from one source before the next is taken. `connect` takes ports of one parity only, while
/// there are any, and tries them one by one: of the 14 116 a system has as it is shipped, the last are found after
/// thousands of tries, and 18 000 connections took 2 s to open.
const OF_ONE_SOURCE: usize = 8_192;
/// How long a place in the full listen queue of a unix socket is waited for. The thread stands still meanwhile, and a
/// server that runs takes its connections in within much less.
const IN_LINE: Duration = Duration::from_millis(50);

impl Sockets {
    /// Sockets for as many connections to `target` at once as there are `slots`.
    pub fn new(target: impl Into<Endpoint>, slots: usize) -> Sockets {
        Sockets {
            target: target.into(),
            source: 0,
            unopened: slots,
            of_source: 0,
        }
    }

    /// A socket that is not connected.
    pub fn open(&mut self) -> io::Result<Socket> {
        self.open_as(Type::STREAM)
    }

    /// Counts a socket of those that all connections need at first; later ones take the ports that others left.
    fn spread(&mut self) {
        if self.unopened == 0 {
            return;
        }
        self.unopened -= 1;
        self.of_source += 1;
        if self.of_source > OF_ONE_SOURCE {
            self.of_source = 1;
            self.next_source();
        }
    }

    fn open_as(&mut self, kind: Type) -> io::Result<Socket> {
        self.spread();
        let socket = self.target.socket_as(kind)?;
        if self.source > 0 {
            #[cfg(target_os = "linux")]
            crate::os::bind_address_no_port(&socket)?;
            let source = Ipv4Addr::new(127, 0, 0, 1 + self.source);
            socket.bind(&SocketAddr::new(source.into(), 0).into())?;
        }
        Ok(socket)
    }

    /// A non-blocking socket on its way to the target.
    pub fn connect(&mut self) -> io::Result<Socket> {
        loop {
            // One call where the system has it, three where it has not.
            #[cfg(target_os = "linux")]
            let socket = self.open_as(Type::STREAM.nonblocking())?;
            #[cfg(not(target_os = "linux"))]
            let socket = self.open()?;
            #[cfg(not(target_os = "linux"))]
            socket.set_nonblocking(true)?;
            match socket.connect(self.target.address()) {
                Ok(()) => return Ok(socket),
                Err(error) if self.target.is_unix() && is_full(&error) => {
                    self.stand_in_line(&socket)?;
                    return Ok(socket);
                }
                Err(error) if is_under_way(&error) => return Ok(socket),
                Err(error)
                    if error.kind() == io::ErrorKind::AddrNotAvailable && self.next_source() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Connects to a unix socket whose listen queue is full. Nothing tells when there is room again (unlike TCP, whose
    /// client tries by itself), so this waits for it, and not long.
    #[cold]
    fn stand_in_line(&self, socket: &Socket) -> io::Result<()> {
        socket.set_nonblocking(false)?;
        socket.set_write_timeout(Some(IN_LINE))?;
        socket.connect(self.target.address())?;
        socket.set_write_timeout(None)?;
        socket.set_nonblocking(true)
    }

    /// Goes on to the next source address. A source has some 28 000 ports, and each is kept for 60 s after its
    /// connection (TIME_WAIT), so a load without keep-alive uses them up; loopback has 16 million addresses.
    /// Returns false where there is none to go on to.
    pub fn next_source(&mut self) -> bool {
        let target = self.target.address().as_socket_ipv4();
        let spreadable = target.is_some_and(|target| target.ip().is_loopback());
        if !spreadable || self.source >= SOURCES || cfg!(not(target_os = "linux")) {
            return false;
        }
        self.source += 1;
        true
    }

    /// The address in the kernel's form.
    #[cfg(target_os = "linux")]
    pub fn target(&self) -> socket2::SockAddr {
        self.target.address().clone()
    }
}

fn is_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAGAIN)
}

/// So many connections at most are closed with the batch they left in, after their successors were made, and not at once.
///
/// A server that announces the end of a connection is about to close it. Whoever closes first keeps the port for a minute
/// (TIME_WAIT): were it always us, a load of one connection for each request would run out of ports within a second, and
/// would look for free ones ever longer before.
pub const LEAVING: usize = 256;

fn is_under_way(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS) || error.kind() == io::ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn more_connections_than_one_source_has_ports_for_come_from_several() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sockets = Sockets::new(listener.local_addr().unwrap(), OF_ONE_SOURCE + 2);
        let from: Vec<u8> = (0..OF_ONE_SOURCE + 3)
            .map(|_| {
                sockets.open().unwrap();
                sockets.source
            })
            .collect();
        assert_eq!(from[OF_ONE_SOURCE - 1], 0);
        let next = u8::from(cfg!(target_os = "linux"));
        assert_eq!(from[OF_ONE_SOURCE..], [next; 3]);
    }

    #[test]
    fn connections_that_are_made_anew_do_not_wander_to_other_sources() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sockets = Sockets::new(listener.local_addr().unwrap(), 1);
        for _ in 0..OF_ONE_SOURCE + 1 {
            sockets.open().unwrap();
        }
        assert_eq!(sockets.source, 0);
    }
}
