//! Where connections are made to: an address and port, or a socket in the file system.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

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
