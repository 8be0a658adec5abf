//! One thread of a third party: its connections, its timers, one loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use super::Plan;
use super::connection::{Clerk, Connection, Next};
use super::facts::{Snapshot, Tally};
use crate::transport::os;
use crate::transport::poller::{Interest, Poller, Ready};

/// What a thread can be told.
pub(super) enum Command {
    Facts(Sender<Snapshot>),
    Stop(Sender<Snapshot>),
}

/// Tokens that are not connections. A connection's is its generation and its slot, 32 bits each, and there are never
/// as many slots. (`u64::MAX` itself is what `polling` uses.)
const LISTENER: u64 = u64::MAX - 1;
const WAKE: u64 = u64::MAX - 2;

/// So many callers are let in before timers have their turn.
const ACCEPTED_AT_ONCE: usize = 32;

/// How long no caller is let in after descriptors ran out; without a pause the loop would spin.
const OUT_OF_FILES_PAUSE_NS: u64 = 20_000_000;

/// How long a caller that sent no request may take to read the refusal.
const FAREWELL_NS: u64 = 1_000_000_000;

const BUFFER_BYTES: usize = 64 * 1024;

#[derive(Default)]
struct Slot {
    /// Tells a connection from its predecessors in the slot, whose timers may still be there.
    generation: u32,
    connection: Option<Connection>,
}

pub(super) struct Shard {
    clerk: Clerk,
    listener: TcpListener,
    woken: UnixStream,
    inbox: Receiver<Command>,
    poller: Poller,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// When each waiting connection's first answer is due, the earliest on top.
    timers: BinaryHeap<Reverse<(u64, u64)>>,
    buffer: Box<[u8]>,
}

impl Shard {
    pub fn new(
        plan: Arc<Plan>,
        thread: u32,
        listener: TcpListener,
        woken: UnixStream,
        inbox: Receiver<Command>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        woken.set_nonblocking(true)?;
        poller.add(&woken, WAKE, Interest::READ, false)?;
        poller.add(&listener, LISTENER, Interest::READ, plan.spec.threads > 1)?;
        Ok(Self {
            clerk: Clerk::new(plan, thread),
            listener,
            woken,
            inbox,
            poller,
            slots: Vec::new(),
            free: Vec::new(),
            timers: BinaryHeap::new(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        })
    }

    /// Serves until it is told to stop.
    pub fn run(mut self) {
        os::sharpen_timers();
        // Again, because CPU time is that of the thread that asks.
        self.clerk.tally = Tally::new();
        let mut ready = Vec::new();
        loop {
            let timeout = self.fire();
            if self.poller.wait(timeout, &mut ready).is_err() {
                return;
            }
            for event in &ready {
                match event.token {
                    WAKE => {
                        if self.obey() {
                            return;
                        }
                    }
                    LISTENER => self.accept(),
                    _ => self.touch(*event),
                }
                self.fire();
            }
        }
    }

    /// Sends what is due; returns nanoseconds until the next.
    fn fire(&mut self) -> Option<u64> {
        loop {
            let Reverse((due, token)) = *self.timers.peek()?;
            let now = os::monotonic();
            if due > now {
                return Some(due - now);
            }
            self.timers.pop();
            if token == LISTENER {
                self.listen_again();
            } else if let Some(connection) = connection(&mut self.slots, token)
                && connection.timer == Some(due)
            {
                connection.timer = None;
                let leaving = connection.is_leaving();
                match connection.advance(&mut self.clerk) {
                    Ok(next) if !leaving => self.await_next(token, next),
                    _ => self.close(token),
                }
            }
        }
    }

    /// Something happened at a connection.
    fn touch(&mut self, ready: Ready) {
        let token = ready.token;
        let Some(connection) = connection(&mut self.slots, token) else {
            return;
        };
        let whole =
            !ready.broken && (!ready.read || connection.read(&mut self.clerk, &mut self.buffer));
        match connection.advance(&mut self.clerk) {
            Ok(next) if whole => self.await_next(token, next),
            _ => self.close(token),
        }
    }

    fn await_next(&mut self, token: u64, next: Next) {
        let Some(connection) = connection(&mut self.slots, token) else {
            return;
        };
        if next == Next::End {
            return self.close(token);
        }
        if let Some(interest) = connection.new_interest(next)
            && self
                .poller
                .change(&connection.stream, token, interest)
                .is_err()
        {
            return self.close(token);
        }
        match next {
            Next::Due(due) => self.set_timer(token, due),
            Next::Farewell => self.set_timer(token, os::monotonic() + FAREWELL_NS),
            _ => {}
        }
    }

    fn set_timer(&mut self, token: u64, due: u64) {
        let Some(connection) = connection(&mut self.slots, token) else {
            return;
        };
        if connection.timer != Some(due) {
            connection.timer = Some(due);
            self.timers.push(Reverse((due, token)));
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    // A caller that is gone already is not worth a word.
                    let _ = self.admit(stream);
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => return,
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => return self.pause_listening(),
                },
            }
        }
    }

    fn admit(&mut self, stream: std::net::TcpStream) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        let token = u64::from(place.generation) << 32 | u64::from(slot);
        let added = self.poller.add(&stream, token, Interest::READ, false);
        match added {
            Ok(()) => place.connection = Some(Connection::new(stream)),
            Err(_) => self.free.push(slot),
        }
        added
    }

    fn close(&mut self, token: u64) {
        let slot = token as u32;
        let place = &mut self.slots[slot as usize];
        if let Some(connection) = place.connection.take() {
            self.poller.closing(&connection.stream);
            place.generation = place.generation.wrapping_add(1);
            self.free.push(slot);
        }
    }

    fn pause_listening(&mut self) {
        if self.poller.remove(&self.listener).is_ok() {
            self.timers
                .push(Reverse((os::monotonic() + OUT_OF_FILES_PAUSE_NS, LISTENER)));
        }
    }

    fn listen_again(&mut self) {
        let shared = self.clerk.plan.spec.threads > 1;
        if self
            .poller
            .add(&self.listener, LISTENER, Interest::READ, shared)
            .is_err()
        {
            self.timers
                .push(Reverse((os::monotonic() + OUT_OF_FILES_PAUSE_NS, LISTENER)));
        }
    }

    /// Does what it is told; whether that is to stop.
    fn obey(&mut self) -> bool {
        while matches!(self.woken.read(&mut self.buffer), Ok(1..)) {}
        while let Ok(command) = self.inbox.try_recv() {
            let connections = self
                .slots
                .iter()
                .filter_map(|slot| slot.connection.as_ref());
            let active: usize = connections.clone().map(Connection::active).sum();
            let count = connections.count();
            let snapshot = self.clerk.tally.snapshot(active as u64, count as u64);
            // Nobody waits for the answer any more: nothing is lost.
            match command {
                Command::Facts(reply) => drop(reply.send(snapshot)),
                Command::Stop(reply) => {
                    drop(reply.send(snapshot));
                    return true;
                }
            }
        }
        false
    }
}

/// The connection a token means, unless it is gone.
fn connection(slots: &mut [Slot], token: u64) -> Option<&mut Connection> {
    let slot = slots.get_mut(token as u32 as usize)?;
    if u64::from(slot.generation) == token >> 32 {
        slot.connection.as_mut()
    } else {
        None
    }
}
