//! The one worker loop: sends what is due, reads what comes, records both. Generic over protocol, transport and clock.
//!
//! One thread, its own connections, nothing shared and (once connected) nothing allocated per request.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use crate::agenda::{Agenda, Request};
use crate::clock::{Clock, MILLISECOND, Nanos, SECOND};
use crate::outcome::Outcome;
use crate::protocol::Protocol;
use crate::record::Record;
use crate::slot::{Slot, State};
use crate::transport::{Event, Sending, Token, Transport};

/// How one worker is to go about it; what it asks is the protocol's.
#[derive(Clone, Debug)]
pub struct Orders {
    /// A request may be sent again (see `Worker::lost`).
    pub idempotent: bool,
    /// Connections serve more than one request.
    pub keepalive: bool,
    /// A request unanswered this long after it was sent has failed.
    pub timeout: Nanos,
}

/// First pause after a second failure in a row; doubled with each further one.
const PAUSE: Nanos = 10 * MILLISECOND;
/// Longest pause.
const LONGEST_PAUSE: Nanos = SECOND;

/// See the module.
pub struct Worker<P: Protocol, T, C> {
    pub(crate) orders: Orders,
    pub(crate) ask: P::Ask,
    pub(crate) transport: T,
    pub(crate) clock: C,
    pub(crate) agenda: Agenda,
    pub(crate) record: Record,
    pub(crate) slots: Vec<Slot<P>>,
    /// Idle connections, the longest idle first, so that requests go round all of them.
    pub(crate) free: VecDeque<Token>,
    /// Slots of an open loop without a connection.
    pub(crate) vacant: Vec<u32>,
    /// Slots of a closed loop that pause after failures, by the end of the pause.
    pub(crate) pausing: BinaryHeap<Reverse<(Nanos, u32)>>,
    pub(crate) connecting: u64,
    pub(crate) requests: u64,
    /// To be on time it enters the real-time class.
    pub(crate) prompt: bool,
    events: Vec<Event>,
    growing: bool,
}

impl<P: Protocol, T: Transport<Medium = P::Medium>, C: Clock> Worker<P, T, C> {
    /// A worker with `slots` slots, none connected.
    pub fn new(
        orders: Orders,
        ask: P::Ask,
        transport: T,
        clock: C,
        agenda: Agenda,
        record: Record,
        slots: usize,
    ) -> Self {
        Worker {
            orders,
            ask,
            transport,
            clock,
            agenda,
            record,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            free: VecDeque::with_capacity(slots),
            vacant: (0..slots as u32).rev().collect(),
            pausing: BinaryHeap::new(),
            connecting: 0,
            requests: 0,
            prompt: false,
            events: Vec::with_capacity(1024),
            growing: false,
        }
    }

    /// The same, in the real-time class if that is allowed, as long as it needs little of its CPU.
    pub fn prompt(self) -> Self {
        Worker {
            prompt: true,
            ..self
        }
    }

    /// Waits for events until `until` at the latest and acts on them.
    pub(crate) fn step(&mut self, now: Nanos, until: Nanos) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        self.transport.poll(now, until, &mut events)?;
        for event in events.drain(..) {
            self.act(event);
            // A long batch must not make what is due meanwhile late.
            if self.agenda.is_open() {
                self.send_due();
            }
        }
        self.events = events;
        Ok(())
    }

    fn act(&mut self, event: Event) {
        match event {
            Event::Readable(token, reading) if self.is_current(token) => self.read(token, reading),
            Event::Connected(token) if self.is_current(token) => self.connected(token.slot),
            Event::NotConnected(token, error) if self.is_current(token) => {
                let now = self.clock.now();
                self.not_connected(token.slot, &error, now);
            }
            Event::Sent(token) if self.is_current(token) => self.sent_whole(token.slot),
            Event::Full(token) if self.is_current(token) => self.park(token.slot),
            _ => {}
        }
    }

    #[inline]
    fn is_current(&self, token: Token) -> bool {
        self.slots[token.slot as usize].generation == token.generation
    }

    /// Open loop: lets fall due what is due, each to a free connection if there is one. Returns whether anything did.
    pub(crate) fn send_due(&mut self) -> bool {
        let mut any = false;
        loop {
            let due = self.agenda.next_due();
            if due == Nanos::MAX {
                return any;
            }
            let now = self.clock.now();
            if due > now {
                return any;
            }
            any = true;
            self.agenda.fall_due();
            if let Some(slot) = self.pop_free() {
                let was_free = self.slots[slot as usize].free_since <= due;
                self.next(slot, now);
                // Written down when it is out.
                if was_free {
                    self.record.lagged(due, now);
                }
            } else if self.vacant.is_empty() {
                if self.connecting < self.agenda.waiting() {
                    self.record.capped += u64::from(self.record.span.holds(due));
                }
            } else {
                self.record.lagged(due, now);
                self.grow(now);
            }
        }
    }

    fn pop_free(&mut self) -> Option<u32> {
        while let Some(token) = self.free.pop_front() {
            // A connection that was closed while idle leaves its entry behind.
            if self.is_current(token) && self.slots[token.slot as usize].state == State::Idle {
                return Some(token.slot);
            }
        }
        None
    }

    /// Opens connections for the requests that wait, as far as there are slots.
    pub(crate) fn grow(&mut self, now: Nanos) {
        // An attempt that fails at once comes back here by way of `leave`: the loop goes on with it, not a recursion.
        if std::mem::replace(&mut self.growing, true) {
            return;
        }
        while self.connecting < self.agenda.waiting() {
            let Some(slot) = self.vacant.pop() else { break };
            self.slots[slot as usize].free_since = now;
            self.connect(slot, now);
        }
        self.growing = false;
    }

    pub(crate) fn connect(&mut self, index: u32, now: Nanos) {
        let slot = &mut self.slots[index as usize];
        let token = slot.connecting(index, now);
        self.connecting += 1;
        if let Err(error) = self.transport.connect(token) {
            self.not_connected(index, &error, now);
        }
    }

    fn connected(&mut self, index: u32) {
        let now = self.clock.now();
        let slot = &mut self.slots[index as usize];
        if slot.state == State::Connecting {
            self.connecting -= 1;
        } else {
            self.record.parked -= 1;
        }
        if slot.opened {
            self.record.connections.reopened += 1;
        } else {
            self.record.connections.opened += 1;
            if self.orders.keepalive {
                slot.free_since = now;
            }
            slot.opened = true;
        }
        self.next(index, now);
    }

    /// The server has no room for this slot: others carry the requests, and it waits without taking one.
    #[cold]
    fn park(&mut self, index: u32) {
        self.connecting -= 1;
        self.record.parked += 1;
        self.slots[index as usize].state = State::Parked;
    }

    /// No connection: a request fails with it. In an open loop each due request makes one attempt; in a closed loop
    /// each attempt is a request, and attempts pause so that a closed port is not hammered.
    pub(crate) fn not_connected(&mut self, index: u32, error: &io::Error, now: Nanos) {
        let slot = &mut self.slots[index as usize];
        let outcome = match error.kind() {
            io::ErrorKind::TimedOut => Outcome::Timeout,
            // What answered there does not speak what a connection begins with.
            io::ErrorKind::InvalidData => Outcome::BadProtocol,
            // It does, and does not want to: an answer to a handshake.
            io::ErrorKind::Unsupported => Outcome::BadStatus,
            _ => Outcome::Refused,
        };
        let free_since = slot.free_since;
        self.connecting -= 1;
        self.transport.close(slot.token(index));
        if let Some(request) = self.agenda.take(free_since, now) {
            self.record
                .settle(request.due, request.sent(), now, outcome);
            self.record.example(outcome, || crate::slot::explain(error));
        }
        self.leave(index, true, now);
    }

    /// The slot has lost its connection: what it does next.
    pub(crate) fn leave(&mut self, index: u32, failed: bool, now: Nanos) {
        let slot = &mut self.slots[index as usize];
        slot.vacate();
        if self.agenda.is_open() {
            self.vacant.push(index);
            return self.grow(now);
        }
        slot.failures = if failed {
            slot.failures.saturating_add(1)
        } else {
            0
        };
        let was_connected = slot.opened;
        let pause = match slot.failures {
            0 => 0,
            1 if was_connected => 0,
            failures => (PAUSE << u32::from(failures - 1).min(7)).min(LONGEST_PAUSE),
        };
        slot.free_since = now + pause;
        if pause > 0 {
            self.pausing.push(Reverse((now + pause, index)));
        } else if self.wants_connections(now) {
            self.connect(index, now);
        } else {
            self.vacant.push(index);
        }
    }

    pub(crate) fn wants_connections(&self, now: Nanos) -> bool {
        let wanted = self.agenda.waiting() > 0 || self.agenda.is_running(now);
        wanted && !self.agenda.is_served_by(self.connecting)
    }

    /// The connection of this slot is free: the next request, or idleness.
    #[inline]
    pub(crate) fn next(&mut self, index: u32, now: Nanos) {
        let free_since = self.slots[index as usize].free_since;
        match self.agenda.take(free_since, now) {
            Some(request) => self.send(index, request, now),
            None => {
                let slot = &mut self.slots[index as usize];
                slot.state = State::Idle;
                slot.free_since = now;
                self.free.push_back(slot.token(index));
            }
        }
    }

    #[inline]
    fn send(&mut self, index: u32, request: Request, now: Nanos) {
        let number = request.again.map_or(self.requests, |again| again.number);
        self.requests += u64::from(request.again.is_none());
        let slot = &mut self.slots[index as usize];
        slot.begin(request, now);
        slot.number = number;
        let token = slot.token(index);
        self.record.sent(now);
        let outgoing = slot.protocol.begin(&mut self.ask, number);
        slot.sending = self.transport.send(token, outgoing) == Sending::Pending;
    }

    fn sent_whole(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.sending = false;
        if slot.state == State::Finishing {
            let now = self.clock.now();
            slot.free_since = now;
            self.next(index, now);
        }
    }
}
