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

mod packet;
mod path;
mod relay;

use std::io;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::clock::{Nanos, SECOND, seconds};
use crate::durations::Durations;
use crate::durations::encode;
use crate::link::relay::{Device, Relay};

pub use path::{Fate, Path};

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

/// TCP gives up a connection whose handshake takes minutes.
const LONGEST_DELAY: Nanos = 60 * SECOND;

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Way {
    /// How long a packet travels, nanoseconds.
    pub delay_ns: Nanos,
    /// By how much that varies, either side, nanoseconds.
    #[serde(default)]
    pub jitter_ns: Nanos,
    /// Of the bottleneck, 10^6 bits of IP packets per second; None: there is no bottleneck.
    #[serde(default)]
    pub rate_mbit: Option<f64>,
    /// How many packets may wait before the bottleneck; None: all that come.
    #[serde(default)]
    pub queue_packets: Option<usize>,
    /// Share of packets that is lost, 0 to 1.
    #[serde(default)]
    pub loss: f64,
}

/// Both directions.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    /// From the client to the server.
    pub there: Way,
    /// From the server to the client.
    pub back: Way,
    /// Of loss and jitter.
    pub seed: u64,
}

impl Spec {
    /// Reads and checks; an error is the rest of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let spec: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        for (name, way) in [("there", &spec.there), ("back", &spec.back)] {
            way.check().map_err(|fault| format!("{name}.{fault}"))?;
        }
        Ok(spec)
    }
}

impl Way {
    fn check(&self) -> Result<(), String> {
        if self.delay_ns > LONGEST_DELAY {
            return Err(format!("delay_ns is {}, over a minute", self.delay_ns));
        }
        if self.jitter_ns > self.delay_ns {
            return Err(
                "jitter_ns is more than delay_ns: no packet arrives before it is sent".to_owned(),
            );
        }
        if self
            .rate_mbit
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0))
        {
            return Err("rate_mbit is not above 0".to_owned());
        }
        if !(0.0..=1.0).contains(&self.loss) {
            return Err(format!("loss is {}, not a share from 0 to 1", self.loss));
        }
        Ok(())
    }
}

/// Of one direction. Packets are counted as they would be on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Sent into the link.
    pub packets: u64,
    pub bytes: u64,
    /// By chance.
    pub lost: u64,
    /// The queue was full.
    pub dropped: u64,
    /// The device at the other end refused them, or there were more under way than memory is given for.
    pub undelivered: u64,
}

/// Of both.
#[derive(Debug, Default)]
struct Facts {
    pub there: Counts,
    pub back: Counts,
    /// How much later packets came out than they should have, at most.
    pub late: Durations,
    pub cpu: Nanos,
}

impl Facts {
    /// The counts of line 0 or 1.
    pub fn way(&mut self, number: usize) -> &mut Counts {
        if number == 0 {
            &mut self.there
        } else {
            &mut self.back
        }
    }

    pub fn to_json(&self) -> String {
        let late = &self.late.histogram;
        let known = |value: u64| (!late.is_empty()).then_some(value as f64 / 1e6);
        json!({
            "there": self.there.describe(),
            "back": self.back.describe(),
            "late_ms": {
                "p50": known(late.value_at_quantile(0.5)),
                "p99": known(late.value_at_quantile(0.99)),
                "max": known(self.late.max),
            },
            "hdr_late": encode(&self.late.histogram),
            "cpu_s": seconds(self.cpu),
        })
        .to_string()
    }
}

impl Counts {
    fn describe(self) -> Value {
        json!({
            "packets": self.packets,
            "bytes": self.bytes,
            "lost": self.lost,
            "dropped": self.dropped,
            "undelivered": self.undelivered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(there: &str) -> Result<Spec, String> {
        Spec::parse(&format!(
            r#"{{"there": {there}, "back": {{"delay_ns": 0}}, "seed": 1}}"#
        ))
    }

    #[test]
    fn a_link_is_read_and_nonsense_refused() {
        let spec = parse(r#"{"delay_ns": 5, "rate_mbit": 1.5, "queue_packets": 7, "loss": 0.25}"#);
        let wanted = Way {
            delay_ns: 5,
            jitter_ns: 0,
            rate_mbit: Some(1.5),
            queue_packets: Some(7),
            loss: 0.25,
        };
        assert_eq!(spec.unwrap().there, wanted);
        let rows = [
            (r#"{"delay_ns": 5, "jitter_ns": 6}"#, "there.jitter_ns"),
            (r#"{"delay_ns": 60000000001}"#, "there.delay_ns"),
            (r#"{"delay_ns": 0, "rate_mbit": 0}"#, "there.rate_mbit"),
            (r#"{"delay_ns": 0, "loss": 1.5}"#, "there.loss"),
            (r#"{"delay_ns": 0, "los": 0.5}"#, "unknown field"),
            (r#"{"delay_ns": -1}"#, "invalid value"),
            ("{}", "missing field"),
        ];
        for (there, fault) in rows {
            let said = parse(there).unwrap_err();
            assert!(said.contains(fault), "{there}: {said}");
        }
    }
}
