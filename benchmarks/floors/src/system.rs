//! The few system calls the floors are made of.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

/// Events taken at once.
pub const BATCH: usize = 256;

/// What a system call returned, or its error.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        0.. => Ok(result),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Timers of this thread fire within 1 ns of their time instead of 50 us.
pub fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// One epoll set and room for what it tells.
pub struct Poll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        // SAFETY: flags in, a descriptor out, which is checked before it is used.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Poll {
            // SAFETY: just made, and nobody else's.
            epoll: unsafe { OwnedFd::from_raw_fd(epoll) },
            events: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH],
        })
    }

    /// Watches a descriptor, edge-triggered unless `flags` are told otherwise; `number` comes back with its events.
    pub fn add(&self, socket: RawFd, flags: libc::c_int, number: usize) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: flags as u32,
            u64: number as u64,
        };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: `event` lives to the end of the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &raw mut event) })?;
        Ok(())
    }

    /// Waits so many nanoseconds at most; the numbers of what is ready, and how.
    pub fn wait(&mut self, longest: u64) -> io::Result<impl Iterator<Item = (usize, u32)>> {
        let timeout = libc::timespec {
            tv_sec: (longest / 1_000_000_000) as libc::time_t,
            tv_nsec: (longest % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: there is room for BATCH events, which with `timeout` outlives the call; no signal mask is given.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                BATCH as libc::c_int,
                &raw const timeout,
                ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        let count = match check(count as libc::c_int) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        Ok(self.events[..count as usize]
            .iter()
            .map(|event| (event.u64 as usize, event.events)))
    }
}

/// Sends; how many bytes the socket took, 0 where it is full.
pub fn send(socket: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are borrowed for the call.
    let sent = unsafe {
        libc::send(
            socket,
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    moved(sent)
}

/// Receives; None: nothing now. 0 bytes are the end.
pub fn receive(socket: RawFd, bytes: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: the bytes are borrowed mutably for the call.
    let count = unsafe { libc::recv(socket, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    came(count)
}

/// Lets the kernel drop up to `most` bytes; None: there are none now.
pub fn discard(socket: RawFd, most: usize) -> io::Result<Option<usize>> {
    // SAFETY: with MSG_TRUNC, TCP writes nothing (tcp(7)).
    let count = unsafe { libc::recv(socket, ptr::null_mut(), most, libc::MSG_TRUNC) };
    came(count)
}

fn came(count: isize) -> io::Result<Option<usize>> {
    if count >= 0 {
        return Ok(Some(count as usize));
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        error => Err(error),
    }
}

fn moved(count: isize) -> io::Result<usize> {
    came(count).map(|count| count.unwrap_or(0))
}
