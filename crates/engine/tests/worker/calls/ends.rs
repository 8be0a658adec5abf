//! What becomes of calls and connections when something goes wrong.

use h2::Reason;
use velodrome_engine::clock::{MILLISECOND, Nanos, SECOND};
use velodrome_engine::outcome::Outcome;
use velodrome_engine::transport::Token;
use velodrome_engine::transport::simulated::{Act, Script};

use super::{Calls, hi};
use crate::load::at;
use crate::peer::Does;

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

/// Says these bytes and closes, before any request can come.
struct Farewell(&'static [u8]);

impl Script for Farewell {
    fn connection(&mut self, _: Token, now: Nanos) -> Vec<(Nanos, Act)> {
        let said = Act::Send(self.0.to_vec());
        vec![(now, Act::Accept), (now, said), (now, Act::Close)]
    }

    fn request(&mut self, _: Token, _: Nanos) -> Vec<(Nanos, Act)> {
        Vec::new()
    }

    fn bytes(&mut self, _: Token, _: &[u8], _: Nanos) -> Vec<(Nanos, Act)> {
        Vec::new()
    }
}

#[test]
fn what_a_server_says_is_read_though_its_close_comes_with_it() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const SETTINGS_AND_GOAWAY: &[u8] =
        b"\0\0\0\x04\0\0\0\0\0\0\0\x0c\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0bcalm";
    let rows = [
        (&b""[..], "before its SETTINGS came"),
        (SETTINGS, "with 0 requests unanswered"),
        (SETTINGS_AND_GOAWAY, "ENHANCE_YOUR_CALM ('calm')"),
    ];
    for (said, text) in rows {
        let load = Calls {
            requests: Some(1),
            ..Calls::default()
        };
        let record = load.run_against(Farewell(said));
        assert!(
            record.examples[0].1.contains(text),
            "{:?} after {said:?}",
            record.examples
        );
    }
}
