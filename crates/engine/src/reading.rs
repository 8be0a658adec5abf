//! The worker's other half: what comes back, and what it means for the request in flight.

use std::io;

use crate::clock::{Clock, Nanos};
use crate::crossing::crossed;
use crate::outcome::Outcome;
use crate::protocol::{Fault, Fed, Message, Protocol};
use crate::slot::State;
use crate::transport::{Reading, Received, Sending, Token, Transport};
use crate::worker::Worker;

/// What a connection brought.
enum Heard<A> {
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
    pub(crate) fn read(&mut self, token: Token, mut reading: Reading) {
        let index = token.slot;
        loop {
            match self.hear(token, &mut reading) {
                Heard::Part => {}
                Heard::Message(message) => self.message(index, message),
                Heard::Refused => {
                    if !self.refused(index) {
                        return;
                    }
                }
                Heard::Answer(answer) => {
                    if !self.answered(index, &answer) {
                        return;
                    }
                }
                Heard::Nothing => break,
                Heard::Unasked => return self.close(index),
                Heard::Fault(fault) => return self.fail(index, fault.outcome, || fault.why),
                Heard::Closed => return self.closed(index),
                Heard::Broken(error) => return self.broken(index, &error),
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
    fn hear(&mut self, token: Token, reading: &mut Reading) -> Heard<P::Answer> {
        let slot = &mut self.slots[token.slot as usize];
        if slot.state == State::Busy {
            if !slot.received {
                if slot.protocol.is_bulky(&self.ask) {
                    reading.briefly();
                }
            } else if let most @ 1.. = slot.protocol.skippable()
                && let Some(dropped) = self.transport.discard(token, reading, most)
            {
                return self.dropped(token.slot, dropped);
            }
        }
        match self.transport.received(token, reading) {
            // Nobody asked for this: surplus of an answer, or a farewell such as 408 before a close.
            Received::Piece(_) if slot.state != State::Busy => Heard::Unasked,
            Received::Piece(piece) => {
                let begins = !std::mem::replace(&mut slot.received, true);
                let fed = slot.protocol.feed(piece, &self.ask);
                if begins && !matches!(fed, Ok(Fed::Done(_))) {
                    slot.first_byte = self.clock.now();
                }
                for &moment in slot.protocol.deliveries() {
                    self.record.delivered(slot.due, slot.since, moment);
                }
                match fed {
                    Ok(Fed::More) => Heard::Part,
                    Ok(Fed::Message(message)) => Heard::Message(message),
                    Ok(Fed::Refused) => Heard::Refused,
                    Ok(Fed::Done(answer)) => Heard::Answer(answer),
                    Err(fault) => Heard::Fault(fault),
                }
            }
            Received::Nothing => Heard::Nothing,
            Received::Closed => Heard::Closed,
            Received::Failed(error) => Heard::Broken(error),
        }
    }

    /// Bytes nobody looks at were dropped in the kernel.
    fn dropped(&mut self, index: u32, dropped: Received<u64>) -> Heard<P::Answer> {
        let slot = &mut self.slots[index as usize];
        match dropped {
            Received::Piece(count) => match slot.protocol.skip(count, &self.ask) {
                Some(answer) => {
                    self.record.dropped_bodies += u64::from(self.record.span.holds(slot.due));
                    Heard::Answer(answer)
                }
                None => Heard::Part,
            },
            Received::Nothing => Heard::Nothing,
            Received::Closed => Heard::Closed,
            Received::Failed(error) => Heard::Broken(error),
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
        self.record
            .settle(slot.due, Some(slot.since), done, outcome);
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
        self.transport.weighed(bulk);
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
            let outgoing = slot.protocol.reply(&mut self.ask);
            slot.sending = self.transport.send(token, outgoing) == Sending::Pending;
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
        self.agenda.send_again(slot.due, slot.once_more());
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
        let may = slot.reused && !slot.again && self.orders.idempotent;
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
        self.agenda.send_again(slot.due, slot.once_more());
        self.retire(index, false, now);
    }

    /// The request in flight has failed, and its connection with it.
    #[cold]
    pub(crate) fn fail(&mut self, index: u32, outcome: Outcome, why: impl FnOnce() -> String) {
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
    pub(crate) fn close(&mut self, index: u32) {
        let now = self.clock.now();
        self.retire(index, false, now);
    }

    fn retire(&mut self, index: u32, failed: bool, now: Nanos) {
        self.transport
            .close(self.slots[index as usize].token(index));
        self.leave(index, failed, now);
    }
}
