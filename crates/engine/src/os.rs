//! The few things the operating system knows and `std` does not ask it.

#[cfg_attr(not(target_os = "linux"), path = "os/poller_portable.rs")]
pub(crate) mod poller;
pub(crate) mod readiness;
#[cfg_attr(not(target_os = "linux"), path = "os/sockets_portable.rs")]
pub(crate) mod sockets;

use std::io;

use rustix::time::{ClockId, clock_gettime};

use crate::clock::{Nanos, SECOND};

pub use sockets::TcpInfo;

/// CPU time used, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In our own code.
    pub user: Nanos,
    /// In the kernel on our behalf.
    pub system: Nanos,
}

impl CpuTime {
    /// What was used since `earlier`.
    pub fn since(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }

    /// Both together, of two threads.
    pub fn plus(self, other: CpuTime) -> CpuTime {
        CpuTime {
            user: self.user + other.user,
            system: self.system + other.system,
        }
    }

    /// User and system time.
    pub fn total(self) -> Nanos {
        self.user + self.system
    }
}

/// CPU time of the calling thread (of the whole process on macOS, which has no such count per thread).
pub fn cpu_time() -> CpuTime {
    #[cfg(target_os = "linux")]
    let who = libc::RUSAGE_THREAD;
    #[cfg(not(target_os = "linux"))]
    let who = libc::RUSAGE_SELF;
    // SAFETY: `rusage` is plain numbers, for which all zeroes is a value, and the call only writes to it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let nanos = |time: libc::timeval| time.tv_sec as Nanos * SECOND + time.tv_usec as Nanos * 1_000;
    CpuTime {
        user: nanos(usage.ru_utime),
        system: nanos(usage.ru_stime),
    }
}

/// What the scheduler has counted of a thread so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Time on a CPU; 0 where the kernel does not count (CONFIG_SCHED_INFO), and of a thread that has just begun.
    ran: Nanos,
    /// Time it was ready to run, and others ran.
    waited: Nanos,
}

impl Scheduled {
    /// How long the thread waited for a CPU since `earlier`; None where the kernel does not count.
    pub fn waited_since(self, earlier: Scheduled) -> Option<Nanos> {
        (self.ran > 0).then(|| self.waited.saturating_sub(earlier.waited))
    }
}

/// Reads what the scheduler has counted of the calling thread; None on other systems than Linux.
pub fn scheduled() -> Option<Scheduled> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    // Time on a CPU, time waited for one (both nanoseconds), times it got one: Documentation/scheduler/sched-stats.
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let (ran, waited) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Scheduled { ran, waited })
}

/// Lets this thread's timers fire within 1 ns of their time instead of within 50 us, Linux' default slack.
pub fn sharpen_timers() {
    #[cfg(target_os = "linux")]
    // SAFETY: PR_SET_TIMERSLACK takes one number and touches no memory of ours.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong)
    };
}

/// Puts the calling thread, and no child of it, into the real-time class with its lowest priority; false: not allowed, or
/// not Linux.
pub fn enter_real_time() -> bool {
    #[cfg(target_os = "linux")]
    return schedule(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1);
    #[cfg(not(target_os = "linux"))]
    false
}

/// Puts the calling thread back among all others.
pub fn leave_real_time() {
    #[cfg(target_os = "linux")]
    schedule(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0);
}

#[cfg(target_os = "linux")]
fn schedule(policy: libc::c_int, priority: libc::c_int) -> bool {
    // SAFETY: all its fields are numbers, for which zero is a value.
    let mut wanted: libc::sched_param = unsafe { std::mem::zeroed() };
    wanted.sched_priority = priority;
    // SAFETY: `wanted` is valid to read from; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const wanted) == 0 }
}

/// Whether the calling thread is in the real-time class.
#[cfg(test)]
pub fn is_real_time() -> bool {
    // SAFETY: takes a number and touches no memory of ours; 0 is the calling thread.
    unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO }
}

/// CPU time of the calling thread so far.
pub fn thread_cpu() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

fn file_limit() -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid place to write to.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(limit)
}

/// How many files this process may have open at most, once the soft limit is raised.
pub fn most_files() -> io::Result<u64> {
    Ok(file_limit()?.rlim_max)
}

/// Makes room for `wanted` open files by raising the soft limit; the error says which limit is in the way and the cure.
pub fn allow_files(wanted: u64) -> io::Result<()> {
    let mut limit = file_limit()?;
    if limit.rlim_cur >= wanted {
        return Ok(());
    }
    let hard = limit.rlim_max;
    limit.rlim_cur = wanted.min(hard);
    // SAFETY: `limit` is valid to read from; the soft limit is not above the hard one.
    let raised = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) } == 0;
    if raised && hard >= wanted {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "too few file descriptors: {wanted} are needed and the hard limit (RLIMIT_NOFILE) is {hard}; \
         raise it with `ulimit -Hn {wanted}` as root, or use fewer connections"
    )))
}

/// Lets the port of a bound socket be chosen when it connects, so that a port serves once per target and not once only.
#[cfg(target_os = "linux")]
pub fn bind_address_no_port(socket: &impl std::os::fd::AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open while `socket` is borrowed, and the option is one `int` that lives to the end.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;

    #[test]
    fn an_impossible_number_of_files_says_which_limit_and_the_cure() {
        let text = allow_files(u64::MAX / 2).unwrap_err().to_string();
        assert!(
            text.contains("RLIMIT_NOFILE") && text.contains("ulimit -Hn"),
            "{text}"
        );
        assert!(allow_files(16).is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_shares_its_cpu_waits_for_it() {
        let pin = || {
            // SAFETY: a `cpu_set_t` is plain bits, for which all zeroes is a value; the call reads what it is given.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(libc::sched_getcpu() as usize, &mut set);
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
            }
        };
        // A thread of its own: what it does to its affinity ends with it.
        std::thread::spawn(move || {
            assert_eq!(pin(), 0);
            let Some(before) = scheduled() else {
                return;
            };
            let start = monotonic();
            // Threads inherit the one CPU.
            let rival = std::thread::spawn(move || while monotonic() - start < 200_000_000 {});
            while monotonic() - start < 200_000_000 {}
            rival.join().unwrap();
            if let Some(waited) = scheduled().unwrap().waited_since(before) {
                assert!(waited > 20_000_000, "{waited}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = cpu_time();
        let start = monotonic();
        while monotonic() - start < 20_000_000 {}
        assert!(cpu_time().since(before).total() > 1_000_000);
    }
}
