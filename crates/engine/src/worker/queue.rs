//! Which request comes next on one thread: what has fallen due, what waits for a connection, what is sent again.

use std::collections::VecDeque;

use crate::clock::Nanos;
use crate::pace::Arrivals;
use crate::record::Span;

/// A request about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was due.
    pub due: Nanos,
    /// It was sent before, and the server surely or by all appearance did nothing with it.
    pub again: Option<Again>,
}

/// A request that was sent in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// Its number among those of its worker: it is the same one again.
    pub number: u64,
    /// When it was sent first, from which its latency counts.
    pub since: Nanos,
}

impl Request {
    /// When it was sent first, if it was.
    pub fn sent(&self) -> Option<Nanos> {
        self.again.map(|again| again.since)
    }
}

/// See the module. Closed loop: a request is due when a slot has nothing to do. Open loop: when the pace says so; the
/// requests that are due and unsent are the stretch between two cursors on the same arrivals, so none is stored.
#[derive(Debug)]
pub struct RequestQueue {
    pace: Option<Cursors>,
    origin: Nanos,
    start: Nanos,
    end: Nanos,
    /// Measured requests not yet due; None where time ends the load.
    left: Option<u64>,
    waiting: u64,
    again: VecDeque<Request>,
}

#[derive(Debug)]
struct Cursors {
    due: Arrivals,
    send: Arrivals,
}

impl RequestQueue {
    /// The queue of a thread: `arrivals` is None for a closed loop, `requests` None where time ends the load.
    pub fn new(arrivals: Option<Arrivals>, requests: Option<u64>) -> RequestQueue {
        let pace = arrivals.map(|arrivals| Cursors {
            due: arrivals.clone(),
            send: arrivals,
        });
        RequestQueue {
            pace,
            origin: 0,
            start: Nanos::MAX,
            // Before the load begins nothing falls due.
            end: 0,
            left: requests,
            waiting: 0,
            again: VecDeque::new(),
        }
    }

    /// The load begins at `origin`.
    pub fn begin(&mut self, origin: Nanos, span: Span) {
        (self.origin, self.start, self.end) = (origin, span.start, span.end);
    }

    /// Nothing falls due from `now` on.
    pub fn stop(&mut self, now: Nanos) {
        self.end = self.end.min(now);
    }

    /// Whether this is an open loop.
    pub fn is_open(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether requests may still fall due at `now` or later.
    pub fn is_running(&self, now: Nanos) -> bool {
        if self.left == Some(0) {
            return false;
        }
        match &self.pace {
            Some(cursors) => self.origin + cursors.due.due() < self.end,
            None => now < self.end,
        }
    }

    /// Whether `connecting` connections under way are all that a closed loop's remaining requests can use.
    pub fn is_served_by(&self, connecting: u64) -> bool {
        self.left
            .is_some_and(|left| left + self.waiting() <= connecting)
    }

    /// When the next request of an open loop falls due; `Nanos::MAX` when none will.
    #[inline]
    pub fn next_due(&self) -> Nanos {
        let Some(cursors) = &self.pace else {
            return Nanos::MAX;
        };
        let due = self.origin + cursors.due.due();
        if due < self.end && self.left != Some(0) {
            due
        } else {
            Nanos::MAX
        }
    }

    /// The request of [`RequestQueue::next_due`] has fallen due and waits.
    #[inline]
    pub fn fall_due(&mut self) {
        let Some(cursors) = &mut self.pace else {
            return;
        };
        let due = self.origin + cursors.due.due();
        cursors.due.advance();
        self.waiting += 1;
        if due >= self.start
            && let Some(left) = &mut self.left
        {
            *left -= 1;
        }
    }

    /// Requests that are due and have no connection.
    #[inline]
    pub fn waiting(&self) -> u64 {
        self.waiting + self.again.len() as u64
    }

    /// The next request for a connection that has been free since `free_since`; None: there is none to send.
    #[inline]
    pub fn take(&mut self, free_since: Nanos, now: Nanos) -> Option<Request> {
        if let Some(request) = self.again.pop_front() {
            return Some(request);
        }
        if let Some(cursors) = &mut self.pace {
            self.waiting = self.waiting.checked_sub(1)?;
            let due = self.origin + cursors.send.due();
            cursors.send.advance();
            return Some(Request { due, again: None });
        }
        if now >= self.end || self.left == Some(0) {
            return None;
        }
        if free_since >= self.start
            && let Some(left) = &mut self.left
        {
            *left -= 1;
        }
        Some(Request {
            due: free_since,
            again: None,
        })
    }

    /// Puts a request that was sent in vain at the head of those that wait.
    pub fn send_again(&mut self, due: Nanos, again: Again) {
        let again = Some(again);
        self.again.push_back(Request { due, again });
    }

    /// The next of the requests that wait when all is over.
    pub fn abandon(&mut self) -> Option<Request> {
        (self.waiting() > 0).then(|| self.take(Nanos::MAX, Nanos::MAX))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::{Schedule, Spread};

    const SPAN: Span = Span {
        start: 2_000,
        end: 4_000,
    };
    const SEVENTH: Again = Again {
        number: 7,
        since: 1_700,
    };

    fn open(requests: Option<u64>) -> RequestQueue {
        let mut queue = RequestQueue::new(
            Some(Arrivals::new(
                Spread::Constant,
                Schedule::constant(1e6),
                1,
                0,
                1,
            )),
            requests,
        );
        queue.begin(1_000, SPAN);
        queue
    }

    #[test]
    fn an_open_loop_forgets_no_request_that_waits() {
        let mut queue = open(None);
        assert_eq!(queue.take(0, 0), None, "nothing is due yet");
        assert_eq!(queue.next_due(), 1_000);
        queue.fall_due();
        queue.fall_due();
        queue.fall_due();
        assert_eq!(
            (queue.waiting(), queue.next_due()),
            (3, Nanos::MAX),
            "4 000 is the end"
        );
        let dues: Vec<Nanos> = std::iter::from_fn(|| queue.take(9, 9))
            .map(|request| request.due)
            .collect();
        assert_eq!(dues, [1_000, 2_000, 3_000]);
        assert!(!queue.is_running(3_500));
    }

    #[test]
    fn a_count_counts_measured_requests_only() {
        let mut queue = open(Some(1));
        queue.fall_due();
        assert_eq!(
            queue.next_due(),
            2_000,
            "the request of the warm-up did not count"
        );
        queue.fall_due();
        assert_eq!(queue.next_due(), Nanos::MAX);
    }

    #[test]
    fn a_closed_loop_is_due_when_the_slot_is_free_and_stops_at_the_end() {
        let mut queue = RequestQueue::new(None, None);
        assert_eq!(queue.take(0, 0), None, "not begun");
        queue.begin(1_000, SPAN);
        assert_eq!(
            queue.take(1_500, 1_600),
            Some(Request {
                due: 1_500,
                again: None
            })
        );
        assert_eq!(queue.take(3_900, 4_000), None);
        queue.send_again(1_500, SEVENTH);
        assert_eq!(
            queue.take(3_900, 4_100),
            Some(Request {
                due: 1_500,
                again: Some(SEVENTH)
            })
        );
    }

    #[test]
    fn what_waits_at_the_end_is_abandoned_one_by_one() {
        let mut queue = open(None);
        queue.fall_due();
        queue.send_again(700, SEVENTH);
        assert_eq!(
            std::iter::from_fn(|| queue.abandon())
                .map(|request| (request.due, request.sent()))
                .collect::<Vec<_>>(),
            [(700, Some(1_700)), (1_000, None)]
        );
    }
}
