//! Any bytes as the messages of a call, whole and in pieces: no panic, and the same end either way.

use arbitrary::{Arbitrary, Unstructured};
use velodrome_engine::protocol::grpc::{Call, CallProgress, Ended, Expected, readable};
use velodrome_engine::protocol::http2::{GrpcStatus, GrpcTrailer, Length, StreamEvent};

fn play(bytes: &[u8], size: usize, grpc: GrpcTrailer<'_>, expected: &Expected) -> (Ended, String) {
    let mut call = Call::new();
    call.begin(true);
    let head = StreamEvent::Head {
        status: 200,
        length: Length::Untold,
        grpc: GrpcTrailer::default(),
        end: false,
    };
    let pieces = bytes
        .chunks(size)
        .map(|bytes| StreamEvent::Data { bytes, end: false });
    let last = StreamEvent::Trailers { grpc };
    for event in [head].into_iter().chain(pieces).chain([last]) {
        if let CallProgress::Done(ended) = call.feed(event, expected) {
            return (ended, call.why(expected));
        }
    }
    unreachable!("trailers end a call")
}

pub fn check(bytes: &[u8]) {
    let input =
        <(u8, u8, Option<u64>, &[u8], &[u8])>::arbitrary_take_rest(Unstructured::new(bytes));
    let Ok((size, status, count, message, bytes)) = input else {
        return;
    };
    let messages = [Box::from(&b"ab"[..]), Box::from(&b""[..])];
    let expected = Expected {
        messages: &messages,
        count,
        status: 0,
    };
    let status = match status {
        255 => GrpcStatus::Missing,
        254 => GrpcStatus::Unreadable,
        code => GrpcStatus::Code(u32::from(code)),
    };
    let grpc = GrpcTrailer { status, message };
    let whole = play(bytes, bytes.len().max(1), grpc, &expected);
    assert_eq!(whole, play(bytes, usize::from(size) + 1, grpc, &expected));
    assert!(
        readable(message)
            .chars()
            .filter(|character| character.is_control())
            .count()
            == 0
    );
}
