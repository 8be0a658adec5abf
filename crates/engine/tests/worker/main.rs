//! The worker on a simulated clock: what it measures, to the nanosecond, without waiting.

mod calls;
mod chat;
mod failures;
mod load;
mod peer;
mod phases;
mod sockets;

use load::{Load, START, after, at, near};
use velodrome_engine::clock::{MILLISECOND, SECOND};
use velodrome_engine::outcome::Outcome;
use velodrome_engine::pace::Step;

#[test]
fn a_stalled_server_shows_in_due_latency_and_not_in_sent_latency() {
    let load = Load {
        rate: Some(100.0),
        ..Load::default()
    };
    let record = load.run(|_, now| {
        let frozen = (START + 2 * SECOND..START + 3 * SECOND).contains(&now);
        if frozen {
            after(START + 3 * SECOND - now + MILLISECOND, now)
        } else {
            after(MILLISECOND, now)
        }
    });
    assert_eq!(record.outcomes.of(Outcome::Ok), 1_000);
    assert_eq!(record.outcomes.total(), 1_000, "nothing was skipped");
    // One request met the stall; 99 fell due behind it and waited for the only connection.
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
    assert!(
        (450.0..600.0).contains(&at(&record.due, 0.95)),
        "{}",
        at(&record.due, 0.95)
    );
    assert!(
        (890.0..920.0).contains(&at(&record.due, 0.99)),
        "{}",
        at(&record.due, 0.99)
    );
    // It was the server's doing, and the generator does not take the blame.
    assert_eq!(record.lag.max, 0);
    assert!(record.capped >= 99, "{}", record.capped);
}

#[test]
fn with_connections_to_grow_into_the_stall_shows_in_both() {
    let load = Load {
        rate: Some(100.0),
        connections: 200,
        ..Load::default()
    };
    let record = load.run(|_, now| {
        let frozen = (START + 2 * SECOND..START + 3 * SECOND).contains(&now);
        if frozen {
            after(START + 3 * SECOND - now + MILLISECOND, now)
        } else {
            after(MILLISECOND, now)
        }
    });
    assert!(near(at(&record.due, 0.95), at(&record.sent, 0.95)));
    assert_eq!(record.capped, 0);
    assert_eq!(
        record.connections.opened, 101,
        "one per request that met the stall"
    );
}

#[test]
fn a_closed_loop_keeps_every_connection_busy() {
    let record = Load {
        connections: 4,
        ..Load::default()
    }
    .run(|_, now| after(100 * MILLISECOND, now));
    assert_eq!(record.outcomes.of(Outcome::Ok), 400);
    assert_eq!(
        record.flight_time(),
        u128::from(4 * 10 * SECOND),
        "four in flight all the time"
    );
    assert_eq!(
        record.ok_in_span, 396,
        "the last four arrive at the end of the span, outside it"
    );
    assert_eq!(
        (
            record.connections.opened,
            record.connections.reopened,
            record.connections.answered
        ),
        (4, 0, 4)
    );
}

#[test]
fn the_warm_up_is_recorded_nowhere_but_its_late_answers_count_as_throughput() {
    let load = Load {
        rate: Some(10.0),
        warmup: SECOND,
        connections: 20,
        ..Load::default()
    };
    let record = load.run(|n, now| {
        after(
            if n < 10 {
                500 * MILLISECOND
            } else {
                MILLISECOND
            },
            now,
        )
    });
    assert_eq!(record.outcomes.total(), 100);
    assert!(
        near(at(&record.due, 1.0), 1.0),
        "no latency of the warm-up: {}",
        at(&record.due, 1.0)
    );
    assert_eq!(
        record.ok_in_span, 105,
        "five requests of the warm-up were answered in the span"
    );
}

#[test]
fn a_count_ends_the_load_at_exactly_that_many() {
    for rate in [None, Some(1_000.0)] {
        let load = Load {
            requests: Some(777),
            rate,
            connections: 10,
            ..Load::default()
        };
        let record = load.run(|_, now| after(MILLISECOND, now));
        assert_eq!(
            (record.outcomes.of(Outcome::Ok), record.outcomes.total()),
            (777, 777),
            "{rate:?}"
        );
    }
}

#[test]
fn each_step_of_a_schedule_is_told_by_itself() {
    let step = |rate| Step {
        from: rate,
        to: rate,
        length: 2 * SECOND,
    };
    let load = Load {
        steps: [50.0, 100.0, 200.0, 25.0, 50.0].map(step).to_vec(),
        ..Load::default()
    };
    // One connection and 8 ms each: 125 a second and no more.
    let record = load.run(|_, now| after(8 * MILLISECOND, now));
    let steps: Vec<_> = record.steps.each().collect();
    let due: Vec<u64> = steps
        .iter()
        .map(|step| step.share.outcomes.total())
        .collect();
    assert_eq!(due, [100, 200, 400, 50, 100]);
    assert_eq!(record.outcomes.total(), 850);
    let answered: Vec<u64> = steps.iter().map(|step| step.answered).collect();
    assert_eq!(
        answered,
        [100, 200, 249, 201, 100],
        "151 of the third were answered in the fourth"
    );
    assert!(
        near(at(&steps[1].share.due, 1.0), 8.0),
        "{}",
        at(&steps[1].share.due, 1.0)
    );
    // The last of the third step waits behind 150 others.
    let worst = at(&steps[2].share.due, 1.0);
    assert!((1195.0..1215.0).contains(&worst), "{worst}");
    assert!(near(at(&steps[2].share.sent, 1.0), 8.0));
    assert!(
        near(at(&steps[4].share.due, 1.0), 8.0),
        "the backlog is gone"
    );
}
