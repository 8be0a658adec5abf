//! A target for `benchmarks/grpc.py`: answers any gRPC call with one small message, as fast as one epoll thread can.
//!
//! It reads frames and nothing in them: what is measured beside it is the generator. Prints its port; each line of
//! standard input is answered with how many calls it has answered so far.

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::io::{self, BufRead, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsRawFd, RawFd};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const PREFACE: usize = 24;
    const HEADER: usize = 9;
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    /// The flag of DATA and HEADERS, and that of SETTINGS and PING.
    const END_STREAM: u8 = 1;
    const ACK: u8 = 1;
    const END_HEADERS: u8 = 4;
    /// `:status: 200` of the static table, then `content-type`, which is its entry 31, spelt out.
    const HEAD: &[u8] = b"\x88\x0f\x10\x10application/grpc";
    const TRAILERS: &[u8] = b"\x00\x0bgrpc-status\x010";
    /// HelloReply { message: "Hello, world!" } with its prefix.
    const REPLY: &[u8] = b"\x00\x00\x00\x00\x0f\x0a\x0dHello, world!";
    const BATCH: usize = 256;

    struct Guest {
        socket: TcpStream,
        read: Vec<u8>,
        /// Of the preface, still to come.
        preface: usize,
        out: Vec<u8>,
        answer: Vec<u8>,
    }

    pub fn main() -> io::Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        println!("{}", listener.local_addr()?.port());
        let answered = Arc::new(AtomicU64::new(0));
        let count = answered.clone();
        std::thread::spawn(move || serve(&listener, &count).expect("an epoll loop"));
        for line in io::stdin().lock().lines() {
            line?;
            println!("{}", answered.load(Ordering::SeqCst));
        }
        Ok(())
    }

    fn serve(listener: &TcpListener, answered: &AtomicU64) -> io::Result<()> {
        // SAFETY: a number in, a number out.
        let epoll = check(unsafe { libc::epoll_create1(0) })?;
        watch(epoll, listener.as_raw_fd())?;
        let mut guests: HashMap<RawFd, Guest> = HashMap::new();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; BATCH];
        let mut buffer = vec![0; 256 * 1024];
        loop {
            // SAFETY: `events` has room for BATCH entries.
            let count =
                unsafe { libc::epoll_wait(epoll, events.as_mut_ptr(), BATCH as libc::c_int, -1) };
            for event in &events[..usize::try_from(count).unwrap_or(0)] {
                let fd = event.u64 as RawFd;
                if fd == listener.as_raw_fd() {
                    while let Ok((socket, _)) = listener.accept() {
                        let guest = Guest::new(socket)?;
                        watch(epoll, guest.socket.as_raw_fd())?;
                        guests.insert(guest.socket.as_raw_fd(), guest);
                    }
                } else if let Some(guest) = guests.get_mut(&fd)
                    && !guest.work(&mut buffer, answered)
                {
                    // Closing takes it out of the epoll set.
                    guests.remove(&fd);
                }
            }
        }
    }

    impl Guest {
        fn new(socket: TcpStream) -> io::Result<Guest> {
            socket.set_nodelay(true)?;
            let mut out = Vec::new();
            // Any number of streams at once, and a window for what is sent in hours.
            frame(&mut out, SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
            frame(&mut out, 8, 0, 0, &[0x7f, 0, 0, 0]);
            (&socket).write_all(&out)?;
            socket.set_nonblocking(true)?;
            out.clear();
            let mut answer = Vec::new();
            frame(&mut answer, HEADERS, END_HEADERS, 0, HEAD);
            frame(&mut answer, DATA, 0, 0, REPLY);
            frame(&mut answer, HEADERS, END_HEADERS | END_STREAM, 0, TRAILERS);
            Ok(Guest {
                socket,
                read: Vec::new(),
                preface: PREFACE,
                out,
                answer,
            })
        }

        /// Reads and answers what has come; whether the connection goes on.
        fn work(&mut self, buffer: &mut [u8], answered: &AtomicU64) -> bool {
            loop {
                let count = match (&self.socket).read(buffer) {
                    Ok(0) => return false,
                    Ok(count) => count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => return false,
                };
                self.read.extend_from_slice(&buffer[..count]);
                let used = self.take(answered);
                self.read.drain(..used);
                if count < buffer.len() {
                    break;
                }
            }
            self.answer_all()
        }

        fn answer_all(&mut self) -> bool {
            let sent = match (&self.socket).write(&self.out) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(_) => return false,
            };
            // A generator that does not read what it asked for waits, and all others with it.
            let whole = sent == self.out.len()
                || (self.socket.set_nonblocking(false).is_ok()
                    && (&self.socket).write_all(&self.out[sent..]).is_ok()
                    && self.socket.set_nonblocking(true).is_ok());
            self.out.clear();
            whole
        }

        fn take(&mut self, answered: &AtomicU64) -> usize {
            let mut at = self.preface.min(self.read.len());
            self.preface -= at;
            while let Some(header) = self.read.get(at..at + HEADER) {
                let length = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
                let (kind, flags) = (header[3], header[4]);
                let stream: [u8; 4] = [header[5], header[6], header[7], header[8]];
                let Some(payload) = self.read.get(at + HEADER..at + HEADER + length) else {
                    break;
                };
                match kind {
                    DATA | HEADERS if flags & END_STREAM != 0 => {
                        let from = self.out.len();
                        self.out.extend_from_slice(&self.answer);
                        let second = HEADER + HEAD.len();
                        for start in [0, second, second + HEADER + REPLY.len()] {
                            self.out[from + start + 5..from + start + 9].copy_from_slice(&stream);
                        }
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    SETTINGS if flags & ACK == 0 => frame(&mut self.out, SETTINGS, ACK, 0, &[]),
                    PING if flags & ACK == 0 => frame(&mut self.out, PING, ACK, 0, payload),
                    _ => {}
                }
                at += HEADER + length;
            }
            at
        }
    }

    fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        out.extend_from_slice(&[kind, flags]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.extend_from_slice(payload);
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
    eprintln!("this target waits by epoll, which is Linux'");
}
