//! The worker on a simulated clock: every outcome, to the nanosecond, without waiting.

use std::sync::Arc;

use velodrome_engine::agenda::Agenda;
use velodrome_engine::clock::{self, MILLISECOND, Nanos, SECOND};
use velodrome_engine::outcome::Outcome;
use velodrome_engine::pace::{Arrivals, Spread};
use velodrome_engine::protocol::Http1;
use velodrome_engine::record::Record;
use velodrome_engine::timeline::Course;
use velodrome_engine::transport::Token;
use velodrome_engine::transport::simulated::{Act, Script, Simulated};
use velodrome_engine::worker::{Orders, Worker};

const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// When the timeline begins.
const START: Nanos = SECOND;

/// A server whose answer to request `n` (counted over all connections) is told by a function.
struct Server<F> {
    accept: Act,
    requests: u64,
    answer: F,
}

impl<F: FnMut(u64, Nanos) -> Vec<(Nanos, Act)>> Script for Server<F> {
    fn connection(&mut self, _: Token, now: Nanos) -> Vec<(Nanos, Act)> {
        vec![(now, self.accept.clone())]
    }

    fn request(&mut self, _: Token, now: Nanos) -> Vec<(Nanos, Act)> {
        self.requests += 1;
        (self.answer)(self.requests - 1, now)
    }
}

/// A load of 10 s at most with a time-out of 2 s and a drain of 1 s, changed by each test as it needs.
struct Load {
    rate: Option<f64>,
    requests: Option<u64>,
    connections: usize,
    keepalive: bool,
    warmup: Nanos,
    accept: Act,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            rate: None,
            requests: None,
            connections: 1,
            keepalive: true,
            warmup: 0,
            accept: Act::Accept,
        }
    }
}

impl Load {
    fn run(self, answer: impl FnMut(u64, Nanos) -> Vec<(Nanos, Act)>) -> Record {
        let orders = Orders {
            request: Arc::from(&b"GET / HTTP/1.1\r\n\r\n"[..]),
            head: false,
            idempotent: true,
            expected: Some(Arc::from(&b"ok"[..])),
            status: None,
            check_every: 1,
            keepalive: self.keepalive,
            timeout: 2 * SECOND,
        };
        let clock = clock::Simulated::default();
        // A real clock is never at 0, which the start of the timeline uses for «not yet».
        clock.advance_to(START);
        let transport = Simulated::new(
            clock.clone(),
            Server {
                accept: self.accept,
                requests: 0,
                answer,
            },
        );
        let arrivals = self
            .rate
            .map(|rate| Arrivals::new(Spread::Constant, rate, 1, 0, 1));
        let agenda = Agenda::new(arrivals, self.requests);
        let span = self.requests.is_none().then_some(10 * SECOND);
        let course = Course::new(self.warmup, span, SECOND, 1);
        let record = Record::new(0, 5, None);
        Worker::<Http1, _, _>::new(orders, transport, clock, agenda, record, self.connections)
            .run(&course)
            .unwrap()
    }
}

fn after(pause: Nanos, now: Nanos) -> Vec<(Nanos, Act)> {
    vec![(now + pause, Act::Send(RIGHT.to_vec()))]
}

fn at(durations: &velodrome_engine::record::Durations, quantile: f64) -> f64 {
    durations.histogram.value_at_quantile(quantile) as f64 / 1e6
}

/// Compares with the three digits a histogram keeps.
fn near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= wanted * 0.002 + 1e-6
}

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
        record.flight_time,
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
