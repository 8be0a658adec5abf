//! A server of a few lines on a thread per connection, whose answers a test writes itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

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

    /// Answers as soon as the head is there and reads the body only after a while.
    pub fn hasty() -> Server {
        Server::listen(|mut peer| {
            let mut reader = BufReader::new(peer.try_clone().unwrap());
            while let Some(length) = read_head(&mut reader) {
                peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                    .unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
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
        .set_linger(Some(std::time::Duration::ZERO))
        .unwrap();
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
