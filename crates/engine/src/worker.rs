//! The one worker loop: sends what is due, reads what comes, records both. Generic over protocol, transport and clock.
//!
//! One thread, its own connections, nothing shared and (once connected) nothing allocated per request.

mod queue;
mod timeline;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

use crate::clock::{Clock, MILLISECOND, Nanos, SECOND};
use crate::outcome::Outcome;
use crate::protocol::{Fault, Message, Progress, Protocol};
use crate::record::{Account, Record};
use crate::transport::{Event, Need, Reading, Received, Sending, Token, Transport};
use crate::worker::queue::Again;
pub use queue::{Request, RequestQueue};
pub use timeline::RunControl;

/// How one worker is to go about it; what it asks is the protocol's.
#[derive(Clone, Debug)]
pub struct Orders {
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
    orders: Orders,
    ask: P::Ask,
    transport: T,
    clock: C,
    queue: RequestQueue,
    record: Record,
    slots: Vec<Slot<P>>,
    /// Idle connections, the longest idle first, so that requests go round all of them.
    free: VecDeque<Token>,
    /// Slots of an open loop without a connection.
    vacant: Vec<u32>,
    /// Slots of a closed loop that pause after failures, by the end of the pause.
    pausing: BinaryHeap<Reverse<(Nanos, u32)>>,
    connecting: u64,
    requests: u64,
    /// To be on time it enters the real-time class.
    prompt: bool,
    events: Vec<Event>,
}

impl<P: Protocol, T: Transport<Medium = P::Medium>, C: Clock> Worker<P, T, C> {
    /// A worker with `slots` slots, none connected.
    pub fn new(
        orders: Orders,
        ask: P::Ask,
        transport: T,
        clock: C,
        queue: RequestQueue,
        record: Record,
        slots: usize,
    ) -> Self {
        Worker {
            orders,
            ask,
            transport,
            clock,
            queue,
            record,
            slots: (0..slots).map(|_| Slot::default()).collect(),
            free: VecDeque::with_capacity(slots),
            vacant: (0..slots as u32).rev().collect(),
            pausing: BinaryHeap::new(),
            connecting: 0,
            requests: 0,
            prompt: false,
            events: Vec::with_capacity(1024),
        }
    }

    /// The same, in the real-time class if that is allowed, as long as it needs little of its CPU.
    pub fn prompt(self) -> Self {
        Worker {
            prompt: true,
            ..self
        }
    }

    /// Waits for events until `until` at the latest and acts on them; whether there were any.
    fn step(&mut self, now: Nanos, until: Nanos) -> io::Result<bool> {
        let mut events = std::mem::take(&mut self.events);
        self.transport.poll(now, until, &mut events)?;
        let any = !events.is_empty();
        for event in events.drain(..) {
            self.act(event);
            if self.queue.is_open() {
                if self.connecting < self.queue.waiting() {
                    // It may have left a slot without a connection, and a request that waits for one.
                    self.grow(self.clock.now());
                }
                // A long batch must not make what is due meanwhile late.
                self.send_due();
            }
        }
        self.events = events;
        Ok(any)
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
    fn send_due(&mut self) -> bool {
        let mut any = false;
        loop {
            let due = self.queue.next_due();
            if due == Nanos::MAX {
                return any;
            }
            let now = self.clock.now();
            if due > now {
                return any;
            }
            any = true;
            self.queue.fall_due();
            if let Some(slot) = self.pop_free() {
                let was_free = self.slots[slot as usize].free_since <= due;
                self.next(slot, now);
                // Written down when it is out.
                if was_free {
                    self.record.lagged(due, now);
                }
            } else if self.vacant.is_empty() {
                if self.connecting < self.queue.waiting() {
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
    fn grow(&mut self, now: Nanos) {
        while self.connecting < self.queue.waiting() {
            let Some(slot) = self.vacant.pop() else { break };
            self.slots[slot as usize].free_since = now;
            self.connect(slot, now);
        }
    }

    fn connect(&mut self, index: u32, now: Nanos) {
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
    fn not_connected(&mut self, index: u32, error: &io::Error, now: Nanos) {
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
        if let Some(request) = self.queue.take(free_since, now) {
            self.record
                .settle(request.due, request.sent(), now, outcome);
            self.record.example(outcome, || explain_refusal(error));
        }
        self.leave(index, true, now);
    }

    /// The slot has lost its connection: what it does next.
    fn leave(&mut self, index: u32, failed: bool, now: Nanos) {
        let slot = &mut self.slots[index as usize];
        slot.vacate();
        if self.queue.is_open() {
            // Who handles the event, or the time-out, sees to it that enough connections are made.
            return self.vacant.push(index);
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

    fn wants_connections(&self, now: Nanos) -> bool {
        let wanted = self.queue.waiting() > 0 || self.queue.is_running(now);
        wanted && !self.queue.is_served_by(self.connecting)
    }

    /// The connection of this slot is free: the next request, or idleness.
    #[inline]
    fn next(&mut self, index: u32, now: Nanos) {
        let free_since = self.slots[index as usize].free_since;
        match self.queue.take(free_since, now) {
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

/// What a connection brought.
enum Arrival<A> {
    /// A part of an answer.
    Part,
    /// A whole message of an answer that has several.
    Message(Message),
    /// That the server did nothing with the request.
    Refused,
    /// The end of one.
    Answer(A),
    /// Nothing more for now.
    Nothing,
    /// Something, although no answer was expected.
    Unasked,
    /// Something against the protocol.
    Fault(Fault),
    /// Its end.
    Closed,
    /// Its end, by force.
    Broken(io::Error),
}

impl<P: Protocol, T: Transport<Medium = P::Medium>, C: Clock> Worker<P, T, C> {
    /// Reads what an event announced, to its end.
    #[inline]
    fn read(&mut self, token: Token, mut reading: Reading) {
        let index = token.slot;
        loop {
            match self.hear(token, &mut reading) {
                Arrival::Part => {}
                Arrival::Message(message) => self.message(index, message),
                Arrival::Refused => {
                    if !self.refused(index) {
                        return;
                    }
                }
                Arrival::Answer(answer) => {
                    if !self.answered(index, &answer) {
                        return;
                    }
                }
                Arrival::Nothing => break,
                Arrival::Unasked => return self.close(index),
                Arrival::Fault(fault) => return self.fail(index, fault.outcome, || fault.why),
                Arrival::Closed => return self.closed(index),
                Arrival::Broken(error) => return self.broken(index, &error),
            }
        }
        let slot = &self.slots[index as usize];
        if slot.state == State::Answered {
            // The event is read to its end, so no close was announced with the answer: the connection can go on.
            self.next(index, slot.free_since);
        }
    }

    /// Takes the next piece and feeds it to the protocol.
    #[inline]
    fn hear(&mut self, token: Token, reading: &mut Reading) -> Arrival<P::Answer> {
        let slot = &mut self.slots[token.slot as usize];
        let need = match slot.state {
            State::Busy => slot.protocol.need(&self.ask),
            _ => Need::All,
        };
        match self.transport.receive(token, reading, need) {
            // Nobody asked for this: surplus of an answer, or a farewell such as 408 before a close.
            Received::Piece(_) if slot.state != State::Busy => Arrival::Unasked,
            Received::Piece(piece) => {
                let begins = !std::mem::replace(&mut slot.received, true);
                let fed = slot.protocol.feed(piece, &self.ask);
                if begins && !matches!(fed, Ok(Progress::Done(_))) {
                    slot.first_byte = self.clock.now();
                }
                for &moment in slot.protocol.deliveries() {
                    self.record.delivered(slot.due, slot.since, moment);
                }
                match fed {
                    Ok(Progress::More) => Arrival::Part,
                    Ok(Progress::Message(message)) => Arrival::Message(message),
                    Ok(Progress::Refused) => Arrival::Refused,
                    Ok(Progress::Done(answer)) => Arrival::Answer(answer),
                    Err(fault) => Arrival::Fault(fault),
                }
            }
            Received::Dropped(count) => match slot.protocol.skip(count, &self.ask) {
                Some(answer) => {
                    self.record.dropped_bodies += u64::from(self.record.span.holds(slot.due));
                    Arrival::Answer(answer)
                }
                None => Arrival::Part,
            },
            Received::Nothing => Arrival::Nothing,
            Received::Closed => Arrival::Closed,
            Received::Failed(error) => Arrival::Broken(error),
        }
    }

    /// An answer is complete. Returns whether its connection can be used again.
    #[inline]
    fn answered(&mut self, index: u32, answer: &P::Answer) -> bool {
        let now = self.clock.now();
        let slot = &mut self.slots[index as usize];
        // The answer was there when its last byte was, not when we came to read it.
        let done = match self.transport.arrived() {
            Some(arrived) => arrived.clamp(slot.since, now),
            None => now,
        };
        let outcome = P::judge(answer, &self.ask, done - slot.since);
        self.record.landed_at(done, now);
        let counts = self
            .record
            .settle(slot.due, Some(slot.since), done, outcome);
        if counts && let Some(fairness) = &mut self.record.fairness {
            fairness.answered(&mut slot.account, done - slot.due);
        }
        if let Some(which) = slot.protocol.which() {
            self.record
                .settle_one(which, slot.due, slot.since, done, outcome);
        }
        if let Some(first) = slot.first_byte() {
            self.record
                .in_pieces(slot.due, slot.since, Some(first), done, outcome);
        }
        if slot.sending && self.record.span.holds(slot.due) {
            self.record.answered_early += 1;
        }
        if !slot.answered {
            slot.answered = true;
            self.record.connections.answered += 1;
        }
        slot.reused = true;
        slot.failures = 0;
        let bulk = slot.protocol.weigh(&mut self.ask);
        self.transport.answered(bulk);
        slot.free_since = now;
        slot.state = if slot.sending {
            State::Finishing
        } else {
            State::Answered
        };
        if outcome != Outcome::Ok {
            let (protocol, ask) = (&slot.protocol, &self.ask);
            self.record
                .example(outcome, || protocol.explain(answer, ask));
        }
        let usable = P::is_reusable(answer) && self.orders.keepalive;
        if !usable {
            let token = self.slots[index as usize].token(index);
            if let Some(farewell) = P::farewell(answer, &self.ask) {
                self.transport.send(token, farewell);
            }
            self.retire(index, outcome == Outcome::BadProtocol, now);
        }
        usable
    }

    /// One message of an answer is there, and others follow.
    fn message(&mut self, index: u32, message: Message) {
        let slot = &mut self.slots[index as usize];
        if message.first {
            let now = self.clock.now();
            self.record.first_message(slot.due, slot.since, now);
        }
        if message.replied {
            let token = slot.token(index);
            if let Some(outgoing) = slot.protocol.reply(&mut self.ask) {
                slot.sending = self.transport.send(token, outgoing) == Sending::Pending;
            }
        }
    }

    /// The server did nothing with the request: it goes out again, once, with its due time kept. Returns whether the
    /// connection can be used again.
    fn refused(&mut self, index: u32) -> bool {
        let now = self.clock.now();
        let slot = &mut self.slots[index as usize];
        if slot.again {
            self.fail(index, Outcome::Reset, || {
                "the server refused the request twice, and did nothing with it".into()
            });
            return false;
        }
        self.record.landed(now);
        self.queue.send_again(slot.due, slot.once_more());
        slot.free_since = now;
        slot.sending = false;
        slot.state = State::Answered;
        true
    }

    /// The server has closed its side.
    fn closed(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.state != State::Busy {
            return self.close(index);
        }
        match slot.protocol.eof(&self.ask) {
            Ok(Some(answer)) => {
                if self.answered(index, &answer) {
                    self.close(index);
                }
            }
            Ok(None) => self.lost(index, "the server closed the connection without an answer"),
            Err(fault) => self.fail(index, fault.outcome, || fault.why),
        }
    }

    /// The connection broke.
    #[cold]
    fn broken(&mut self, index: u32, error: &io::Error) {
        let slot = &self.slots[index as usize];
        match slot.state {
            State::Busy if error.kind() == io::ErrorKind::InvalidData => {
                self.fail(index, Outcome::BadProtocol, || error.to_string());
            }
            State::Busy if slot.received => self.fail(index, Outcome::Reset, || {
                format!("{error}, amid the answer")
            }),
            State::Busy => self.lost(index, &error.to_string()),
            _ => self.close(index),
        }
    }

    /// A connection ended before the first byte of an answer.
    ///
    /// On a connection that has served before, the server may have closed it as idle while the request was on its way;
    /// every real client then sends the request again on a fresh connection (RFC 9112, section 9.3.1), and so do we:
    /// once, only where the method is idempotent and the close came so soon that it [`crossed`] the request, with the
    /// due time and the time of sending kept. It shows in `resent`. Later, the second time, and on a connection that
    /// never served, it is a `reset`.
    #[cold]
    fn lost(&mut self, index: u32, why: &str) {
        let now = self.clock.now();
        let slot = &self.slots[index as usize];
        let may = slot.reused && !slot.again;
        if !(may
            && slot.protocol.is_idempotent(&self.ask)
            && crossed(
                now - slot.since,
                self.transport.round_trip(slot.token(index)),
            ))
        {
            return self.fail(index, Outcome::Reset, || why.to_owned());
        }
        self.record.landed(now);
        self.record.resent += u64::from(self.record.span.holds(slot.due));
        self.queue.send_again(slot.due, slot.once_more());
        self.retire(index, false, now);
    }

    /// The request in flight has failed, and its connection with it.
    #[cold]
    fn fail(&mut self, index: u32, outcome: Outcome, why: impl FnOnce() -> String) {
        let now = self.clock.now();
        let slot = &self.slots[index as usize];
        self.record.landed(now);
        self.record.settle(slot.due, Some(slot.since), now, outcome);
        if let Some(which) = slot.protocol.which() {
            self.record
                .settle_one(which, slot.due, slot.since, now, outcome);
        }
        self.record
            .in_pieces(slot.due, slot.since, slot.first_byte(), now, outcome);
        self.record.example(outcome, why);
        // A time-out has waited long enough; what fails at once must not be tried again at once for ever.
        self.retire(index, outcome != Outcome::Timeout, now);
    }

    /// Closes a connection that carries no request.
    fn close(&mut self, index: u32) {
        let now = self.clock.now();
        self.retire(index, false, now);
    }

    fn retire(&mut self, index: u32, failed: bool, now: Nanos) {
        self.transport
            .close(self.slots[index as usize].token(index));
        self.leave(index, failed, now);
    }
}

/// What the connection of a slot is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Vacant,
    /// It is being made.
    Connecting,
    /// There is no room for it on the server's side; it is told when there is.
    Parked,
    /// Nothing to do.
    Idle,
    /// A request is in flight.
    Busy,
    /// Its request was answered a moment ago and the event is still being read.
    Answered,
    /// Its request was answered before it was sent whole, and the rest is still going out.
    Finishing,
}

/// See the module.
#[derive(Debug)]
pub struct Slot<P> {
    /// The connection's side of the protocol.
    pub protocol: P,
    /// See [`State`].
    pub state: State,
    /// Number of the connection.
    pub generation: u32,
    /// When the request in flight was due.
    pub due: Nanos,
    /// When it was sent, of one that is sent again the first time; when the attempt to connect began.
    pub since: Nanos,
    /// When the slot last had nothing to do: a closed loop's next request is due then.
    pub free_since: Nanos,
    /// Number of the request among those of its worker.
    pub number: u64,
    /// The request has been sent before.
    pub again: bool,
    /// The request is not yet out whole.
    pub sending: bool,
    /// When the first byte of the answer came, of one that did not come whole at once; else 0.
    pub first_byte: Nanos,
    /// What came to it within the span.
    pub account: Account,
    /// Bytes of the answer have come.
    pub received: bool,
    /// This connection has had an answer.
    pub reused: bool,
    /// This slot has been connected.
    pub opened: bool,
    /// This slot has had an answer.
    pub answered: bool,
    /// Failures in a row.
    pub failures: u8,
}

impl<P: Protocol> Default for Slot<P> {
    /// A slot without a connection.
    fn default() -> Slot<P> {
        Slot {
            protocol: P::new(),
            state: State::Vacant,
            generation: 0,
            due: 0,
            since: 0,
            free_since: 0,
            number: 0,
            again: false,
            sending: false,
            first_byte: 0,
            account: Account::default(),
            received: false,
            reused: false,
            opened: false,
            answered: false,
            failures: 0,
        }
    }
}

impl<P: Protocol> Slot<P> {
    /// Names the slot's present connection to the transport.
    #[inline]
    pub fn token(&self, index: u32) -> Token {
        Token {
            slot: index,
            generation: self.generation,
        }
    }

    /// A new connection is being made.
    pub fn connecting(&mut self, index: u32, now: Nanos) -> Token {
        self.generation = self.generation.wrapping_add(1);
        self.protocol.renew();
        self.state = State::Connecting;
        self.since = now;
        self.reused = false;
        self.token(index)
    }

    /// The connection is gone; events of it that are still under way are stale from now on.
    pub fn vacate(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.state = State::Vacant;
        self.sending = false;
    }

    /// A request goes out.
    #[inline]
    pub fn begin(&mut self, request: Request, now: Nanos) {
        self.state = State::Busy;
        self.due = request.due;
        self.again = request.again.is_some();
        self.since = request.sent().unwrap_or(now);
        self.received = false;
        self.first_byte = 0;
    }
}

impl<P> Slot<P> {
    /// The request in flight, to be sent once more.
    pub fn once_more(&self) -> Again {
        Again {
            number: self.number,
            since: self.since,
        }
    }

    /// When the first byte of the answer came, where that is known.
    pub fn first_byte(&self) -> Option<Nanos> {
        Some(self.first_byte).filter(|&moment| moment > 0)
    }
}

/// A failure to connect, with the cure where the cause is on this machine.
pub fn explain_refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => {
            "no local port is free: connections closed in the last 60 s still hold theirs; \
             use keep-alive, a lower rate, or widen net.ipv4.ip_local_port_range"
                .into()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "no file descriptor is free; raise `ulimit -n` or use fewer connections".into()
        }
        Some(libc::ECONNREFUSED) => "connection refused: nothing listens there".into(),
        Some(libc::EAGAIN) => {
            "the listen queue of the unix socket is full: the server takes connections in too slowly; \
             use fewer (-c), or give it a longer queue (backlog)"
                .into()
        }
        Some(libc::ENOENT) => "there is no such unix socket: is the server running?".into(),
        _ => format!("cannot connect: {error}"),
    }
}

/// What may pass beside the way itself. The server's event loop, or thread, that has decided to close takes its turn to do
/// so, and meanwhile the request lies in its socket unread (the kernel then answers it with RST); whoever has something to
/// do waits for a CPU of a busy machine for a time slice, 3 to 4 ms; and pauses of a virtual machine are 3 to 9 ms. Hardly
/// a request is worked on, failed and its process gone within this; where one is, it counts in `resent`.
const SERVERS_TURN: Nanos = 10 * MILLISECOND;

/// Whether a connection that ended `age` after a request was sent may have been closed before the server had it.
///
/// A close that was decided before the request came is here within one round trip of sending: FIN is on its way already,
/// and RST sets out when the request arrives. Two are allowed, because the round trip known is the shortest that the kernel
/// has seen (`TCP_INFO`), and queues on the way make it longer. The smoothed one would be no measure: an acknowledgement
/// may wait for the answer (on Linux up to 200 ms), so the server's work, the very thing to be told apart, is in it. None:
/// the kernel tells no round trip (a unix socket, another system), and the way counts as nothing.
pub(crate) fn crossed(age: Nanos, round_trip: Option<Nanos>) -> bool {
    age <= SERVERS_TURN + 2 * round_trip.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_crosses_a_request_that_is_as_old_as_two_ways_and_a_turn_at_most() {
        let rows = [
            (0, None, true),
            (SERVERS_TURN, None, true),
            (SERVERS_TURN + 1, None, false),
            (SERVERS_TURN + 1, Some(20_000), true),
            (300 * MILLISECOND, Some(20_000), false),
            (300 * MILLISECOND, Some(160 * MILLISECOND), true),
            (5_000 * MILLISECOND, Some(160 * MILLISECOND), false),
        ];
        for (age, round_trip, wanted) in rows {
            assert_eq!(crossed(age, round_trip), wanted, "{age} {round_trip:?}");
        }
    }
}
