//! A target for `benchmarks/arrivals.py`: answers 84 bytes and notes when each request reached the machine.
//!
//! Prints its port. Each line of standard input is a path: the arrivals since the last one are written there, as
//! nanoseconds, eight bytes each, little endian. The time is the kernel's, taken as the segment came in: how soon this
//! process is woken does not blur it.

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, BufRead, Write};
    use std::mem;
    use std::net::TcpListener;
    use std::os::fd::{AsRawFd, RawFd};
    use std::ptr;
    use std::sync::{Arc, Mutex, PoisonError};

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n\
        <h1>Hello, World!</h1><h1>Hello, World!</h1>";
    const BATCH: usize = 256;

    type Arrivals = Arc<Mutex<Vec<u64>>>;

    pub fn main() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        stamp(listener.as_raw_fd())?;
        // SAFETY: a number in, a number out. `std` listens with a short backlog; this replaces it.
        check(unsafe { libc::listen(listener.as_raw_fd(), 65_535) })?;
        println!("{}", listener.local_addr()?.port());
        let arrivals: Arrivals = Arc::default();
        let noted = Arc::clone(&arrivals);
        std::thread::spawn(move || serve(&listener, &noted));
        for path in io::stdin().lock().lines() {
            let seen = mem::take(&mut *arrivals.lock().unwrap_or_else(PoisonError::into_inner));
            let bytes: Vec<u8> = seen.iter().flat_map(|at| at.to_le_bytes()).collect();
            std::fs::write(path?, bytes)?;
            println!("{}", seen.len());
            io::stdout().flush()?;
        }
        Ok(())
    }

    /// Asks for the kernel's time of arrival. Accepted sockets inherit it.
    fn stamp(socket: RawFd) -> io::Result<()> {
        let on: libc::c_int = 1;
        let size = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: the option is one `int`, which lives to the end of the call.
        check(unsafe {
            libc::setsockopt(
                socket,
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                (&raw const on).cast(),
                size,
            )
        })?;
        Ok(())
    }

    fn serve(listener: &TcpListener, arrivals: &Arrivals) -> io::Result<()> {
        // SAFETY: a number in, a number out.
        let epoll = check(unsafe { libc::epoll_create1(0) })?;
        watch(epoll, listener.as_raw_fd())?;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            // SAFETY: `events` has room for BATCH entries.
            let count =
                unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), BATCH as libc::c_int, -1) };
            for event in &events[..usize::try_from(count).unwrap_or(0)] {
                let socket = event.u64 as RawFd;
                if socket == listener.as_raw_fd() {
                    accept(epoll, socket)?;
                } else if let Some(at) = receive(socket) {
                    batch.push(at);
                    // SAFETY: the bytes are a constant; a caller that is gone is found out at the next reading.
                    unsafe {
                        libc::send(
                            socket,
                            ANSWER.as_ptr().cast(),
                            ANSWER.len(),
                            libc::MSG_NOSIGNAL,
                        )
                    };
                }
            }
            arrivals
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .append(&mut batch);
        }
    }

    fn accept(epoll: RawFd, listener: RawFd) -> io::Result<()> {
        loop {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: no address is asked for.
            let socket =
                unsafe { libc::accept4(listener, ptr::null_mut(), ptr::null_mut(), flags) };
            if socket < 0 {
                return Ok(());
            }
            watch(epoll, socket)?;
        }
    }

    fn watch(epoll: RawFd, socket: RawFd) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: socket as u64,
        };
        // SAFETY: `event` lives to the end of the call.
        check(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, socket, &raw mut event) })?;
        Ok(())
    }

    /// Reads what came; when it came, if it ends a request. Generators send each request in one segment, so the end
    /// of a head is all there is to look for.
    fn receive(socket: RawFd) -> Option<u64> {
        let mut bytes = [0_u8; 4096];
        let mut control = [0_u64; 16];
        let mut piece = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        // SAFETY: `msghdr` is plain numbers and pointers, for which all zeroes is a value.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: all that `message` points at lives to the end of this function.
        let count = unsafe { libc::recvmsg(socket, &raw mut message, 0) };
        if count <= 0 {
            if count == 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock {
                // SAFETY: the descriptor is ours; epoll forgets it by itself.
                unsafe { libc::close(socket) };
            }
            return None;
        }
        let ends = bytes[..count as usize].ends_with(b"\r\n\r\n");
        ends.then(|| stamped(&message).unwrap_or_else(now))
    }

    /// The kernel's time of arrival among the control messages.
    fn stamped(message: &libc::msghdr) -> Option<u64> {
        // SAFETY: the kernel filled the control buffer of `message` and its length.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
        while !header.is_null() {
            // SAFETY: not null, so it points at a whole header within the control buffer.
            let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
            if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
                // SAFETY: a message of this kind carries one `timespec`, perhaps not aligned.
                let time: libc::timespec =
                    unsafe { ptr::read_unaligned(libc::CMSG_DATA(header).cast()) };
                return Some(nanos(time));
            }
            // SAFETY: as above.
            header = unsafe { libc::CMSG_NXTHDR(message, header) };
        }
        None
    }

    fn now() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is a valid place to write to.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
        nanos(time)
    }

    fn nanos(time: libc::timespec) -> u64 {
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn check(result: libc::c_int) -> io::Result<libc::c_int> {
        if result < 0 {
            Err(io::Error::last_os_error())
        } else {
            Ok(result)
        }
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::io::Result<()> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("arrivals are stamped by the kernel, and only Linux is asked for it");
}
