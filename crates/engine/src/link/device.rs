//! A TUN device somebody else has opened (tun(4), Linux `Documentation/networking/tuntap.rst`).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A device with `IFF_TUN | IFF_NO_PI | IFF_VNET_HDR`, opened non-blocking: each read and write is one packet.
#[derive(Debug)]
pub(super) struct Device(File);

impl Device {
    /// The device of a descriptor.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(File::from(descriptor))
    }

    /// Reads the next packet; None: there is none.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.0).read(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands a packet to the network behind the device, which takes it whole or not at all.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.0).write(packet).map(drop)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
