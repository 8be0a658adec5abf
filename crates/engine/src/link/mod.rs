//! The network between generator and server: a relay of packets between two TUN devices, each in a network of its own.
//!
//! ```text
//! generator -- TCP -- tun ──▶ loss ──▶ queue ──▶ bottleneck ──▶ delay ──▶ tun -- TCP -- server      (and back alike)
//! ```
//!
//! It moves packets, not bytes: both ends' TCP see each delay and loss themselves, so that slow start, retransmission
//! and the send buffer are the kernel's own. A proxy of connections would hide all of that.
//!
//! What becomes of a packet is decided by [`path`], which is pure; [`packet`] cuts super-packets; [`relay`] is the loop.

mod device;
mod facts;
mod packet;
mod path;
mod relay;
mod spec;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use thiserror::Error;

pub use path::{Fate, Path};
pub use spec::Way;

use device::Device;
use facts::Facts;
use relay::Relay;
use spec::Spec;

/// Why a link cannot be had.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The specification makes no sense.
    #[error("the link cannot be relayed: {0}")]
    Spec(String),
    /// The system has no more threads or file descriptors, or the devices are none.
    #[error("the link cannot be relayed: {0}")]
    System(#[from] io::Error),
}

/// What the relay's thread can be told.
enum Command {
    /// Tell what happened since the last time.
    Facts(Sender<Facts>),
    /// End.
    Stop,
}

/// A running relay; ends when dropped, and with it the devices.
pub struct Link {
    commands: Mutex<Sender<Command>>,
    wake: UnixStream,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Link {
    /// Relays between two TUN devices, from the first, the client's, to the second, the server's, as `there` says and
    /// back as `back` does. `spec` is JSON: `there` and `back` (see [`Way`]) and `seed`.
    ///
    /// # Errors
    /// The first fault of the specification; or the system's.
    pub fn start(spec: &str, devices: [OwnedFd; 2]) -> Result<Self, LinkError> {
        let devices = devices.map(Device::new);
        let spec = Spec::parse(spec).map_err(LinkError::Spec)?;
        let (commands, inbox) = mpsc::channel();
        let (wake, woken) = UnixStream::pair()?;
        let relay = Relay::new(&spec, devices, woken, inbox)?;
        let thread = std::thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || relay.run())?;
        Ok(Self {
            commands: Mutex::new(commands),
            wake,
            thread: Some(thread),
        })
    }

    /// What happened since this was last asked, as JSON: `there` and `back` with `packets` (segments), `bytes`, `lost`
    /// (by chance), `dropped` (the queue was full) and `undelivered` (the other end did not take them); `late_ms` with
    /// `p50`, `p99` and `max`; `hdr_late`; `cpu_s`. A span ends with it and the next begins: packets are numbered from 0
    /// for the draw of those lost by chance, so that what went before has no part in it.
    ///
    /// # Errors
    /// Why the relay has ended.
    pub fn facts(&mut self) -> io::Result<String> {
        let (reply, answer) = mpsc::channel();
        self.tell(Command::Facts(reply));
        match answer.recv() {
            Ok(facts) => Ok(facts.to_json()),
            Err(_) => Err(self.end()),
        }
    }

    fn tell(&self, command: Command) {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        // Where the thread is gone, its answer is missing, which is told by who waits for it.
        let _ = commands.send(command);
        let _ = (&self.wake).write(&[0]);
    }

    /// Why the thread is gone.
    fn end(&mut self) -> io::Error {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => error,
            Some(Err(_)) => io::Error::other("its thread has panicked"),
            _ => io::Error::other("it has been stopped"),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tell(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // How it ended is of no interest any more.
            let _ = thread.join();
        }
    }
}
