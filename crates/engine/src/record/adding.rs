//! One record of what several threads recorded.

use super::{Record, Span};
use crate::clock::Nanos;

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
