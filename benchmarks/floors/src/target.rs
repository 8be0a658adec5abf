//! The plainest target: one epoll thread, one constant answer, nothing read but where requests end.
//!
//! Prints its port and the bytes of an answer on the wire. Each line of standard input is answered with how many
//! requests and how many connections it has had.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::shot::word;
use crate::system::{Poll, check, now, receive, send};

static REQUESTS: AtomicU64 = AtomicU64::new(0);
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

/// What an answer costs or ends.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Plain,
    /// Each connection is closed after its answer.
    Close,
    /// So many nanoseconds are worked on each answer.
    Work(u64),
}

/// Serves until standard input ends.
pub fn serve(words: &[&str]) -> io::Result<()> {
    let body: usize = word(words, 0)?;
    let manner = match words.get(1) {
        None => Manner::Plain,
        Some(&"close") => Manner::Close,
        Some(&"work") => Manner::Work((word::<f64>(words, 2)? * 1000.0) as u64),
        Some(other) => return Err(io::Error::other(format!("'{other}' is no manner"))),
    };
    let answer = answer(body, manner);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    // SAFETY: a number in, a number out. `std` listens with a short backlog; this replaces it.
    check(unsafe { libc::listen(listener.as_raw_fd(), 65_535) })?;
    println!("{} {}", listener.local_addr()?.port(), answer.len());
    std::thread::spawn(move || attend(&listener, &answer, manner).expect("the target goes on"));
    for line in io::stdin().lock().lines() {
        line?;
        let (requests, connections) = (&REQUESTS, &CONNECTIONS);
        println!(
            "{} {}",
            requests.load(Ordering::Relaxed),
            connections.load(Ordering::Relaxed)
        );
        io::stdout().flush()?;
    }
    Ok(())
}

fn answer(body: usize, manner: Manner) -> Vec<u8> {
    let close = match manner {
        Manner::Close => "Connection: close\r\n",
        _ => "",
    };
    let mut answer =
        format!("HTTP/1.1 200 OK\r\n{close}Content-Length: {body}\r\n\r\n").into_bytes();
    answer.extend((0..body).map(|at| b'a' + (at % 23) as u8));
    answer
}

/// The one thread that serves.
fn attend(listener: &TcpListener, answer: &[u8], manner: Manner) -> io::Result<()> {
    let mut poll = Poll::new()?;
    // The listener is told of as often as somebody waits, the connections once for each arrival.
    poll.add(listener.as_raw_fd(), libc::EPOLLIN, 0)?;
    let mut unsent: HashMap<RawFd, usize> = HashMap::new();
    let (mut bytes, mut requests) = ([0_u8; 4096], 0);
    loop {
        let ready: Vec<(usize, u32)> = poll.wait(1_000_000_000)?.collect();
        for (number, flags) in ready {
            if number == 0 {
                accept(&poll, listener.as_raw_fd())?;
                continue;
            }
            let socket = number as RawFd;
            if flags & libc::EPOLLOUT as u32 != 0
                && let Some(rest) = unsent.remove(&socket)
            {
                go_on(socket, answer, answer.len() - rest, &mut unsent);
            }
            if flags & libc::EPOLLIN as u32 == 0 {
                continue;
            }
            match receive(socket, &mut bytes) {
                Ok(Some(0)) | Err(_) => {
                    unsent.remove(&socket);
                    close(socket);
                }
                Ok(Some(count)) if bytes[..count].ends_with(b"\r\n\r\n") => {
                    requests += 1;
                    if let Manner::Work(nanos) = manner {
                        let done = now() + nanos;
                        while now() < done {}
                    }
                    go_on(socket, answer, 0, &mut unsent);
                    if manner == Manner::Close {
                        close(socket);
                    }
                }
                _ => {}
            }
        }
        REQUESTS.store(requests, Ordering::Relaxed);
    }
}

/// Sends an answer from `from` on; what does not fit is remembered. A caller that is gone is found out when it is read.
fn go_on(socket: RawFd, answer: &[u8], from: usize, unsent: &mut HashMap<RawFd, usize>) {
    let mut at = from;
    while at < answer.len() {
        match send(socket, &answer[at..]) {
            Ok(0) => {
                unsent.insert(socket, answer.len() - at);
                return;
            }
            Ok(count) => at += count,
            Err(_) => return,
        }
    }
}

fn close(socket: RawFd) {
    // SAFETY: the descriptor is ours, and epoll forgets it by itself.
    unsafe { libc::close(socket) };
}

fn accept(poll: &Poll, listener: RawFd) -> io::Result<()> {
    loop {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no address is asked for.
        let socket = unsafe { libc::accept4(listener, ptr::null_mut(), ptr::null_mut(), flags) };
        if socket < 0 {
            return Ok(());
        }
        CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        nodelay(socket)?;
        let wanted = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        poll.add(socket, wanted, socket as usize)?;
    }
}

fn nodelay(socket: RawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is one `int`, which lives to the end of the call.
    check(unsafe {
        libc::setsockopt(
            socket,
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            size,
        )
    })?;
    Ok(())
}
