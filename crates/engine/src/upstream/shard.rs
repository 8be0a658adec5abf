//! One thread of a third party: its connections, its timers, one loop.

use crate::clock::monotonic;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use crate::chance::chance;
use crate::os;
use crate::os::poller::Poller;
use crate::os::readiness::{Interest, Mode, Ready};
use crate::upstream::requests::{Incoming, Persistence, Reply, Request, Requests, Status};
use crate::upstream::{Plan, Snapshot, Tally};

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
        let poller = Poller::new(64)?;
        woken.set_nonblocking(true)?;
        poller.add(&woken, WAKE, Interest::READ, Mode::Level)?;
        let mode = shared(plan.spec.threads > 1);
        poller.add(&listener, LISTENER, Interest::READ, mode)?;
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
            let now = monotonic();
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
            Next::Farewell => self.set_timer(token, monotonic() + FAREWELL_NS),
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
        let added = self.poller.add(&stream, token, Interest::READ, Mode::Level);
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
                .push(Reverse((monotonic() + OUT_OF_FILES_PAUSE_NS, LISTENER)));
        }
    }

    fn listen_again(&mut self) {
        let several = self.clerk.plan.spec.threads > 1;
        if self
            .poller
            .add(&self.listener, LISTENER, Interest::READ, shared(several))
            .is_err()
        {
            self.timers
                .push(Reverse((monotonic() + OUT_OF_FILES_PAUSE_NS, LISTENER)));
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

/// Decides when and how each request is answered, and counts.
pub(super) struct Clerk {
    pub plan: Arc<Plan>,
    pub tally: Tally,
    /// Number of the next request: of one thread every `threads`-th, so that all together are 0, 1, 2, …
    next: u64,
}

impl Clerk {
    pub fn new(plan: Arc<Plan>, thread: u32) -> Self {
        Self {
            plan,
            tally: Tally::new(),
            next: u64::from(thread),
        }
    }

    fn decide(&mut self, request: Request, now: u64) -> Pending {
        let spec = &self.plan.spec;
        let n = self.next;
        self.next += u64::from(spec.threads);
        self.tally.since.requests += 1;
        // Draws 0 and 1 make the latency.
        let fault = spec.errors > 0.0 && chance(spec.seed, n, 2) < spec.errors;
        let status = if fault { Status::Fault } else { Status::Right };
        let latency = request
            .latency
            .unwrap_or_else(|| spec.latency.sample(spec.seed, n));
        let due = self.released(now + latency);
        Pending {
            due,
            reply: Reply {
                status,
                persistence: request.persistence,
                head_only: request.head_only,
            },
        }
    }

    fn refuse(&mut self, now: u64) -> Pending {
        let reply = Reply {
            status: Status::Refusal,
            persistence: Persistence::Close,
            head_only: false,
        };
        Pending { due: now, reply }
    }

    fn released(&self, due: u64) -> u64 {
        let started = self.plan.started;
        self.plan
            .spec
            .stall
            .map_or(due, |stall| started + stall.release(due - started))
    }

    fn answered(&mut self, status: Status, late: u64) {
        let counts = &mut self.tally.since;
        counts.answered += 1;
        counts.errors += u64::from(status == Status::Fault);
        counts.refused += u64::from(status == Status::Refusal);
        counts.late.saturating_record(late);
    }
}

/// An answer and when it goes out, nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
struct Pending {
    due: u64,
    reply: Reply,
}

/// What a connection waits for next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Requests,
    /// The moment its first answer is due.
    Due(u64),
    /// Room in the kernel's buffer.
    Room,
    /// Nothing: close it.
    End,
    /// The caller's close, not for long: closing first would take the last answer from it (a reset discards what
    /// was not read yet).
    Farewell,
}

/// So many pipelined requests are read ahead; the rest waits in the kernel until some are answered.
const MOST_PENDING: usize = 256;

pub(super) struct Connection {
    pub stream: TcpStream,
    requests: Requests,
    /// Read, but not looked at because too many answers are pending.
    held: Vec<u8>,
    pending: VecDeque<Pending>,
    /// Bytes of the first pending answer that went out.
    written: usize,
    /// How late the first pending answer began to go out.
    late: u64,
    /// When the last answer went out: a pipelined one is not late while it waits for its predecessor.
    free: u64,
    /// No more requests: the last one ended the connection, or the caller did.
    last_heard: bool,
    /// A refusal went out; see [`Next::Farewell`].
    farewell: bool,
    /// Told of bytes it does not want.
    vain: bool,
    /// What the poller was asked for.
    interest: Interest,
    /// Which of its timers counts; others in the heap are out of date.
    pub timer: Option<u64>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            requests: Requests::new(),
            held: Vec::new(),
            pending: VecDeque::new(),
            written: 0,
            late: 0,
            free: 0,
            last_heard: false,
            farewell: false,
            vain: false,
            interest: Interest::READ,
            timer: None,
        }
    }

    /// Requests without a complete answer.
    pub fn active(&self) -> usize {
        self.pending.len()
    }

    /// Whether it only waits for its caller to read a refusal.
    pub fn is_leaving(&self) -> bool {
        self.farewell
    }

    fn wants_bytes(&self) -> bool {
        self.farewell || (!self.last_heard && self.held.is_empty())
    }

    /// What the poller has to be asked for, `next` being what is waited for; `None`: no change.
    ///
    /// Interest in bytes is taken back only when some came in vain: after the last request of a connection they
    /// rarely do, and each change is a system call.
    pub fn new_interest(&mut self, next: Next) -> Option<Interest> {
        let wanted = Interest {
            read: self.wants_bytes(),
            write: next == Next::Room,
        };
        let read = wanted.read || (self.interest.read && !self.vain);
        let new = Interest { read, ..wanted };
        self.vain = false;
        (new != self.interest).then(|| {
            self.interest = new;
            new
        })
    }

    /// Reads what came. Returns false if the connection broke.
    pub fn read(&mut self, clerk: &mut Clerk, buffer: &mut [u8]) -> bool {
        if !self.wants_bytes() {
            self.vain = true;
            return true;
        }
        match self.stream.read(buffer) {
            Ok(0) => self.last_heard = true,
            Ok(_) if self.farewell => return true,
            Ok(count) => {
                self.hear(clerk, &buffer[..count]);
                return true;
            }
            Err(error) => {
                return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            }
        }
        !self.farewell
    }

    fn hear(&mut self, clerk: &mut Clerk, mut bytes: &[u8]) {
        let now = monotonic();
        while !bytes.is_empty() && !self.last_heard {
            if self.pending.len() >= MOST_PENDING {
                self.held = bytes.to_vec();
                return;
            }
            let pending = match self.requests.hear(bytes) {
                Ok((used, heard)) => {
                    bytes = &bytes[used..];
                    match heard {
                        Incoming::Whole(request) => clerk.decide(request, now),
                        Incoming::Waits => {
                            self.go_on();
                            continue;
                        }
                        Incoming::More => return,
                    }
                }
                Err(_) => clerk.refuse(now),
            };
            self.last_heard = pending.reply.persistence == Persistence::Close;
            self.pending.push_back(pending);
        }
    }

    /// Tells the caller to send its body. Behind pending answers it would be out of order; a caller that gets no
    /// `100 Continue` sends the body after a while all the same (RFC 9110, section 10.1.1).
    fn go_on(&mut self) {
        if self.pending.is_empty() {
            // Twenty-five bytes into an empty buffer; were they lost, see above.
            let _ = self.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Sends every answer that is due. An error means that the connection broke.
    pub fn advance(&mut self, clerk: &mut Clerk) -> io::Result<Next> {
        if self.farewell {
            return Ok(Next::Requests);
        }
        while let Some(Pending { due, reply }) = self.pending.front().copied() {
            if self.written == 0 {
                let now = monotonic();
                if due > now {
                    return Ok(Next::Due(due));
                }
                self.late = now - due.max(self.free);
            }
            let bytes = clerk.plan.replies.bytes(reply);
            match self.stream.write(&bytes[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Next::Room),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.written == bytes.len() {
                self.finish(clerk, reply);
            }
        }
        if !self.last_heard {
            return Ok(Next::Requests);
        }
        Ok(if self.farewell {
            Next::Farewell
        } else {
            Next::End
        })
    }

    fn finish(&mut self, clerk: &mut Clerk, reply: Reply) {
        self.pending.pop_front();
        self.written = 0;
        clerk.answered(reply.status, self.late);
        if !self.pending.is_empty() {
            self.free = monotonic();
        }
        if reply.status == Status::Refusal {
            // What the caller goes on to send is read and dropped until it closes.
            self.farewell = self.stream.shutdown(Shutdown::Write).is_ok();
        } else if !self.held.is_empty() && self.pending.len() <= MOST_PENDING / 2 {
            let held = std::mem::take(&mut self.held);
            self.hear(clerk, &held);
        }
    }
}

/// Nanoseconds; `hold` is less than `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub every: u64,
    pub hold: u64,
}

impl Stall {
    /// When an answer due at `due` may go out; both since the start.
    pub const fn release(self, due: u64) -> u64 {
        let into = due % self.every;
        if due >= self.every && into < self.hold {
            due - into + self.hold
        } else {
            due
        }
    }

    /// How many stalls have begun.
    pub const fn begun(self, now: u64) -> u64 {
        now / self.every
    }
}

/// How a listener is watched that `several` threads share, or one has for itself.
fn shared(several: bool) -> Mode {
    if several { Mode::Shared } else { Mode::Level }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_due_in_a_stall_goes_out_at_its_end() {
        let stall = Stall {
            every: 5_000,
            hold: 1_000,
        };
        let rows = [
            (0, 0),
            (999, 999),
            (4_999, 4_999),
            (5_000, 6_000),
            (5_999, 6_000),
            (6_000, 6_000),
            (10_500, 11_000),
        ];
        for (due, released) in rows {
            assert_eq!(stall.release(due), released, "due at {due}");
        }
        assert_eq!(
            (stall.begun(4_999), stall.begun(5_000), stall.begun(10_500)),
            (0, 1, 2)
        );
    }
}
