//! When calls are due, sent and answered.

use velodrome_engine::clock::{MILLISECOND, Nanos, SECOND};
use velodrome_engine::outcome::Outcome;

use super::{Calls, hi};
use crate::load::{START, at, near};
use crate::peer::Does;

fn stalls(now: Nanos) -> Does {
    let frozen = (START + 2 * SECOND..START + 3 * SECOND).contains(&now);
    match frozen {
        true => hi(START + 3 * SECOND - now + MILLISECOND),
        false => hi(MILLISECOND),
    }
}

#[test]
fn a_stalled_server_shows_in_due_latency_and_not_in_sent_latency_over_http2_too() {
    let load = Calls {
        rate: Some(100.0),
        ..Calls::default()
    };
    let (record, seen) = load.run(|_, now| stalls(now));
    assert_eq!(
        record.outcomes.of(Outcome::Ok),
        1_000,
        "{:?}",
        record.examples
    );
    assert_eq!(record.outcomes.total(), 1_000, "nothing was skipped");
    assert_eq!((seen.connections, seen.calls), (1, 1_000));
    assert_eq!(
        seen.timeouts[0], "2000000u",
        "the server knows the deadline"
    );
    // One call met the stall; 99 fell due behind it and waited for the only stream.
    assert!(
        near(at(&record.sent, 0.99), 1.0),
        "{}",
        at(&record.sent, 0.99)
    );
    assert!(
        near(at(&record.sent, 1.0), 1001.0),
        "{}",
        at(&record.sent, 1.0)
    );
    let p95 = at(&record.due, 0.95);
    assert!((450.0..600.0).contains(&p95), "{p95}");
    let p99 = at(&record.due, 0.99);
    assert!((890.0..920.0).contains(&p99), "{p99}");
    assert_eq!(record.lag.max, 0, "it was not the generator");
    assert!(record.capped >= 99, "{}", record.capped);
}

#[test]
fn with_streams_to_grow_into_the_stall_shows_in_both_and_the_connection_stays_one() {
    let load = Calls {
        rate: Some(100.0),
        streams: 200,
        ..Calls::default()
    };
    let (record, seen) = load.run(|_, now| stalls(now));
    assert_eq!(
        record.outcomes.of(Outcome::Ok),
        1_000,
        "{:?}",
        record.examples
    );
    assert!(near(at(&record.due, 0.95), at(&record.sent, 0.95)));
    assert_eq!(record.capped, 0);
    assert_eq!(seen.connections, 1);
    assert_eq!(
        (record.connections.opened, record.connections.answered),
        (1, 1)
    );
}

#[test]
fn a_closed_loop_keeps_every_stream_of_every_connection_busy() {
    let load = Calls {
        connections: 3,
        streams: 4,
        ..Calls::default()
    };
    let (record, seen) = load.run(|_, _| hi(100 * MILLISECOND));
    assert_eq!(
        record.outcomes.of(Outcome::Ok),
        1_200,
        "{:?}",
        record.examples
    );
    assert_eq!(record.flight_time(), u128::from(12 * 10 * SECOND));
    assert_eq!((record.connections.opened, seen.connections), (3, 3));
}
