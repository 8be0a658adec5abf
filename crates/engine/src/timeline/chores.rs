//! What has to be done now and then and can wait a moment: slices to hand on, looks at sockets, time-outs.
//!
//! It takes some 50 us, and slices of a round rate end when requests are due: it is done right after a request, or when
//! none is due for a while.

use std::io;

use super::{GLANCE, Phase};
use crate::clock::{Clock, MILLISECOND, Nanos, SECOND};
use crate::outcome::Outcome;
use crate::protocol::Protocol;
use crate::slot::State;
use crate::transport::{Transport, os};
use crate::worker::Worker;

/// None is due for so long.
const ROOM: Nanos = MILLISECOND;
/// Connections asked of at each look, 1 us each.
const LOOKS: usize = 16;

impl<P: Protocol, T: Transport<Medium = P::Medium>, C: Clock> Worker<P, T, C> {
    /// Whether nothing falls due soon after `moment`.
    pub(super) fn has_room(&self, moment: Nanos) -> bool {
        moment.saturating_add(ROOM) <= self.agenda.next_due()
    }

    /// When there is something to do that can wait until there is room for it.
    pub(super) fn next_chore(&self, phase: &Phase) -> Nanos {
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
    pub(super) fn do_chores(&mut self, phase: &mut Phase, now: Nanos) {
        if phase.cpu_at_start.is_none() && now >= self.record.span.start {
            phase.cpu_at_start = Some(os::cpu_time());
            phase.scheduled_at_start = os::scheduled();
            phase.awake.take();
        }
        if now >= self.record.next_turn() {
            self.record.turn(now);
            phase.priority.look(now);
        }
        if now >= phase.next_expiry {
            phase.next_expiry = self.expire(now);
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
            if let Some(info) = self.transport.look(number) {
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
                    let why = self.transport.delay(slot.token(index), limit);
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
