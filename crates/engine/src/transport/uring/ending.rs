//! The end of a ring: no memory the kernel still knows is given back.

use std::mem::ManuallyDrop;
use std::net::Shutdown;

use io_uring::types::{CancelBuilder, Timespec};

use super::Uring;
use crate::clock::SECOND;
use crate::transport::os::monotonic;

impl Drop for Uring {
    fn drop(&mut self) {
        self.let_go();
        let _ = self.ring.submit();
        for link in self.links.drain(..).flatten() {
            let _ = link.socket.shutdown(Shutdown::Both);
        }
        let deadline = monotonic() + SECOND;
        while self.under_way > 0 && monotonic() < deadline && self.wait(SECOND / 10).is_ok() {
            self.collect();
            self.completions.clear();
        }
        // Sends do not tell of their success, and this waits for the last of them. For receives it would do as well, but
        // in quadratic time.
        let cancelled = self
            .ring
            .submitter()
            .register_sync_cancel(Some(Timespec::new().sec(1)), CancelBuilder::any());
        let gone = cancelled.is_ok()
            || cancelled.is_err_and(|error| error.raw_os_error() == Some(libc::ENOENT));
        // SAFETY: each is dropped here only, once, and not used after. The ring goes first: with no operation left, the
        // kernel then knows none of the memory.
        unsafe { ManuallyDrop::drop(&mut self.ring) };
        if gone {
            // SAFETY: as above.
            unsafe {
                ManuallyDrop::drop(&mut self.buffers);
                ManuallyDrop::drop(&mut self.requests);
                ManuallyDrop::drop(&mut self.flights);
                ManuallyDrop::drop(&mut self.target);
                ManuallyDrop::drop(&mut self.stamped);
            }
        }
        // Otherwise operations may still be under way: memory they know is leaked rather than reused under them.
    }
}
