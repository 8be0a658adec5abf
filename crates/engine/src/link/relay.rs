//! The loop: read what was sent, decide, wait, hand over.

use crate::clock::monotonic;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;

use crate::clock::Nanos;
use crate::link::packet::{LARGEST, Packet};
use crate::link::path::{Fate, Path};
use crate::link::{Command, Counts, Facts, Spec};
use crate::os;
use crate::os::poller::Poller;
use crate::os::readiness::{Interest, Mode, Ready};

/// Segments that come out within this time of each other are handed over together, with the last: at 1 Gbit/s eight. It
/// is a third of what a round trip may be wrong by, and saves a relay that keeps up with such rates most of its work.
const TOGETHER: Nanos = 100_000;
/// So many packets are read before those that are due have their turn.
const BATCH: usize = 32;
/// Bytes that may be under way in one direction; a tenth of a second at 19 Gbit/s, the most a relay moves.
const MOST_UNDER_WAY: usize = 256 << 20;
/// A wait that took no longer did not sleep: falling asleep and waking up alone take more.
const AT_ONCE: Nanos = 3_000;
const WAKE: u64 = 2;

/// A packet under way.
#[derive(Debug)]
struct Flying {
    due: Nanos,
    /// How long it may have lain unread.
    unread: Nanos,
    segments: u64,
    bytes: Vec<u8>,
}

/// One direction.
#[derive(Debug)]
struct Line {
    path: Path,
    /// In the order they are due.
    flying: VecDeque<Flying>,
    bytes: usize,
    /// Since when packets may lie in the device this reads from: the last time it was seen empty, or we woke.
    unseen_since: Nanos,
}

pub(super) struct Relay {
    /// The client's and the server's; line 0 goes from the first to the second, line 1 back.
    devices: [Device; 2],
    lines: [Line; 2],
    poller: Poller,
    woken: UnixStream,
    inbox: Receiver<Command>,
    facts: Facts,
    cpu_told: Nanos,
    buffer: Box<[u8]>,
}

impl Relay {
    pub fn new(
        spec: &Spec,
        devices: [Device; 2],
        woken: UnixStream,
        inbox: Receiver<Command>,
    ) -> io::Result<Self> {
        let poller = Poller::new(64)?;
        woken.set_nonblocking(true)?;
        poller.add(&woken, WAKE, Interest::READ, Mode::Level)?;
        for (token, device) in devices.iter().enumerate() {
            poller.add(device, token as u64, Interest::READ, Mode::Level)?;
        }
        let now = monotonic();
        let line = |way, number| Line {
            path: Path::new(way, spec.seed, number, now),
            flying: VecDeque::new(),
            bytes: 0,
            unseen_since: now,
        };
        Ok(Self {
            devices,
            lines: [line(&spec.there, 0), line(&spec.back, 1)],
            poller,
            woken,
            inbox,
            facts: Facts::default(),
            cpu_told: 0,
            buffer: vec![0; LARGEST].into_boxed_slice(),
        })
    }

    /// Relays until it is told to stop; an error is that of a device that is gone.
    pub fn run(mut self) -> io::Result<()> {
        os::sharpen_timers();
        let mut ready: Vec<Ready> = Vec::new();
        loop {
            let timeout = self.hand_over();
            let before = monotonic();
            self.poller.wait(timeout, &mut ready)?;
            self.look(before, &ready);
            // What was sent before a command belongs before it.
            for event in ready.iter().filter(|event| event.token != WAKE) {
                self.take_in(event.token as usize)?;
            }
            if ready.iter().any(|event| event.token == WAKE) && self.obey() {
                return Ok(());
            }
        }
    }

    /// Takes note of which devices were empty. What is there after a sleep has just woken us; what is there at once may
    /// have come at any time since the device was last seen empty.
    fn look(&mut self, before: Nanos, ready: &[Ready]) {
        let now = monotonic();
        for (number, line) in self.lines.iter_mut().enumerate() {
            let waits = ready.iter().any(|event| event.token == number as u64);
            if !waits || now - before > AT_ONCE {
                line.unseen_since = now;
            }
        }
    }

    /// Hands over what is due; returns nanoseconds until the next.
    fn hand_over(&mut self) -> Option<Nanos> {
        let mut next: Option<Nanos> = None;
        for number in 0..2 {
            let line = &mut self.lines[number];
            while let Some(first) = line.flying.front() {
                let now = monotonic();
                if first.due > now {
                    let left = first.due - now;
                    next = Some(next.map_or(left, |soonest| soonest.min(left)));
                    break;
                }
                let Some(packet) = line.flying.pop_front() else {
                    break;
                };
                line.bytes -= packet.bytes.len();
                let counts = self.facts.way(number);
                if self.devices[1 - number].write(&packet.bytes).is_err() {
                    counts.undelivered += packet.segments;
                }
                let late = now - packet.due + packet.unread;
                self.facts.late.record_many(late, packet.segments);
            }
        }
        next
    }

    /// Reads what was sent from one end.
    fn take_in(&mut self, number: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let length = self.devices[number].read(&mut self.buffer)?;
            let now = monotonic();
            let Some(length) = length else {
                self.lines[number].unseen_since = now;
                return Ok(());
            };
            let counts = self.facts.way(number);
            self.lines[number].take(&self.buffer[..length], now, counts);
        }
        Ok(())
    }

    /// Does what it is told; whether that is to stop.
    fn obey(&mut self) -> bool {
        while matches!(self.woken.read(&mut self.buffer), Ok(1..)) {}
        while let Ok(command) = self.inbox.try_recv() {
            match command {
                Command::Stop => return true,
                Command::Facts(reply) => {
                    let cpu = os::cpu_time().total();
                    let mut facts = std::mem::take(&mut self.facts);
                    facts.cpu = cpu - self.cpu_told;
                    self.cpu_told = cpu;
                    for line in &mut self.lines {
                        line.path.begin_span();
                    }
                    // Nobody waits for the answer any more: nothing is lost.
                    let _ = reply.send(facts);
                }
            }
        }
        false
    }
}

impl Line {
    /// Decides what becomes of each segment of a packet; neighbours that come out together stay together.
    fn take(&mut self, bytes: &[u8], now: Nanos, counts: &mut Counts) {
        let packet = Packet::new(bytes);
        let unread = now - self.unseen_since;
        let mut run: Option<(usize, Nanos, Nanos)> = None;
        for number in 0..packet.segments() {
            let size = packet.wire_bytes(number);
            counts.packets += 1;
            counts.bytes += size as u64;
            let fate = self.path.send(now, size);
            match fate {
                Fate::Lost => counts.lost += 1,
                Fate::Dropped => counts.dropped += 1,
                Fate::Arrives(_) => {}
            }
            run = match (run, fate) {
                (Some((from, first, _)), Fate::Arrives(due)) if due - first <= TOGETHER => {
                    Some((from, first, due))
                }
                (open, fate) => {
                    if let Some((from, _, due)) = open {
                        self.launch(&packet, from, number, due, unread, counts);
                    }
                    match fate {
                        Fate::Arrives(due) => Some((number, due, due)),
                        _ => None,
                    }
                }
            };
        }
        if let Some((from, _, due)) = run {
            self.launch(&packet, from, packet.segments(), due, unread, counts);
        }
    }

    fn launch(
        &mut self,
        packet: &Packet<'_>,
        from: usize,
        to: usize,
        due: Nanos,
        unread: Nanos,
        counts: &mut Counts,
    ) {
        let bytes = packet.piece(from..to);
        let segments = (to - from) as u64;
        if self.bytes + bytes.len() > MOST_UNDER_WAY {
            counts.undelivered += segments;
            return;
        }
        self.bytes += bytes.len();
        self.flying.push_back(Flying {
            due,
            unread,
            segments,
            bytes,
        });
    }
}

/// A device with `IFF_TUN | IFF_NO_PI | IFF_VNET_HDR`, opened non-blocking: each read and write is one packet.
#[derive(Debug)]
pub(super) struct Device(File);

impl Device {
    /// The device of a descriptor.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(File::from(descriptor))
    }

    /// Reads the next packet; None: there is none.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.0).read(buffer) {
                Ok(length) => return Ok(Some(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands a packet to the network behind the device, which takes it whole or not at all.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.0).write(packet).map(drop)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Way;
    use crate::link::packet::{HEADER, made};

    const SEGMENT: usize = 1000;
    const PACKETS: usize = 400;

    fn line() -> Line {
        let lossy = Way {
            loss: 0.2,
            ..Way::default()
        };
        Line {
            path: Path::new(&lossy, 4711, 0, 0),
            flying: VecDeque::new(),
            bytes: 0,
            unseen_since: 0,
        }
    }

    /// The bytes of each segment are its number. Super-packets have so many segments, over and over; returns which
    /// numbers came through.
    fn through(segments: &[usize]) -> Vec<usize> {
        let (mut line, mut counts) = (line(), Counts::default());
        let (mut number, mut now) = (0, 0);
        for count in segments.iter().cycle() {
            let count = (*count).min(PACKETS - number);
            if count == 0 {
                break;
            }
            let payload: Vec<u8> = (number..number + count)
                .flat_map(|number| [(number >> 8) as u8, number as u8].repeat(SEGMENT / 2))
                .collect();
            now += 1_000_000;
            line.take(&made(&payload, SEGMENT as u16, 0x10), now, &mut counts);
            number += count;
        }
        let mut came = Vec::new();
        for flying in &line.flying {
            let headers = flying.bytes.len() - flying.segments as usize * SEGMENT;
            assert!(headers > HEADER);
            for segment in flying.bytes[headers..].chunks(SEGMENT) {
                came.push(usize::from(segment[0]) << 8 | usize::from(segment[1]));
            }
        }
        assert_eq!(counts.packets, PACKETS as u64);
        assert_eq!(counts.lost, (PACKETS - came.len()) as u64);
        came
    }

    #[test]
    fn the_same_seed_loses_the_same_segments_however_the_kernel_joins_them() {
        let alone = through(&[1]);
        // Binomial: mean 320, standard deviation 8.
        assert!((280..360).contains(&alone.len()), "{}", alone.len());
        for segments in [&[45][..], &[7, 1, 45, 2], &[3]] {
            assert_eq!(through(segments), alone, "super-packets of {segments:?}");
        }
    }
}
