//! Calls of several messages, and connections of one call.

use velodrome_engine::clock::MILLISECOND;
use velodrome_engine::outcome::Outcome;
use velodrome_engine::protocol::grpc::frame;
use velodrome_engine::spec::CallKind;

use super::{Calls, hi};
use crate::peer::Does;

#[test]
fn streamed_answers_are_timed_to_their_first_message_and_to_their_end() {
    let load = Calls {
        kind: CallKind::ServerStreaming,
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
        kind: CallKind::ClientStreaming,
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
        kind: CallKind::Bidirectional,
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
