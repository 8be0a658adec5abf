//! gRPC calls on the simulated clock, against an HTTP/2 server by others.

use std::cell::RefCell;
use std::rc::Rc;

use h2::Reason;
use velodrome_engine::agenda::Agenda;
use velodrome_engine::clock::{self, MILLISECOND, Nanos, SECOND};
use velodrome_engine::course::Course;
use velodrome_engine::outcome::Outcome;
use velodrome_engine::pace::{Arrivals, Spread};
use velodrome_engine::protocol::grpc::{Ask, Grpc, Kind, frame, head};
use velodrome_engine::record::Record;
use velodrome_engine::transport::multiplexed::Multiplexed;
use velodrome_engine::transport::simulated::Simulated;
use velodrome_engine::worker::{Orders, Worker};

use crate::load::{START, at, near};
use crate::peer::{Does, Peer, Seen};

/// A load of calls of 10 s at most with a time-out of 2 s and a drain of 1 s.
struct Calls {
    kind: Kind,
    messages: Vec<&'static [u8]>,
    rate: Option<f64>,
    requests: Option<u64>,
    connections: usize,
    streams: u32,
    /// Streams at once that the server allows.
    allowed: u32,
    keepalive: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Calls {
            kind: Kind::Unary,
            messages: vec![b"world"],
            rate: None,
            requests: None,
            connections: 1,
            streams: 1,
            allowed: 1000,
            keepalive: true,
        }
    }
}

fn hi(after: Nanos) -> Does {
    Does::Answer(after, vec![b"hi"], 0)
}

impl Calls {
    fn run(self, answer: impl FnMut(u64, Nanos) -> Does) -> (Record, Seen) {
        let timeout = 2 * SECOND;
        let deadline = std::time::Duration::from_nanos(timeout);
        let path = "/helloworld.Greeter/SayHello";
        let head = head("http", "127.0.0.1:50051", path, Some(deadline), &[]).unwrap();
        let mut ask = Ask::new(self.kind, head, &self.messages);
        ask.timeout = timeout;
        match self.kind {
            Kind::Bidirectional => ask.right.count = Some(self.messages.len() as u64),
            Kind::ServerStreaming => {}
            _ => {
                ask.right.count = Some(1);
                ask.right.messages = vec![Box::from(&b"hi"[..])];
            }
        }
        let orders = Orders {
            idempotent: false,
            keepalive: self.keepalive,
            timeout,
        };
        let clock = clock::Simulated::default();
        clock.advance_to(START);
        let seen = Rc::new(RefCell::new(Seen::default()));
        let peer = Peer::new(answer, self.allowed, seen.clone());
        let below = Simulated::new(clock.clone(), peer);
        let transport = Multiplexed::new(below, self.connections, self.streams, self.keepalive);
        let arrivals = self
            .rate
            .map(|rate| Arrivals::new(Spread::Constant, rate, 1, 0, 1));
        let agenda = Agenda::new(arrivals, self.requests);
        let span = self.requests.is_none().then_some(10 * SECOND);
        let course = Course::new(0, span, SECOND, 1);
        let record = Record::new(0, 5, None);
        let slots = self.connections * self.streams as usize;
        let worker =
            Worker::<Grpc, _, _>::new(orders, ask, transport, clock, agenda, record, slots);
        let record = worker.run(&course).unwrap();
        (record, seen.take())
    }
}

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
    assert_eq!(record.flight_time, u128::from(12 * 10 * SECOND));
    assert_eq!((record.connections.opened, seen.connections), (3, 3));
}

#[test]
fn streams_the_server_does_not_allow_take_no_calls_and_fail_none() {
    for rate in [None, Some(50.0)] {
        let load = Calls {
            streams: 10,
            allowed: 4,
            rate,
            ..Calls::default()
        };
        let (record, seen) = load.run(|_, _| hi(100 * MILLISECOND));
        // Four at once, each 100 ms: 40/s; an open loop has one second more, its drain.
        let most = if rate.is_some() { 440 } else { 400 };
        let ok = record.outcomes.of(Outcome::Ok);
        assert!(
            (most - 4..=most).contains(&ok),
            "{ok}: {:?}",
            record.examples
        );
        assert_eq!(record.parked, 6);
        assert_eq!(seen.connections, 1);
        if rate.is_some() {
            assert_eq!(
                record.outcomes.total(),
                500,
                "the others were unfinished, none failed"
            );
            assert!(
                at(&record.due, 0.5) > 900.0,
                "and waited: {}",
                at(&record.due, 0.5)
            );
        }
    }
}

#[test]
fn a_call_without_an_answer_is_cancelled_and_the_connection_goes_on() {
    let load = Calls {
        requests: Some(20),
        streams: 2,
        ..Calls::default()
    };
    let (record, seen) = load.run(|n, _| {
        if n == 5 {
            Does::Nothing
        } else {
            hi(MILLISECOND)
        }
    });
    assert_eq!(
        record.outcomes.of(Outcome::Timeout),
        1,
        "{:?}",
        record.examples
    );
    assert_eq!(record.outcomes.of(Outcome::Ok), 19);
    assert_eq!((seen.connections, seen.cancelled), (1, 1));
    assert_eq!(record.connections.reopened, 0);
}

#[test]
fn a_server_that_says_goaway_is_left_without_losing_a_call() {
    let load = Calls {
        requests: Some(60),
        streams: 3,
        ..Calls::default()
    };
    let (record, seen) = load.run(|n, _| match n % 20 == 10 {
        true => Does::Leave(5 * MILLISECOND),
        false => hi(5 * MILLISECOND),
    });
    assert_eq!(record.outcomes.of(Outcome::Ok), 60, "{:?}", record.examples);
    assert_eq!(record.connections.reopened, 3);
    assert_eq!(seen.connections, 4);
}

#[test]
fn a_refused_stream_is_sent_again_once_with_its_due_time() {
    let load = Calls {
        requests: Some(30),
        ..Calls::default()
    };
    let (record, seen) = load.run(|n, _| match n % 10 {
        3 => Does::Reset(Reason::REFUSED_STREAM),
        _ => hi(MILLISECOND),
    });
    assert_eq!(record.outcomes.of(Outcome::Ok), 30, "{:?}", record.examples);
    assert_eq!(seen.calls, 33);
    assert_eq!(seen.connections, 1);
    let load = Calls {
        requests: Some(3),
        ..Calls::default()
    };
    let (record, _) = load.run(|_, _| Does::Reset(Reason::REFUSED_STREAM));
    assert_eq!(record.outcomes.of(Outcome::Reset), 3);
    assert!(
        record.examples[0].1.contains("refused the request twice"),
        "{:?}",
        record.examples
    );
}

#[test]
fn a_lost_connection_fails_all_its_calls_and_is_made_again() {
    let load = Calls {
        requests: Some(40),
        streams: 4,
        ..Calls::default()
    };
    let (record, seen) = load.run(|n, _| {
        if n == 13 {
            Does::Close
        } else {
            hi(MILLISECOND)
        }
    });
    assert_eq!(record.outcomes.total(), 40);
    let reset = record.outcomes.of(Outcome::Reset);
    assert!((1..=4).contains(&reset), "{:?}", record.outcomes);
    assert_eq!(record.outcomes.of(Outcome::Ok), 40 - reset);
    assert!(
        record.examples[0].1.contains("unanswered"),
        "{:?}",
        record.examples
    );
    assert_eq!((seen.connections, record.connections.reopened), (2, 1));
}

#[test]
fn each_end_of_a_call_has_its_outcome_and_an_example() {
    let rows: [(Outcome, &str, Does); 6] = [
        (
            Outcome::BadStatus,
            "grpc-status 14 UNAVAILABLE",
            Does::Answer(MILLISECOND, vec![], 14),
        ),
        (
            Outcome::WrongBody,
            "is not the right one",
            Does::Answer(MILLISECOND, vec![b"ho"], 0),
        ),
        (
            Outcome::WrongBody,
            "2 messages where 1",
            Does::Answer(MILLISECOND, vec![b"hi", b"hi"], 0),
        ),
        (
            Outcome::Reset,
            "INTERNAL_ERROR",
            Does::Reset(Reason::INTERNAL_ERROR),
        ),
        (Outcome::Timeout, "no answer within 2 s", Does::Nothing),
        (
            Outcome::Timeout,
            "grpc-status 4 DEADLINE_EXCEEDED",
            Does::Answer(2 * SECOND - 1, vec![], 4),
        ),
    ];
    for (outcome, text, does) in rows {
        let load = Calls {
            requests: Some(1),
            ..Calls::default()
        };
        let (record, _) = load.run(|_, _| does.clone());
        assert_eq!(
            (record.outcomes.of(outcome), record.outcomes.total()),
            (1, 1),
            "{does:?}: {:?}",
            record.examples
        );
        assert!(
            record.examples[0].1.contains(text),
            "{:?} for {does:?}",
            record.examples
        );
    }
}

#[test]
fn streamed_answers_are_timed_to_their_first_message_and_to_their_end() {
    let load = Calls {
        kind: Kind::ServerStreaming,
        requests: Some(10),
        ..Calls::default()
    };
    let (record, _) = load.run(|_, _| Does::Answer(3 * MILLISECOND, vec![b"1", b"2", b"3"], 0));
    assert_eq!(record.outcomes.of(Outcome::Ok), 10, "{:?}", record.examples);
    let first = record.first.unwrap();
    assert_eq!(
        (first.due.histogram.len(), first.sent.histogram.len()),
        (10, 10)
    );
}

#[test]
fn messages_of_a_client_stream_go_out_together_and_are_answered_once() {
    let load = Calls {
        kind: Kind::ClientStreaming,
        messages: vec![b"a", b"bc", b""],
        requests: Some(5),
        ..Calls::default()
    };
    let (record, seen) = load.run(|_, _| hi(MILLISECOND));
    assert_eq!(record.outcomes.of(Outcome::Ok), 5, "{:?}", record.examples);
    let whole = [frame(b"a"), frame(b"bc"), frame(b"")].concat();
    assert!(
        seen.bodies.iter().all(|body| *body == whole),
        "{:?}",
        seen.bodies
    );
}

#[test]
fn each_message_of_a_ping_pong_waits_for_the_answer_to_the_one_before() {
    let load = Calls {
        kind: Kind::Bidirectional,
        messages: vec![b"a", b"b", b"c", b"d"],
        requests: Some(5),
        streams: 2,
        ..Calls::default()
    };
    let (record, seen) = load.run(|_, _| Does::Echo);
    assert_eq!(record.outcomes.of(Outcome::Ok), 5, "{:?}", record.examples);
    assert_eq!(record.first.unwrap().due.histogram.len(), 5);
    assert_eq!(seen.calls, 5);
    assert_eq!(
        seen.bodies[0],
        [frame(b"a"), frame(b"b"), frame(b"c"), frame(b"d")].concat()
    );
}

#[test]
fn without_keep_alive_each_call_has_its_connection() {
    let load = Calls {
        requests: Some(12),
        connections: 2,
        keepalive: false,
        ..Calls::default()
    };
    let (record, seen) = load.run(|_, _| hi(MILLISECOND));
    assert_eq!(record.outcomes.of(Outcome::Ok), 12, "{:?}", record.examples);
    assert_eq!(seen.connections, 12);
}
