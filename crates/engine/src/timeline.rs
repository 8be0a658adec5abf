//! A worker's run from start to end: connect, warm-up, span, drain.

mod awake;
mod chores;

use std::io;
use std::sync::atomic::Ordering;

use self::awake::Awake;
use crate::clock::{Clock, MILLISECOND, Nanos};
use crate::course::Course;
use crate::outcome::Outcome;
use crate::protocol::Protocol;
use crate::record::{Record, Span};
use crate::slot::State;
use crate::transport::priority::Priority;
use crate::transport::{Transport, os};
use crate::worker::Worker;

/// Longest drain of a load that was stopped: somebody is waiting.
const STOPPED_DRAIN: Nanos = 500 * MILLISECOND;
/// So many connections are asked for before those that stand are looked after. A ring asked for thousands at once makes
/// them faster than a server takes them in: what its listen queue has no room for is tried again a second later.
const WAVE: usize = 256;
/// A stop is noticed within this time even when nothing happens.
const GLANCE: Nanos = 250 * MILLISECOND;

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
    pub fn run(mut self, course: &Course) -> io::Result<Record> {
        let connected = self.connect_phase(course);
        self.count_connections();
        course
            .opened
            .fetch_add(self.record.connections.opened, Ordering::SeqCst);
        let origin = course.line_up(&self.clock, connected.is_ok());
        connected?;
        let Some(origin) = origin else {
            self.record.hang_up();
            return Ok(self.record);
        };
        let mut phase = self.begin(course, origin);
        loop {
            let now = self.clock.now();
            let fell_due = self.send_due();
            let wake = self.keep_time(&mut phase, course, now, fell_due)?;
            if phase.span_over && (self.is_drained() || now >= phase.drain_end) {
                break;
            }
            // Anew: to send takes time, and a wait that began before it would end after its moment.
            let now = self.clock.now();
            let class = phase.priority.class();
            let until = phase
                .awake
                .sleep_until(class, now, wake, self.agenda.next_due());
            self.step(now, until)?;
        }
        self.give_up();
        self.count_connections();
        self.record.transport = self.transport.name();
        self.record.changed_for = self.transport.changed_for();
        self.record.class = phase.priority.class();
        self.look_back();
        Ok(self.record)
    }

    /// Where connections are others than the slots, the transport knows them.
    fn count_connections(&mut self) {
        self.record.connections = self.transport.census(self.record.connections);
        self.record.room = self.transport.room();
    }

    /// Opens the connections of a closed loop, and one of an open loop (it opens the others as they are needed).
    fn connect_phase(&mut self, course: &Course) -> io::Result<()> {
        if !self.orders.keepalive {
            return Ok(());
        }
        let count = if self.agenda.is_open() {
            1
        } else {
            self.slots.len()
        };
        let deadline = self.clock.now() + self.transport.patience();
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
            if now >= deadline || course.stop.load(Ordering::Relaxed) {
                break;
            }
            self.step(now, deadline.min(now + GLANCE))?;
        }
        Ok(())
    }

    fn begin(&mut self, course: &Course, origin: Nanos) -> Phase {
        let start = origin + course.warmup;
        let span = Span {
            start,
            end: course.span.map_or(Nanos::MAX, |length| start + length),
        };
        self.record.begin(origin, span.start, span.end);
        self.agenda.begin(origin, span);
        if !self.agenda.is_open() {
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
        course: &Course,
        now: Nanos,
        fell_due: bool,
    ) -> io::Result<Nanos> {
        if course.stop.load(Ordering::Relaxed) {
            if !phase.span_over {
                self.agenda.stop(now);
                self.end_span(phase, now, now);
                course.ended.fetch_max(now, Ordering::SeqCst);
            }
            // Of a drain that had begun, too.
            phase.drain_end = phase.drain_end.min(now + course.drain.min(STOPPED_DRAIN));
        }
        self.record.waiting = self.agenda.waiting();
        if !phase.span_over {
            self.watch_span(phase, course, now);
        }
        self.end_pauses(now);
        if (fell_due || self.has_room(now)) && now >= self.next_chore(phase) {
            // What was sent may be queued still, and is not to wait for this.
            self.step(now, now)?;
            self.do_chores(phase, now);
        }
        let due = self.agenda.next_due();
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
    fn watch_span(&mut self, phase: &mut Phase, course: &Course, now: Nanos) {
        let span = self.record.span;
        if now >= span.end {
            // What is due before the end falls due although it is noticed after it.
            self.send_due();
            self.end_span(phase, now, span.end);
            phase.drain_end = span.end + course.drain;
        } else if course.span.is_none() && !self.agenda.is_running(now) {
            if phase.drain_end == Nanos::MAX {
                phase.drain_end = now + self.orders.timeout + course.drain;
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
        self.record.standing = self.transport.standing();
        for number in 0..self.slots.len().min(MOST_LOOKED_BACK) {
            if let Some(info) = self.transport.look(number) {
                self.record.sockets.retransmitted += u64::from(info.retransmitted);
            }
        }
    }

    fn is_drained(&self) -> bool {
        self.record.in_flight() == 0 && self.agenda.waiting() == 0
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
        while let Some(request) = self.agenda.abandon() {
            self.record
                .settle(request.due, request.sent(), now, Outcome::Unfinished);
        }
    }
}
