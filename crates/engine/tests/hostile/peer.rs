//! A server of a few lines with a thread for each connection, which says what it likes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Listens until it is dropped. Its connections end when the other side does.
pub struct Peer {
    pub port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Peer {
    pub fn start(talk: fn(&mut TcpStream)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let thread = std::thread::spawn(move || {
            for peer in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let mut peer = peer.unwrap();
                peer.set_write_timeout(Some(Duration::from_secs(5)))
                    .unwrap();
                std::thread::spawn(move || {
                    talk(&mut peer);
                    until_it_leaves(&mut peer);
                });
            }
        });
        Self {
            port,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread out of its accept.
        let _ = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port)));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Reads to the empty line that ends a request's head; what the other side left unsaid is not there.
pub fn head(peer: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && matches!(peer.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Writes once; whether it was taken.
pub fn say(peer: &mut TcpStream, bytes: &[u8]) -> bool {
    peer.write_all(bytes).is_ok()
}

/// Writes the same again and again until nobody takes it any more.
pub fn forever(peer: &mut TcpStream, bytes: &[u8]) {
    let many = bytes.repeat((1 << 16) / bytes.len() + 1);
    while say(peer, &many) {}
}

/// Closing with bytes unread would reset the connection and throw away what was said: they are read first.
fn until_it_leaves(peer: &mut TcpStream) {
    let _ = peer.set_read_timeout(Some(Duration::from_secs(5)));
    let mut buffer = [0; 1 << 12];
    while matches!(peer.read(&mut buffer), Ok(1..)) {}
}
