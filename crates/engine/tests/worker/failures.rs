//! Everything that can go wrong with a request, each with its own outcome.

use crate::load::{Load, RIGHT, after, at, near};
use velodrome_engine::clock::MILLISECOND;
use velodrome_engine::outcome::Outcome;
use velodrome_engine::transport::simulated::Act;

#[test]
fn each_failure_has_its_own_outcome_and_an_example() {
    let reset = libc::ECONNRESET;
    let rows: [(Outcome, &str, Vec<Act>); 9] = [
        (
            Outcome::BadStatus,
            "status 500",
            vec![Act::Send(
                b"HTTP/1.1 500 X\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            )],
        ),
        (
            Outcome::WrongBody,
            "is another",
            vec![Act::Send(
                b"HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nko".to_vec(),
            )],
        ),
        (
            Outcome::WrongBody,
            "3 bytes",
            vec![Act::Send(
                b"HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\nok!".to_vec(),
            )],
        ),
        (
            Outcome::BadProtocol,
            "not HTTP",
            vec![Act::Send(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec())],
        ),
        (
            Outcome::BadProtocol,
            "5 bytes more",
            vec![Act::Send([RIGHT, b"extra"].concat())],
        ),
        (Outcome::Reset, "reset", vec![Act::Break(reset)]),
        (Outcome::Reset, "without an answer", vec![Act::Close]),
        (
            Outcome::Reset,
            "in the middle",
            vec![Act::Send(RIGHT[..RIGHT.len() - 1].to_vec()), Act::Close],
        ),
        (Outcome::Timeout, "no answer within 2 s", vec![]),
    ];
    for (outcome, text, acts) in rows {
        let load = Load {
            requests: Some(1),
            ..Load::default()
        };
        let record = load.run(|_, now| {
            acts.iter()
                .map(|act| (now + MILLISECOND, act.clone()))
                .collect()
        });
        assert_eq!(
            (record.outcomes.of(outcome), record.outcomes.total()),
            (1, 1),
            "{acts:?}"
        );
        assert_eq!(record.examples.len(), 1, "{acts:?}");
        assert!(
            record.examples[0].1.contains(text),
            "{:?} for {acts:?}",
            record.examples
        );
        let timed = if outcome.is_timed() { 1 } else { 0 };
        assert_eq!(record.due.histogram.len(), timed, "{acts:?}");
    }
}

#[test]
fn a_closed_port_is_refused_and_not_hammered() {
    let refuses = || Act::Break(libc::ECONNREFUSED);
    let record = Load {
        accept: refuses(),
        ..Load::default()
    }
    .run(|_, _| vec![]);
    assert_eq!(
        record.outcomes.of(Outcome::Refused),
        record.outcomes.total()
    );
    // Pauses of 10, 20, 40 … 640 ms, then 1 s each.
    assert!(
        (10..25).contains(&record.outcomes.total()),
        "{:?}",
        record.outcomes
    );
    let load = Load {
        accept: refuses(),
        rate: Some(50.0),
        connections: 10,
        ..Load::default()
    };
    let record = load.run(|_, _| vec![]);
    assert_eq!(
        record.outcomes.of(Outcome::Refused),
        500,
        "each due request makes one attempt"
    );
}

#[test]
fn an_idle_connection_that_closes_as_we_send_is_tried_again_once() {
    // Every third request meets a close; on the fresh connection it is answered.
    let load = Load {
        rate: Some(10.0),
        ..Load::default()
    };
    let record = load.run(|n, now| {
        if n % 3 == 2 {
            vec![(now, Act::Close)]
        } else {
            after(MILLISECOND, now)
        }
    });
    assert_eq!(
        (record.outcomes.of(Outcome::Ok), record.outcomes.total()),
        (100, 100)
    );
    assert!(
        record.connections.reopened >= 33,
        "{:?}",
        record.connections
    );
    assert_eq!(record.resent, record.connections.reopened);
    // A server that closes without an answer every time is not hidden.
    let record = Load {
        requests: Some(5),
        ..Load::default()
    }
    .run(|n, now| {
        if n == 0 {
            after(MILLISECOND, now)
        } else {
            vec![(now, Act::Close)]
        }
    });
    assert_eq!(
        (
            record.outcomes.of(Outcome::Ok),
            record.outcomes.of(Outcome::Reset)
        ),
        (1, 4)
    );
    assert_eq!(
        record.resent, 1,
        "the others met a fresh connection's close"
    );
}

#[test]
fn a_close_that_cannot_have_crossed_the_request_is_its_end() {
    let crash = Act::Break(libc::ECONNRESET);
    for (age, end, resent) in [
        (MILLISECOND, Act::Close, 1),
        (9 * MILLISECOND, crash.clone(), 1),
        (11 * MILLISECOND, Act::Close, 0),
        (300 * MILLISECOND, Act::Close, 0),
        (1_900 * MILLISECOND, crash, 0),
    ] {
        let load = Load {
            requests: Some(6),
            ..Load::default()
        };
        let record = load.run(|n, now| match n {
            3 => vec![(now + age, end.clone())],
            _ => after(MILLISECOND, now),
        });
        let came = (
            record.outcomes.of(Outcome::Ok),
            record.outcomes.of(Outcome::Reset),
            record.resent,
        );
        assert_eq!(came, (5 + resent, 1 - resent, resent), "after {age} ns");
        assert_eq!(record.connections.reopened, 1);
    }
}

#[test]
fn a_request_that_is_sent_again_is_as_old_as_when_it_was_sent_first() {
    for rate in [None, Some(100.0)] {
        let load = Load {
            requests: Some(6),
            rate,
            ..Load::default()
        };
        let record = load.run(|n, now| match n {
            3 => vec![(now + 8 * MILLISECOND, Act::Close)],
            _ => after(MILLISECOND, now),
        });
        assert_eq!((record.outcomes.of(Outcome::Ok), record.resent), (6, 1));
        for times in [&record.due, &record.sent] {
            assert!(near(at(times, 1.0), 9.0), "{} at {rate:?}", at(times, 1.0));
        }
        assert!(near(at(&record.sent, 0.5), 1.0));
    }
    // It is given up when it is too old, however often it was sent.
    let load = Load {
        requests: Some(4),
        ..Load::default()
    };
    let record = load.run(|n, now| match n {
        3 => vec![(now + 8 * MILLISECOND, Act::Close)],
        4 => vec![],
        _ => after(MILLISECOND, now),
    });
    assert_eq!(record.outcomes.of(Outcome::Timeout), 1);
    let age = at(&record.sent, 1.0);
    assert!((2_000.0..2_020.0).contains(&age), "{age}");
}

#[test]
fn a_server_that_closes_after_each_answer_is_reconnected() {
    let closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let load = Load {
        requests: Some(9),
        ..Load::default()
    };
    let record = load.run(|_, now| vec![(now, Act::Send(closing.to_vec())), (now, Act::Close)]);
    assert_eq!(
        (record.outcomes.of(Outcome::Ok), record.connections.reopened),
        (9, 8)
    );
    let delimited = b"HTTP/1.0 200 OK\r\n\r\nok";
    let load = Load {
        requests: Some(9),
        ..Load::default()
    };
    let record =
        load.run(|_, now| vec![(now, Act::Send(delimited.to_vec())), (now + 5, Act::Close)]);
    assert_eq!(
        (record.outcomes.of(Outcome::Ok), record.connections.reopened),
        (9, 8)
    );
}

#[test]
fn without_keep_alive_each_request_has_its_connection() {
    let load = Load {
        requests: Some(20),
        keepalive: false,
        connections: 2,
        ..Load::default()
    };
    let record = load.run(|_, now| after(MILLISECOND, now));
    assert_eq!(record.outcomes.of(Outcome::Ok), 20);
    assert_eq!(
        (record.connections.opened, record.connections.reopened),
        (2, 18)
    );
}

#[test]
fn an_answer_before_the_request_is_out_is_counted_and_the_connection_goes_on() {
    let load = Load {
        requests: Some(4),
        ..Load::default()
    };
    let record = load.run(|_, now| {
        vec![
            (now + MILLISECOND, Act::Send(RIGHT.to_vec())),
            (now + 2 * MILLISECOND, Act::Take),
        ]
    });
    assert_eq!(
        (record.outcomes.of(Outcome::Ok), record.answered_early),
        (4, 4)
    );
    assert_eq!(record.connections.reopened, 0);
}

#[test]
fn what_is_not_answered_when_the_drain_ends_is_unfinished() {
    let load = Load {
        rate: Some(2.0),
        connections: 1,
        ..Load::default()
    };
    // Answers after 800 ms: 12 s of work fall due in 10 s … the server never catches up within 1 s of drain.
    let record = load.run(|_, now| after(800 * MILLISECOND, now));
    assert_eq!(record.outcomes.total(), 20);
    assert_eq!(record.outcomes.of(Outcome::Ok), 13);
    assert_eq!(
        record.outcomes.of(Outcome::Unfinished),
        7,
        "one in flight, six that waited: none vanished"
    );
    assert_eq!(record.due.histogram.len(), 20);
    assert_eq!(
        record.sent.histogram.len(),
        14,
        "what was never sent has no latency from sent"
    );
}

#[test]
fn a_connection_that_never_comes_times_out() {
    let load = Load {
        rate: Some(1.0),
        accept: Act::Take,
        connections: 3,
        ..Load::default()
    };
    let record = load.run(|_, _| vec![]);
    assert_eq!(record.outcomes.total(), 10);
    assert!(
        record.outcomes.of(Outcome::Timeout) >= 7,
        "{:?}",
        record.outcomes
    );
}
