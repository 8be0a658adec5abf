//! Whether the close of a connection and a request crossed on the way, or the server left a request unanswered.
//!
//! A server that closes an idle connection has not seen the request that is under way to it, and to send it again does no
//! harm and hides nothing. One that closes after it has worked on a request (it crashed, or was killed by a watchdog) has
//! failed that request. All that tells the two apart from here is how old the request was when the close came.

use crate::clock::{MILLISECOND, Nanos};

/// What may pass beside the way itself. The server's event loop, or thread, that has decided to close takes its turn to do
/// so, and meanwhile the request lies in its socket unread (the kernel then answers it with RST); whoever has something to
/// do waits for a CPU of a busy machine for a time slice, 3 to 4 ms; and pauses of a virtual machine are 3 to 9 ms. Hardly
/// a request is worked on, failed and its process gone within this; where one is, it counts in `resent`.
const TURN: Nanos = 10 * MILLISECOND;

/// Whether a connection that ended `age` after a request was sent may have been closed before the server had it.
///
/// A close that was decided before the request came is here within one round trip of sending: FIN is on its way already,
/// and RST sets out when the request arrives. Two are allowed, because the round trip known is the shortest that the kernel
/// has seen (`TCP_INFO`), and queues on the way make it longer. The smoothed one would be no measure: an acknowledgement
/// may wait for the answer (on Linux up to 200 ms), so the server's work, the very thing to be told apart, is in it. None:
/// the kernel tells no round trip (a unix socket, another system), and the way counts as nothing.
pub(crate) fn crossed(age: Nanos, round_trip: Option<Nanos>) -> bool {
    age <= TURN + 2 * round_trip.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_crosses_a_request_that_is_as_old_as_two_ways_and_a_turn_at_most() {
        let rows = [
            (0, None, true),
            (TURN, None, true),
            (TURN + 1, None, false),
            (TURN + 1, Some(20_000), true),
            (300 * MILLISECOND, Some(20_000), false),
            (300 * MILLISECOND, Some(160 * MILLISECOND), true),
            (5_000 * MILLISECOND, Some(160 * MILLISECOND), false),
        ];
        for (age, round_trip, wanted) in rows {
            assert_eq!(crossed(age, round_trip), wanted, "{age} {round_trip:?}");
        }
    }
}
