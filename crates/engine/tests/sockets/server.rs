//! A server of a few lines on a thread per connection, whose answers a test writes itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A body of 20 MB.
pub static BIG: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..20_000_000u32).map(|n| (n % 251) as u8).collect());

/// Listens until it is dropped.
pub struct Server {
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Calls `serve` for each request that was read whole, with the length of its body; false closes.
    pub fn start(serve: fn(&mut TcpStream, usize) -> bool) -> Server {
        Server::listen(move |mut peer| {
            let mut reader = BufReader::new(peer.try_clone().unwrap());
            while let Some(length) = read_request(&mut reader) {
                if !serve(&mut peer, length) {
                    return;
                }
            }
        })
    }

    /// Answers each request with what `answer` says to its first line and its body, and whether the connection stays.
    pub fn saying(answer: fn(&str, &str) -> (String, bool)) -> Server {
        Server::listen(move |mut peer| {
            let mut reader = BufReader::new(peer.try_clone().unwrap());
            let mut first = String::new();
            while reader.read_line(&mut first).is_ok_and(|read| read > 0) {
                let Some(length) = read_head(&mut reader) else {
                    return;
                };
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let (said, stays) = answer(first.trim_end(), &String::from_utf8(body).unwrap());
                if peer.write_all(said.as_bytes()).is_err() || !stays {
                    return;
                }
                first.clear();
            }
        })
    }

    /// Greets a client without a cookie with 201 and a number of its own, and one with a number that was given with 200;
    /// each answer has so many bytes of body.
    pub fn greeting(bytes: usize) -> Server {
        static GIVEN: AtomicUsize = AtomicUsize::new(0);
        Server::listen(move |mut peer| {
            let body = "x".repeat(bytes);
            let mut reader = BufReader::new(peer.try_clone().unwrap());
            let (mut line, mut known) = (String::new(), None);
            while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                if let Some(told) = line.strip_prefix("Cookie: id=") {
                    known = told.trim_end().parse::<usize>().ok();
                }
                if line == "\r\n" {
                    let (status, more) = match known.take() {
                        Some(number) if number < GIVEN.load(Ordering::SeqCst) => {
                            (200, String::new())
                        }
                        Some(_) => (400, String::new()),
                        None => {
                            let number = GIVEN.fetch_add(1, Ordering::SeqCst);
                            (201, format!("Set-Cookie: id={number}; Path=/\r\n"))
                        }
                    };
                    let answer = format!(
                        "HTTP/1.1 {status} As told\r\n{more}Content-Length: {bytes}\r\n\r\n{body}"
                    );
                    if peer.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
                line.clear();
            }
        })
    }

    /// Answers so many requests of one connection before any of another, in the order in which they came; or fewer, where
    /// the next does not come within `patience`.
    pub fn in_bursts(of: usize, patience: Duration) -> Server {
        let line: &'static Line = Box::leak(Box::default());
        Server::listen(move |mut peer| {
            let mut reader = BufReader::new(peer.try_clone().unwrap());
            while read_request(&mut reader).is_some() {
                let _turn = line.stand();
                for left in (0..of).rev() {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                    if peer.write_all(answer).is_err() {
                        return;
                    }
                    if left == 0 || !asks_within(&mut reader, patience) {
                        break;
                    }
                    if read_request(&mut reader).is_none() {
                        return;
                    }
                }
            }
        })
    }

    /// Answers as soon as the head is there and reads the body only after a while.
    pub fn hasty() -> Server {
        Server::listen(|mut peer| {
            let mut reader = BufReader::new(peer.try_clone().unwrap());
            while let Some(length) = read_head(&mut reader) {
                peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    .unwrap();
                std::thread::sleep(Duration::from_millis(20));
                if std::io::copy(&mut (&mut reader).take(length as u64), &mut std::io::sink())
                    .is_err()
                {
                    return;
                }
            }
        })
    }

    fn listen(connection: impl Fn(TcpStream) + Send + Sync + Copy + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            for peer in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let peer = peer.unwrap();
                peer.set_nodelay(true).unwrap();
                std::thread::spawn(move || connection(peer));
            }
        });
        Server {
            port,
            stop,
            thread: Some(thread),
        }
    }

    /// Stops listening and returns the port, which nobody has then.
    pub fn stop(self) -> u16 {
        self.port
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread out of its accept.
        let _ = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port)));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Ends the connection so that the peer sees a reset.
pub fn reset(peer: &TcpStream) {
    socket2::SockRef::from(peer)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

/// Who came first is first: how many have come, and whose turn it is.
#[derive(Default)]
struct Line {
    state: Mutex<(u64, u64)>,
    moved: Condvar,
}

impl Line {
    /// Waits for its turn, which lasts until it is dropped.
    fn stand(&self) -> Turn<'_> {
        let mut state = self.state.lock().unwrap();
        let mine = state.0;
        state.0 += 1;
        let _state = self
            .moved
            .wait_while(state, |state| state.1 != mine)
            .unwrap();
        Turn(self)
    }
}

struct Turn<'a>(&'a Line);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().unwrap().1 += 1;
        self.0.moved.notify_all();
    }
}

fn asks_within(reader: &mut BufReader<TcpStream>, time: Duration) -> bool {
    reader.get_ref().set_read_timeout(Some(time)).unwrap();
    let asks = reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
    reader.get_ref().set_read_timeout(None).unwrap();
    asks
}

fn read_head(reader: &mut impl BufRead) -> Option<usize> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            return Some(length);
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<usize> {
    let length = read_head(reader)?;
    std::io::copy(&mut reader.take(length as u64), &mut std::io::sink())
        .ok()
        .map(|read| read as usize)
}
