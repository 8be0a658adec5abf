//! Descriptors that Python gives away: numbers become what is owned, here and nowhere else.
//!
//! The only `unsafe` code of this crate, as the engine's is in its `transport`; the lint `unsafe_code` sees to both.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// `st_rdev` of `/dev/net/tun`, under whatever name: major 10 (misc), minor 200 (Linux `Documentation/admin-guide/devices.txt`).
const TUN: u64 = 10 << 8 | 200;

/// Takes two TUN devices over, which are closed in the end.
///
/// # Errors
/// A number is no descriptor of a TUN device, or both are the same. It is left alone then: it may be somebody else's.
pub fn devices(client: RawFd, server: RawFd) -> io::Result<[OwnedFd; 2]> {
    if client == server {
        let why = format!("descriptor {client} was given for both TUN devices");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    for number in [client, server] {
        let file = std::fs::metadata(format!("/proc/self/fd/{number}"));
        if !file.is_ok_and(|file| file.rdev() == TUN) {
            let why = format!("descriptor {number} is no TUN device");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    }
    // SAFETY: both are open, as was just seen, and differ. Nothing in this process but its Python opens TUN devices, so no
    // other owner of them is Rust's; and Python's part, to use neither again, is what `_native.pyi` says of `Link` and its
    // only caller does (`run/relay_process.py` inherits them as numbers and hands them on).
    Ok([client, server].map(|number| unsafe { OwnedFd::from_raw_fd(number) }))
}
