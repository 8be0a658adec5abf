//! What a worker writes down: histograms, outcomes, slices of the timeline. One per thread, merged at the end.

mod details;
mod fairness;
mod slices;

use std::sync::mpsc::Sender;

use crate::clock::Nanos;
use crate::durations::Durations;
use crate::os::CpuTime;
use crate::outcome::{Outcome, Outcomes};
use crate::punctual::Class;
use crate::record::slices::Slices;
use crate::transport::{Connections, RoomCounts, Standing};

pub use details::{Deliveries, FirstMessage, Pieces, Share, Sockets, Step, Steps};
pub use fairness::{Account, Fairness};
pub use slices::{SLICE, SLICES_PER_SECOND, Slice};

/// Everything one thread recorded.
#[derive(Debug)]
pub struct Record {
    /// Ends of the measured requests.
    pub outcomes: Outcomes,
    /// From due to done.
    pub due: Durations,
    /// From sent to done.
    pub sent: Durations,
    /// Of answers that have several messages: until the first, from due and from sent.
    pub first: Option<Box<FirstMessage>>,
    /// From due to sent, where nothing but the generator itself could delay it.
    pub lag: Durations,
    /// Right answers that arrived within the span, to whichever requests: without those to requests of the warm-up,
    /// the span would begin with a gap of one latency.
    pub ok_in_span: u64,
    /// Answers complete before their request was.
    pub answered_early: u64,
    /// By which transport, in the end.
    pub transport: &'static str,
    /// See [`crate::transport::Transport::changed_for`].
    pub changed_for: Option<u64>,
    /// Answers to measured requests whose bodies the kernel dropped unseen but for their length.
    pub dropped_bodies: u64,
    /// Measured requests that fell due when all connections were busy and none could be added.
    pub capped: u64,
    /// Measured requests that were sent again, because the server closed their idle connection as they were sent.
    pub resent: u64,
    /// The first failures.
    pub examples: Vec<(Outcome, String)>,
    /// See [`Connections`].
    pub connections: Connections,
    /// Of answers that come in several deliveries: until each, from due and from sent.
    pub deliveries: Option<Box<Deliveries>>,
    /// What each step of a schedule came to; empty: the rate does not change.
    pub steps: Steps,
    /// What each of several requests came to, of those that were sent; empty: there is one.
    pub by_request: Vec<Share>,
    /// See [`RoomCounts`]; None: there is no room.
    pub room: Option<RoomCounts>,
    /// See [`Fairness`]; None: an open loop chooses its connections itself, and a room is heard by all its members.
    pub fairness: Option<Box<Fairness>>,
    /// Slots the server has no room for.
    pub parked: u64,
    /// See [`Pieces`].
    pub pieces: Option<Box<Pieces>>,
    /// See [`Standing`].
    pub standing: Standing,
    /// See [`Sockets`].
    pub sockets: Sockets,
    /// The shortest from sent to done of the whole run, the warm-up included: what an answer takes when nobody is
    /// before it. `Nanos::MAX`: there was none.
    pub fastest: Nanos,
    /// Requests due and not sent, because all connections were busy, at the last look.
    pub waiting: u64,
    /// Used by this thread within the span.
    pub cpu: CpuTime,
    /// How long this thread waited for a CPU within the span; None: not told.
    pub queued: Option<Nanos>,
    /// How this thread stood with the scheduler; of a sum, the least of them.
    pub class: Class,
    /// How long this thread waited awake within the span, to be on time.
    pub awake: Nanos,
    /// The span; its end is known when the run is over.
    pub span: Span,
    flight: Flight,
    slices: Slices,
    max_examples: usize,
}

impl Record {
    /// An empty record of `thread`, whose slices go to `slices`.
    pub fn new(thread: u64, max_examples: usize, slices: Option<Sender<Slice>>) -> Record {
        Record {
            outcomes: Outcomes::default(),
            due: Durations::default(),
            sent: Durations::default(),
            first: None,
            lag: Durations::default(),
            ok_in_span: 0,
            answered_early: 0,
            transport: "",
            changed_for: None,
            dropped_bodies: 0,
            capped: 0,
            resent: 0,
            examples: Vec::new(),
            connections: Connections::default(),
            deliveries: None,
            steps: Steps::default(),
            by_request: Vec::new(),
            room: None,
            fairness: None,
            parked: 0,
            pieces: None,
            standing: Standing::default(),
            sockets: Sockets::default(),
            fastest: Nanos::MAX,
            waiting: 0,
            cpu: CpuTime::default(),
            queued: None,
            class: Class::RealTime,
            awake: 0,
            span: Span {
                start: Nanos::MAX,
                end: Nanos::MAX,
            },
            flight: Flight::default(),
            slices: Slices::new(thread, slices),
            max_examples,
        }
    }

    /// The timeline begins `now` and its measured span at `start`.
    pub fn begin(&mut self, now: Nanos, start: Nanos, end: Nanos) {
        self.span = Span { start, end };
        self.steps.begin(start);
        self.flight.begin(now);
        self.slices.begin(now, start);
    }

    /// When [`Record::turn`] is to be called next.
    pub fn next_turn(&self) -> Nanos {
        self.slices.end()
    }

    /// Hands on the slices that have ended by `now`.
    #[cold]
    pub fn turn(&mut self, now: Nanos) {
        self.slices
            .turn(now, self.span, self.flight.count(), self.waiting);
    }

    /// One request more is in flight.
    #[inline]
    pub fn sent(&mut self, now: Nanos) {
        self.flight.more(now, self.span);
    }

    /// One request fewer is in flight.
    #[inline]
    pub fn landed(&mut self, now: Nanos) {
        self.flight.fewer(now, self.span);
    }

    /// One request fewer is in flight, and has not been since `done`.
    #[inline]
    pub fn landed_at(&mut self, done: Nanos, now: Nanos) {
        self.flight.fewer_since(done, now, self.span);
    }

    /// Requests sent and not yet at an end.
    pub fn in_flight(&self) -> u64 {
        self.flight.count()
    }

    /// Integral of requests in flight over the span, nanoseconds.
    pub fn flight_time(&self) -> u128 {
        self.flight.time
    }

    /// A request came to its end at `done`; `sent` is None for one that never went out. Returns whether that was a right
    /// answer within the span.
    #[inline]
    pub fn settle(
        &mut self,
        due: Nanos,
        sent: Option<Nanos>,
        done: Nanos,
        outcome: Outcome,
    ) -> bool {
        if done >= self.slices.end() {
            self.turn(done);
        }
        let in_span = done < self.span.end;
        let counts = in_span && outcome == Outcome::Ok && done >= self.span.start;
        self.ok_in_span += u64::from(counts);
        if in_span {
            self.slices.settled(outcome);
        }
        let measured = self.span.holds(due);
        if measured {
            self.outcomes.count(outcome);
        }
        if !self.steps.is_empty() {
            self.settle_step(due, sent, done, outcome);
        }
        if let Some(sent) = sent
            && outcome == Outcome::Ok
        {
            self.fastest = self.fastest.min(done - sent);
        }
        if outcome.is_timed() {
            if measured {
                self.due.record(done - due);
                if let Some(sent) = sent {
                    self.sent.record(done - sent);
                }
            }
            // The slices of the warm-up are shown while it runs and kept nowhere.
            if in_span && (measured || done < self.span.start) {
                self.slices.timed(done - due);
            }
        }
        counts
    }

    /// The same, of one of several requests.
    #[inline]
    pub fn settle_one(
        &mut self,
        which: usize,
        due: Nanos,
        sent: Nanos,
        done: Nanos,
        outcome: Outcome,
    ) {
        if self.span.holds(due)
            && let Some(share) = self.by_request.get_mut(which)
        {
            share.settle(due, Some(sent), done, outcome);
        }
    }

    fn settle_step(&mut self, due: Nanos, sent: Option<Nanos>, done: Nanos, outcome: Outcome) {
        if self.span.holds(due)
            && let Some(step) = self.steps.at(due)
        {
            step.share.settle(due, sent, done, outcome);
        }
        if outcome == Outcome::Ok
            && self.span.holds(done)
            && let Some(step) = self.steps.at(done)
        {
            step.answered += 1;
        }
    }

    /// A request ended whose answer did not come whole in one piece, if it came at all. `first`: when its first byte
    /// did.
    pub fn in_pieces(
        &mut self,
        due: Nanos,
        sent: Nanos,
        first: Option<Nanos>,
        done: Nanos,
        outcome: Outcome,
    ) {
        if !self.span.holds(due) || !outcome.is_timed() {
            return;
        }
        let pieces = self.pieces.get_or_insert_default();
        pieces.whole.record(done - sent);
        if let Some(first) = first {
            // The kernel may have had the end before we had read the beginning.
            let first = first.min(done);
            pieces.first.record(first - sent);
            if !matches!(outcome, Outcome::Timeout | Outcome::Unfinished) {
                pieces.rest.record(done - first);
            }
        }
    }

    /// The first of several messages of an answer has come.
    pub fn first_message(&mut self, due: Nanos, sent: Nanos, now: Nanos) {
        if self.span.holds(due) {
            let first = self.first.get_or_insert_default();
            first.due.record(now - due);
            first.sent.record(now - sent);
        }
    }

    /// A part of an answer came that counts by itself.
    pub fn delivered(&mut self, due: Nanos, sent: Nanos, moment: Nanos) {
        if self.span.holds(due) {
            let deliveries = self.deliveries.get_or_insert_default();
            // A message may arrive before the clock was read that says it was sent.
            deliveries.due.record(moment.saturating_sub(due));
            deliveries.sent.record(moment.saturating_sub(sent));
        }
    }

    /// A request due at `due` was acted on at `now`, and nothing but the generator itself delayed that.
    #[inline]
    pub fn lagged(&mut self, due: Nanos, now: Nanos) {
        if self.span.holds(due) {
            self.lag.record(now - due);
            if let Some(step) = self.steps.at(due) {
                step.lag.record(now - due);
            }
        }
    }

    /// Keeps the text of a failure if it is among the first and new.
    #[cold]
    pub fn example(&mut self, outcome: Outcome, text: impl FnOnce() -> String) {
        if self.examples.len() < self.max_examples {
            let example = (outcome, text());
            if !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }

    /// The span ends at `end`: the last slice, though not full, is handed on.
    pub fn end_span(&mut self, now: Nanos, end: Nanos) {
        self.turn(now.min(end));
        self.flight.integrate(now.min(end), self.span);
        self.span.end = end;
        self.slices.finish(end, self.flight.count(), self.waiting);
    }

    /// No slice will follow. The reader waits for the last sender to go, and the record itself lives on.
    pub fn hang_up(&mut self) {
        self.slices.hang_up();
    }
}

/// The measured part of the timeline.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When warm-up ended.
    pub start: Nanos,
    /// When the drain began; `Nanos::MAX` while it is not known.
    pub end: Nanos,
}

impl Span {
    /// Whether a request due then, or an answer arrived then, belongs to the measurement.
    #[inline]
    pub fn holds(&self, moment: Nanos) -> bool {
        (self.start..self.end).contains(&moment)
    }
}

/// Requests sent and not yet at an end.
#[derive(Debug, Default)]
pub struct Flight {
    /// Integral of their number over the span, nanoseconds.
    pub time: u128,
    count: u64,
    since: Nanos,
}

impl Flight {
    /// The timeline begins.
    pub fn begin(&mut self, now: Nanos) {
        self.since = now;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// One more.
    #[inline]
    pub fn more(&mut self, now: Nanos, span: Span) {
        self.integrate(now, span);
        self.count += 1;
    }

    /// One fewer.
    #[inline]
    pub fn fewer(&mut self, now: Nanos, span: Span) {
        self.integrate(now, span);
        self.count -= 1;
    }

    /// One fewer, which has not been in flight since `done`.
    #[inline]
    pub fn fewer_since(&mut self, done: Nanos, now: Nanos, span: Span) {
        self.fewer(now, span);
        let counted = now.min(span.end).saturating_sub(done.max(span.start));
        self.time = self.time.saturating_sub(u128::from(counted));
    }

    /// Adds up to `now`.
    #[inline]
    pub fn integrate(&mut self, now: Nanos, span: Span) {
        let from = self.since.max(span.start);
        let to = now.min(span.end);
        if to > from {
            self.time += u128::from(self.count) * u128::from(to - from);
        }
        self.since = now;
    }
}

impl Record {
    /// Adds what another thread recorded.
    pub fn add(&mut self, other: Record) {
        self.outcomes.add(&other.outcomes);
        self.due.add(&other.due);
        self.sent.add(&other.sent);
        self.lag.add(&other.lag);
        if let Some(theirs) = other.first {
            let first = self.first.get_or_insert_default();
            first.due.add(&theirs.due);
            first.sent.add(&theirs.sent);
        }
        if let Some(theirs) = other.deliveries {
            let deliveries = self.deliveries.get_or_insert_default();
            deliveries.due.add(&theirs.due);
            deliveries.sent.add(&theirs.sent);
        }
        self.steps.add(other.steps);
        if self.by_request.is_empty() {
            self.by_request = other.by_request;
        } else {
            for (mine, theirs) in self.by_request.iter_mut().zip(other.by_request) {
                mine.add(theirs);
            }
        }
        // A room has one thread.
        self.room = self.room.or(other.room);
        match (self.fairness.as_mut(), other.fairness) {
            (Some(mine), Some(theirs)) => mine.add(*theirs),
            (None, theirs) => self.fairness = theirs,
            _ => {}
        }
        self.parked += other.parked;
        if let Some(theirs) = other.pieces {
            self.pieces.get_or_insert_default().add(&theirs);
        }
        self.standing.add(other.standing);
        self.sockets.add(&other.sockets);
        self.fastest = self.fastest.min(other.fastest);
        // Of several threads all tell it, or none does.
        self.queued = self
            .queued
            .into_iter()
            .chain(other.queued)
            .reduce(|a, b| a + b);
        self.class = self.class.max(other.class);
        self.awake += other.awake;
        self.ok_in_span += other.ok_in_span;
        self.answered_early += other.answered_early;
        // Each thread judges its own answers: where one has changed over, that is told.
        if self.changed_for.is_none() {
            self.transport = other.transport;
            self.changed_for = other.changed_for;
        }
        self.dropped_bodies += other.dropped_bodies;
        self.capped += other.capped;
        self.resent += other.resent;
        self.flight.time += other.flight.time;
        self.cpu = self.cpu.plus(other.cpu);
        self.connections.opened += other.connections.opened;
        self.connections.reopened += other.connections.reopened;
        self.connections.answered += other.connections.answered;
        self.span = match (self.span, other.span) {
            // The empty record that a sum begins with has no span.
            (
                Span {
                    start: Nanos::MAX, ..
                },
                span,
            ) => span,
            (mine, theirs) => Span {
                start: mine.start.min(theirs.start),
                end: mine.end.max(theirs.end),
            },
        };
        for (outcome, text) in other.examples {
            self.example(outcome, || text);
        }
    }
}
