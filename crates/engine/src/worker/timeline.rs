//! A worker's run from start to end: connect, warm-up, span, drain; and what all workers of a load share of it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::clock::{Clock, MILLISECOND, Monotonic, Nanos, SECOND};
use crate::os;
use crate::outcome::Outcome;
use crate::protocol::Protocol;
use crate::punctual::{Awake, Priority};
use crate::record::{Record, Span};
use crate::transport::Transport;
use crate::worker::{State, Worker};

/// Longest drain of a load that was stopped: somebody is waiting.
const STOPPED_DRAIN: Nanos = 500 * MILLISECOND;
/// So many connections are asked for before those that stand are looked after. A ring asked for thousands at once makes
/// them faster than a server takes them in: what its listen queue has no room for is tried again a second later.
const WAVE: usize = 256;
/// A stop is noticed within this time even when nothing happens.
const GLANCE: Nanos = 250 * MILLISECOND;

/// How often it is looked whether all parts begin.
const CALL: Nanos = MILLISECOND;

/// Connections asked of at the end.
const MOST_LOOKED_BACK: usize = 1_000;

/// Where in the timeline a worker is.
struct Phase {
    /// The worker's CPU time when the span began.
    cpu_at_start: Option<os::CpuTime>,
    /// What the scheduler had counted of it then.
    scheduled_at_start: Option<os::Scheduled>,
    next_look: Nanos,
    span_over: bool,
    drain_end: Nanos,
    next_expiry: Nanos,
    priority: Priority,
    awake: Awake,
}

impl<P: Protocol, T: Transport<Medium = P::Medium>, C: Clock> Worker<P, T, C> {
    /// Runs the whole load of this worker.
    pub fn run(mut self, control: &RunControl) -> io::Result<Record> {
        let connected = self.connect_phase(control);
        self.count_connections();
        control
            .opened
            .fetch_add(self.record.connections.opened, Ordering::SeqCst);
        let origin = control.line_up(&self.clock, connected.is_ok());
        connected?;
        let Some(origin) = origin else {
            self.record.hang_up();
            return Ok(self.record);
        };
        let mut phase = self.begin(control, origin);
        let mut slept = false;
        loop {
            let now = self.clock.now();
            if std::mem::take(&mut slept) {
                phase.awake.woke(now);
            }
            let fell_due = self.send_due();
            let wake = self.keep_time(&mut phase, control, now, fell_due)?;
            if phase.span_over && (self.is_drained() || now >= phase.drain_end) {
                break;
            }
            // Anew: to send takes time, and a wait that began before it would end after its moment.
            let now = self.clock.now();
            let class = phase.priority.class();
            let until = phase
                .awake
                .sleep_until(class, now, wake, self.queue.next_due());
            if !self.step(now, until)? {
                slept = true;
            }
        }
        self.give_up();
        self.count_connections();
        if let Some(fairness) = &mut self.record.fairness {
            fairness.close(self.slots.iter().map(|slot| slot.account));
        }
        self.record.class = phase.priority.least();
        self.look_back();
        Ok(self.record)
    }

    /// Where connections are others than the slots, the transport knows them.
    fn count_connections(&mut self) {
        let summary = self.transport.summary();
        if let Some(census) = summary.census {
            self.record.connections = census;
        }
        self.record.room = summary.room;
        self.record.transport = summary.name;
        self.record.changed_for = summary.changed_for;
        self.record.standing = summary.standing;
    }

    /// Opens the connections of a closed loop, and one of an open loop (it opens the others as they are needed).
    fn connect_phase(&mut self, control: &RunControl) -> io::Result<()> {
        if !self.orders.keepalive {
            return Ok(());
        }
        let count = if self.queue.is_open() {
            1
        } else {
            self.slots.len()
        };
        let deadline = self.clock.now() + T::PATIENCE;
        for number in 1..=count {
            let Some(slot) = self.vacant.pop() else { break };
            let now = self.clock.now();
            self.slots[slot as usize].free_since = now;
            self.connect(slot, now);
            if number.is_multiple_of(WAVE) {
                self.step(now, now)?;
            }
        }
        while self.connecting > 0 {
            let now = self.clock.now();
            if now >= deadline || control.stop.load(Ordering::Relaxed) {
                break;
            }
            self.step(now, deadline.min(now + GLANCE))?;
        }
        Ok(())
    }

    fn begin(&mut self, control: &RunControl, origin: Nanos) -> Phase {
        let start = origin + control.warmup;
        let span = Span {
            start,
            end: control.span.map_or(Nanos::MAX, |length| start + length),
        };
        self.record.begin(origin, span.start, span.end);
        self.queue.begin(origin, span);
        if !self.queue.is_open() {
            // Of a part, the beginning lies ahead.
            while let Some(ahead) = origin
                .checked_sub(self.clock.now())
                .filter(|&ahead| ahead > 0)
            {
                if !control.is_held() || control.stop.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(Duration::from_nanos(ahead.min(GLANCE)));
            }
            self.start_all();
        }
        Phase {
            cpu_at_start: None,
            scheduled_at_start: None,
            next_look: span.start,
            span_over: false,
            drain_end: Nanos::MAX,
            next_expiry: origin + self.orders.timeout,
            priority: if self.prompt {
                Priority::enter()
            } else {
                Priority::default()
            },
            awake: Awake::new(origin),
        }
    }

    /// Closed loop: every slot begins.
    fn start_all(&mut self) {
        for token in std::mem::take(&mut self.free) {
            let slot = &mut self.slots[token.slot as usize];
            if slot.generation == token.generation && slot.state == State::Idle {
                let now = self.clock.now();
                slot.free_since = now;
                self.next(token.slot, now);
            }
        }
        for index in std::mem::take(&mut self.vacant) {
            let now = self.clock.now();
            self.slots[index as usize].free_since = now;
            self.connect(index, now);
        }
    }

    /// Does what time asks for and returns when to wake at the latest. `fell_due`: a request just did.
    fn keep_time(
        &mut self,
        phase: &mut Phase,
        control: &RunControl,
        now: Nanos,
        fell_due: bool,
    ) -> io::Result<Nanos> {
        if control.stop.load(Ordering::Relaxed) {
            if !phase.span_over {
                self.queue.stop(now);
                self.end_span(phase, now, now);
                control.ended.fetch_max(now, Ordering::SeqCst);
            }
            // Of a drain that had begun, too.
            phase.drain_end = phase.drain_end.min(now + control.drain.min(STOPPED_DRAIN));
        }
        self.record.waiting = self.queue.waiting();
        if !phase.span_over {
            self.watch_span(phase, control, now);
        }
        self.end_pauses(now);
        if (fell_due || self.has_room(now)) && now >= self.next_chore(phase) {
            // What was sent may be queued still, and is not to wait for this.
            self.step(now, now)?;
            self.do_chores(phase, now);
        }
        let due = self.queue.next_due();
        let mut wake = due.min(now + GLANCE).min(if phase.span_over {
            phase.drain_end
        } else {
            self.record.span.end
        });
        let chore = self.next_chore(phase);
        if self.has_room(chore) {
            wake = wake.min(chore);
        }
        if let Some(std::cmp::Reverse((end, _))) = self.pausing.peek() {
            wake = wake.min(*end);
        }
        Ok(wake)
    }

    /// Ends the span when its time or its last request has come.
    fn watch_span(&mut self, phase: &mut Phase, control: &RunControl, now: Nanos) {
        let span = self.record.span;
        if now >= span.end {
            // What is due before the end falls due although it is noticed after it.
            self.send_due();
            self.end_span(phase, now, span.end);
            phase.drain_end = span.end + control.drain;
        } else if control.span.is_none() && !self.queue.is_running(now) {
            if phase.drain_end == Nanos::MAX {
                phase.drain_end = now + self.orders.timeout + control.drain;
            }
            if self.is_drained() || now >= phase.drain_end {
                self.end_span(phase, now, now);
            }
        }
    }

    fn end_span(&mut self, phase: &mut Phase, now: Nanos, end: Nanos) {
        phase.span_over = true;
        self.record.end_span(now, end);
        let cpu = os::cpu_time();
        self.record.cpu = cpu.since(phase.cpu_at_start.unwrap_or(cpu));
        self.record.awake = phase.awake.take();
        self.record.queued = os::scheduled()
            .zip(phase.scheduled_at_start)
            .and_then(|(end, start)| end.waited_since(start));
    }

    /// What connections tell when all is over.
    fn look_back(&mut self) {
        for number in 0..self.slots.len().min(MOST_LOOKED_BACK) {
            if let Some(info) = self.transport.tcp_info(number) {
                self.record.sockets.retransmitted += u64::from(info.retransmitted);
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.record.in_flight() == 0 && self.queue.waiting() == 0
    }

    /// Closed loop: slots whose pause is over try again.
    fn end_pauses(&mut self, now: Nanos) {
        while let Some(&std::cmp::Reverse((end, index))) = self.pausing.peek() {
            if end > now {
                return;
            }
            self.pausing.pop();
            if self.wants_connections(now) {
                self.connect(index, now);
            } else {
                self.vacant.push(index);
            }
        }
    }

    /// What is in flight or waits when the drain is over is counted, at its age.
    fn give_up(&mut self) {
        let now = self.clock.now();
        for slot in &self.slots {
            if slot.state == State::Busy {
                self.record.landed(now);
                self.record
                    .settle(slot.due, Some(slot.since), now, Outcome::Unfinished);
                if let Some(which) = slot.protocol.which() {
                    self.record
                        .settle_one(which, slot.due, slot.since, now, Outcome::Unfinished);
                }
                let first = slot.first_byte();
                self.record
                    .in_pieces(slot.due, slot.since, first, now, Outcome::Unfinished);
            }
        }
        while let Some(request) = self.queue.abandon() {
            self.record
                .settle(request.due, request.sent(), now, Outcome::Unfinished);
        }
    }
}

/// None is due for so long.
const ROOM: Nanos = MILLISECOND;
/// Connections asked of at each look, 1 us each.
const LOOKS: usize = 16;

impl<P: Protocol, T: Transport<Medium = P::Medium>, C: Clock> Worker<P, T, C> {
    /// Whether nothing falls due soon after `moment`.
    fn has_room(&self, moment: Nanos) -> bool {
        moment.saturating_add(ROOM) <= self.queue.next_due()
    }

    /// When there is something to do that can wait until there is room for it.
    fn next_chore(&self, phase: &Phase) -> Nanos {
        let mut next = self.record.next_turn().min(phase.next_expiry);
        if phase.cpu_at_start.is_none() {
            next = next.min(self.record.span.start);
        }
        if !phase.span_over {
            next = next.min(phase.next_look);
        }
        next
    }

    /// Does what has become due by `now`.
    fn do_chores(&mut self, phase: &mut Phase, now: Nanos) {
        if phase.cpu_at_start.is_none() && now >= self.record.span.start {
            phase.cpu_at_start = Some(os::cpu_time());
            phase.scheduled_at_start = os::scheduled();
            phase.awake.take();
            phase.priority.begin_span();
        }
        if now >= self.record.next_turn() {
            self.record.turn(now);
            phase.priority.look(now);
        }
        if now >= phase.next_expiry {
            phase.next_expiry = self.expire(now);
            if self.queue.is_open() {
                self.grow(now);
            }
        }
        if now >= phase.next_look && !phase.span_over {
            phase.next_look = now + GLANCE;
            self.look(now);
        }
    }

    /// Asks the kernel of a few connections, others each time.
    fn look(&mut self, now: Nanos) {
        let slots = self.slots.len();
        let from = (now / MILLISECOND) as usize;
        let step = slots.div_ceil(LOOKS).max(1);
        for number in (from % step..slots).step_by(step) {
            if let Some(info) = self.transport.tcp_info(number) {
                self.record.sockets.see(info);
            }
        }
    }

    /// Ends what has taken too long, and returns when the next might: no time-out is earlier than the earliest of now,
    /// because what is sent later expires later. So a healthy server costs one look at all slots per time-out. (Of what
    /// is sent again the age counts on: in the one look, it may be seen that late as it waited for its new connection.)
    fn expire(&mut self, now: Nanos) -> Nanos {
        let timeout = self.orders.timeout;
        let mut next = now + timeout;
        for index in 0..self.slots.len() as u32 {
            let slot = &self.slots[index as usize];
            if matches!(
                slot.state,
                State::Vacant | State::Parked | State::Idle | State::Answered
            ) {
                continue;
            }
            let expiry = slot.since + timeout;
            if expiry > now {
                next = next.min(expiry);
                continue;
            }
            let limit = timeout as f64 / SECOND as f64;
            match slot.state {
                State::Busy if slot.received => {
                    let shortfall = slot.protocol.shortfall(&self.ask);
                    self.fail(index, Outcome::Timeout, || match shortfall {
                        Some(shortfall) => format!("{shortfall} after {limit} s"),
                        None => format!("the answer was not complete after {limit} s"),
                    });
                }
                State::Busy => self.fail(index, Outcome::Timeout, || {
                    format!("no answer within {limit} s")
                }),
                State::Connecting => {
                    let why = self.transport.why_absent(slot.token(index), limit);
                    let error = io::Error::new(io::ErrorKind::TimedOut, why);
                    self.not_connected(index, &error, now);
                }
                _ => self.close(index),
            }
        }
        // A look costs about 1 ns per slot; at most one in a millisecond.
        next.max(now + MILLISECOND)
    }
}

/// What all workers of a load share: when it begins and whether it is to stop. Read once per wake-up, hardly written.
#[derive(Debug)]
pub struct RunControl {
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// Length of the measured span; None where a count ends it.
    pub span: Option<Nanos>,
    /// How long requests are waited for after the span.
    pub drain: Nanos,
    /// Set to end the load early.
    pub stop: AtomicBool,
    /// Connections open when the timeline began.
    pub opened: AtomicU64,
    origin: AtomicU64,
    /// When the last worker's span ended before its time or by its count; 0: not.
    ended: AtomicU64,
    failed: AtomicBool,
    line: Barrier,
    /// When all parts of a load begin, once that is known; None: this is the whole, and begins when it is ready.
    begin: Option<Arc<AtomicU64>>,
    /// All workers are ready, and wait for that.
    ready: AtomicBool,
    /// By how much it had passed then.
    late: AtomicU64,
}

impl RunControl {
    /// The control of `workers` workers.
    pub fn new(warmup: Nanos, span: Option<Nanos>, drain: Nanos, workers: usize) -> RunControl {
        RunControl {
            warmup,
            span,
            drain,
            stop: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            origin: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            line: Barrier::new(workers),
            begin: None,
            ready: AtomicBool::new(false),
            late: AtomicU64::new(0),
        }
    }

    /// The same, of a part of a load, that begins when it hears when.
    #[must_use]
    pub fn held(self, begin: Arc<AtomicU64>) -> RunControl {
        RunControl {
            begin: Some(begin),
            ..self
        }
    }

    /// Whether it waits to hear when it begins, before it does.
    pub fn is_held(&self) -> bool {
        self.begin.is_some()
    }

    /// Whether all workers are ready, and nobody has said yet when they begin.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    /// By how much the beginning had passed when it was heard of.
    pub fn late(&self) -> Nanos {
        self.late.load(Ordering::SeqCst)
    }

    /// Waits until it is said when all parts begin; None: it was stopped, or has passed.
    fn called(&self, begin: &AtomicU64) -> Option<Nanos> {
        self.ready.store(true, Ordering::SeqCst);
        let called = loop {
            if self.stop.load(Ordering::Relaxed) {
                break None;
            }
            match begin.load(Ordering::SeqCst) {
                0 => std::thread::sleep(Duration::from_nanos(CALL)),
                moment => break Some(moment),
            }
        };
        self.ready.store(false, Ordering::SeqCst);
        let now = Monotonic.now();
        if let Some(late) = called.and_then(|moment| now.checked_sub(moment)) {
            self.late.store(late.max(1), Ordering::SeqCst);
            return None;
        }
        called
    }

    /// Waits until all workers are here. Returns when the timeline began, or None if one of them cannot run.
    pub fn line_up(&self, clock: &impl Clock, able: bool) -> Option<Nanos> {
        if !able {
            self.failed.store(true, Ordering::SeqCst);
        }
        let leads = self.line.wait().is_leader();
        if leads && !self.failed.load(Ordering::SeqCst) {
            let origin = match &self.begin {
                // 0 means «not yet» to `origin`.
                None => Some(clock.now().max(1)),
                Some(begin) => self.called(begin),
            };
            match origin {
                Some(origin) => self.origin.store(origin, Ordering::SeqCst),
                None => self.failed.store(true, Ordering::SeqCst),
            }
        }
        self.line.wait();
        (!self.failed.load(Ordering::SeqCst)).then(|| self.origin.load(Ordering::SeqCst))
    }

    /// When a span that began at `start` ends; None: it is not known yet.
    pub fn end(&self, start: Nanos) -> Option<Nanos> {
        let stopped = Some(self.ended.load(Ordering::SeqCst)).filter(|&end| end > 0);
        stopped.or(self.span.map(|span| start + span))
    }

    /// When the timeline began; None: it has not.
    pub fn origin(&self) -> Option<Nanos> {
        Some(self.origin.load(Ordering::SeqCst)).filter(|&origin| origin > 0)
    }
}
