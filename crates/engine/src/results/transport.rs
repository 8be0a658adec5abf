//! Over which transport a load went and why, and which bodies were looked at there.

use serde::Serialize;

use crate::record::Record;
use crate::spec::{LoadSpec, TransportChoice};
use crate::target::{Target, What};

/// See the module.
#[derive(Debug, Serialize)]
pub(super) struct Transport {
    transport: &'static str,
    transport_because: Because,
    /// Bytes nobody has to look at, of an average answer, when they made the load change its transport; None: it did not.
    unread_bytes: Option<u64>,
    /// Answers whose bodies the kernel dropped: only their length was seen.
    dropped_bodies: u64,
    /// Every how many-th body was compared whole with the right one, of requests that have one; None: none is known.
    compared_every: Option<u64>,
}

/// Why it is this transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Because {
    /// It was asked for by name.
    Asked,
    /// A ring cannot wait for a unix socket whose listen queue is full.
    UnixSocket,
    /// Requests come one by one: there are no batches for io_uring to make.
    OpenLoop,
    /// Answers have much that nobody looks at, which the kernel can drop over epoll.
    LargeAnswers,
    /// Requests follow answers, in batches.
    ClosedLoop,
    /// This system has no io_uring, or forbids it.
    NoIoUring,
}

impl Transport {
    pub(super) fn of(spec: &LoadSpec, target: &Target, record: &Record) -> Transport {
        Transport {
            transport: record.transport,
            transport_because: because(spec, target, record),
            unread_bytes: record.changed_for,
            dropped_bodies: record.dropped_bodies,
            compared_every: compared_every(spec, target),
        }
    }
}

fn because(spec: &LoadSpec, target: &Target, record: &Record) -> Because {
    match spec.transport {
        TransportChoice::Epoll => Because::Asked,
        _ if target.endpoint.is_unix() => Because::UnixSocket,
        TransportChoice::IoUring => Because::Asked,
        TransportChoice::Auto if spec.is_open() => Because::OpenLoop,
        TransportChoice::Auto if record.changed_for.is_some() => Because::LargeAnswers,
        TransportChoice::Auto if record.transport == "io_uring" => Because::ClosedLoop,
        TransportChoice::Auto => Because::NoIoUring,
    }
}

/// Of answers over HTTP/1.1.
fn compared_every(spec: &LoadSpec, target: &Target) -> Option<u64> {
    let What::Http(requests) = &target.what else {
        return None;
    };
    let mut right = requests
        .all
        .iter()
        .filter_map(|request| request.right.body.as_ref());
    match requests.plain() {
        Some(_) => right.next().map(|body| spec.compares_every(body.len())),
        None => right.next().map(|_| spec.compares_every(0)),
    }
}
