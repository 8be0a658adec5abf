//! Which sockets are ready, with a deadline to the nanosecond: epoll.
//!
//! `poller_portable.rs` has the same interface for systems without epoll.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::os::readiness::{Interest, Mode, Ready};

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    /// So many sockets are told of at once; the rest follows after timers had their turn.
    batch: usize,
    /// Whether the kernel has `epoll_pwait2` (Linux 5.11).
    precise: bool,
}

impl Poller {
    pub fn new(batch: usize) -> io::Result<Self> {
        // SAFETY: takes a number, touches no memory.
        let epoll = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor was just made and nobody else owns it.
        let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
        Ok(Self {
            epoll,
            events: Vec::with_capacity(batch),
            batch,
            precise: true,
        })
    }

    /// Begins to watch.
    pub fn add(
        &self,
        source: &impl AsFd,
        token: u64,
        interest: Interest,
        mode: Mode,
    ) -> io::Result<()> {
        let how = match mode {
            Mode::Level => 0,
            Mode::Shared => libc::EPOLLEXCLUSIVE as u32,
            Mode::Edge => (libc::EPOLLET | libc::EPOLLRDHUP) as u32,
        };
        self.control(libc::EPOLL_CTL_ADD, source, token, flags(interest) | how)
    }

    pub fn change(&self, source: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, source, token, flags(interest))
    }

    pub fn remove(&self, source: &impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, source, 0, 0)
    }

    /// To be called before a watched socket is closed. epoll notices the closing by itself.
    pub fn closing(&self, _source: &impl AsFd) {}

    /// Waits for sockets, at most `timeout` nanoseconds (`None`: for ever), and puts them in `ready`.
    pub fn wait(&mut self, timeout: Option<u64>, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        let count = match self.wait_once(timeout) {
            // EPERM: seccomp filters older than the call say so.
            Err(error)
                if self.precise
                    && matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) =>
            {
                self.precise = false;
                self.wait_once(timeout)
            }
            other => other,
        };
        let count = match count {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        // SAFETY: the kernel filled the first `count` entries, and `count` is at most the capacity it was given.
        unsafe { self.events.set_len(count) };
        ready.extend(self.events.iter().map(|event| {
            let events = event.events;
            let broken = events & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
            let ended = broken || events & libc::EPOLLRDHUP as u32 != 0;
            Ready {
                token: event.u64,
                read: ended || events & libc::EPOLLIN as u32 != 0,
                write: broken || events & libc::EPOLLOUT as u32 != 0,
                broken,
                ended,
            }
        }));
        Ok(())
    }

    fn wait_once(&mut self, timeout: Option<u64>) -> io::Result<usize> {
        let limit = timeout.map(|nanos| libc::timespec {
            tv_sec: (nanos / 1_000_000_000) as libc::time_t,
            tv_nsec: (nanos % 1_000_000_000) as libc::c_long,
        });
        let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (epoll, events) = (self.epoll.as_raw_fd(), self.events.as_mut_ptr());
        let result = if self.precise {
            // SAFETY: `events` has room for `batch` entries, `limit` is null or lives to the end of this function, and
            // no signal mask is given. The syscall by number, because not every C library has a name for it.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    epoll,
                    events,
                    self.batch,
                    limit,
                    ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            };
            result as libc::c_int
        } else {
            let mut itself = libc::pollfd {
                fd: epoll,
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one `pollfd` and `limit` (or null) live to the end of this function. `ppoll` knows nanoseconds
            // where `epoll_wait` knows milliseconds, and an epoll descriptor can itself be polled.
            check(unsafe { libc::ppoll(&raw mut itself, 1, limit, ptr::null()) })?;
            // SAFETY: `events` has room for `batch` entries.
            unsafe { libc::epoll_wait(epoll, events, self.batch as libc::c_int, 0) }
        };
        check(result).map(|count| count as usize)
    }

    fn control(
        &self,
        operation: libc::c_int,
        source: &impl AsFd,
        token: u64,
        events: u32,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        let source = source.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open while they are borrowed, and `event` lives to the end of the call.
        check(unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, source, &raw mut event) })
            .map(drop)
    }

    /// Its descriptor, for whoever waits for something else as well.
    pub fn descriptor(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    #[cfg(test)]
    fn imprecise(mut self) -> Self {
        self.precise = false;
        self
    }
}

fn flags(interest: Interest) -> u32 {
    let read = if interest.read { libc::EPOLLIN } else { 0 };
    let write = if interest.write { libc::EPOLLOUT } else { 0 };
    (read | write) as u32
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::time::{Duration, Instant};

    #[test]
    fn old_kernels_and_new_ones_wait_alike() {
        for mut poller in [
            Poller::new(64).unwrap(),
            Poller::new(64).unwrap().imprecise(),
        ] {
            let (mut near, far) = UnixStream::pair().unwrap();
            poller.add(&far, 7, Interest::READ, Mode::Level).unwrap();
            let mut ready = Vec::new();
            let before = Instant::now();
            poller.wait(Some(1_500_000), &mut ready).unwrap();
            assert!(before.elapsed() >= Duration::from_micros(1_500) && ready.is_empty());
            near.write_all(b"x").unwrap();
            poller.wait(None, &mut ready).unwrap();
            assert_eq!(
                ready,
                [Ready {
                    token: 7,
                    read: true,
                    write: false,
                    broken: false,
                    ended: false
                }]
            );
            poller
                .change(
                    &far,
                    8,
                    Interest {
                        read: false,
                        write: true,
                    },
                )
                .unwrap();
            poller.wait(None, &mut ready).unwrap();
            assert_eq!(
                ready,
                [Ready {
                    token: 8,
                    read: false,
                    write: true,
                    broken: false,
                    ended: false
                }]
            );
            poller.remove(&far).unwrap();
            poller.wait(Some(0), &mut ready).unwrap();
            assert!(ready.is_empty());
        }
    }
}
