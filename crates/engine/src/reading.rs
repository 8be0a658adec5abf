//! The worker's other half: what comes back, and what it means for the request in flight.

use std::io;

use crate::clock::{Clock, Nanos};
use crate::outcome::Outcome;
use crate::protocol::{Answer, BodyCheck, Fed, Protocol, ProtocolError};
use crate::slot::State;
use crate::transport::{Reading, Received, Token, Transport};
use crate::worker::Worker;

impl<P: Protocol, T: Transport, C: Clock> Worker<P, T, C> {
    /// Reads what an event announced, to its end.
    #[inline]
    pub(crate) fn read(&mut self, token: Token, mut reading: Reading) {
        let index = token.slot;
        loop {
            let slot = &mut self.slots[index as usize];
            let fed = match self.transport.received(token, &mut reading) {
                Received::Bytes(bytes) => {
                    if slot.state != State::Busy {
                        // Nobody asked for these: surplus of an answer, or a farewell such as 408 before a close.
                        return self.close(index);
                    }
                    slot.received = true;
                    match slot.protocol.feed(bytes, self.orders.expected.as_deref()) {
                        Ok(Fed::More) => continue,
                        Ok(Fed::Done { consumed, answer }) => (answer, bytes.len() - consumed),
                        Err(error) => return self.misunderstood(index, &error),
                    }
                }
                Received::Nothing => break,
                Received::Closed => return self.closed(index),
                Received::Failed(errno) => return self.broken(index, errno),
            };
            if !self.answered(index, &fed.0, fed.1) {
                return;
            }
        }
        let slot = &self.slots[index as usize];
        if slot.state == State::Answered {
            // The event is read to its end, so no close was announced with the answer: the connection can go on.
            self.next(index, slot.free_since);
        }
    }

    /// An answer is complete. Returns whether its connection can be used again.
    #[inline]
    fn answered(&mut self, index: u32, answer: &Answer, surplus: usize) -> bool {
        let now = self.clock.now();
        let outcome = if surplus > 0 {
            Outcome::BadProtocol
        } else {
            self.judge(answer)
        };
        let slot = &mut self.slots[index as usize];
        self.record.landed(now);
        self.record.settle(slot.due, Some(slot.since), now, outcome);
        if slot.sending && self.record.span.holds(slot.due) {
            self.record.answered_early += 1;
        }
        if !slot.answered {
            slot.answered = true;
            self.record.connections.answered += 1;
        }
        slot.reused = true;
        slot.failures = 0;
        slot.free_since = now;
        slot.state = if slot.sending {
            State::Finishing
        } else {
            State::Answered
        };
        if outcome != Outcome::Ok {
            self.show(outcome, answer, surplus);
        }
        let usable = surplus == 0 && answer.keep_alive && self.orders.keepalive;
        if !usable {
            self.retire(index, surplus > 0, now);
        }
        usable
    }

    #[inline]
    fn judge(&self, answer: &Answer) -> Outcome {
        let right_status = match self.orders.status {
            Some(status) => answer.status == status,
            None => (200..300).contains(&answer.status),
        };
        match answer.body {
            _ if !right_status => Outcome::BadStatus,
            BodyCheck::Wrong => Outcome::WrongBody,
            _ => Outcome::Ok,
        }
    }

    #[cold]
    fn show(&mut self, outcome: Outcome, answer: &Answer, surplus: usize) {
        let wanted = self
            .orders
            .status
            .map_or("2xx".into(), |status| status.to_string());
        let right = self.orders.expected.as_ref().map_or(0, |body| body.len());
        self.record.example(outcome, || match outcome {
            Outcome::BadStatus => format!("status {} where {wanted} is right", answer.status),
            Outcome::WrongBody if answer.body_len == right as u64 => {
                format!("the body has the right length, {right} bytes, and is another")
            }
            Outcome::WrongBody => format!(
                "a body of {} bytes where {right} bytes are right",
                answer.body_len
            ),
            _ => format!(
                "{surplus} bytes more than the answer (status {}) said it has",
                answer.status
            ),
        });
    }

    #[cold]
    fn misunderstood(&mut self, index: u32, error: &ProtocolError) {
        self.fail(index, Outcome::BadProtocol, || error.to_string());
    }

    /// The server has closed its side.
    fn closed(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if slot.state != State::Busy {
            return self.close(index);
        }
        match slot.protocol.eof(self.orders.expected.as_deref()) {
            Ok(Some(answer)) => {
                if self.answered(index, &answer, 0) {
                    self.close(index);
                }
            }
            Ok(None) => self.lost(index, "the server closed the connection without an answer"),
            Err(error @ ProtocolError::EarlyClose { .. }) => {
                self.fail(index, Outcome::Reset, || error.to_string());
            }
            Err(error) => self.misunderstood(index, &error),
        }
    }

    /// The connection broke.
    #[cold]
    fn broken(&mut self, index: u32, errno: i32) {
        let slot = &self.slots[index as usize];
        let error = io::Error::from_raw_os_error(errno);
        match slot.state {
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
    /// once, only where the method is idempotent, with the due time kept. It shows in `reopened`. The second time, and
    /// on a connection that never served, it is a `reset`.
    fn lost(&mut self, index: u32, why: &str) {
        let slot = &self.slots[index as usize];
        if !(slot.reused && self.orders.idempotent && !slot.again) {
            return self.fail(index, Outcome::Reset, || why.to_owned());
        }
        let now = self.clock.now();
        self.record.landed(now);
        self.agenda.send_again(slot.due);
        self.retire(index, false, now);
    }

    /// The request in flight has failed, and its connection with it.
    #[cold]
    pub(crate) fn fail(&mut self, index: u32, outcome: Outcome, why: impl FnOnce() -> String) {
        let now = self.clock.now();
        let slot = &self.slots[index as usize];
        self.record.landed(now);
        self.record.settle(slot.due, Some(slot.since), now, outcome);
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
