//! gRPC calls on the simulated clock, against an HTTP/2 server by others.

mod ends;
mod kinds;
mod timing;

use std::cell::RefCell;
use std::rc::Rc;

use velodrome_engine::clock::{self, Nanos, SECOND};
use velodrome_engine::pace::{Arrivals, Schedule, Spread};
use velodrome_engine::protocol::grpc::{Ask, Grpc, head};
use velodrome_engine::record::Record;
use velodrome_engine::spec::CallKind;
use velodrome_engine::transport::multiplexed::Multiplexed;
use velodrome_engine::transport::simulated::{Script, Simulated};
use velodrome_engine::worker::RequestQueue;
use velodrome_engine::worker::RunControl;
use velodrome_engine::worker::{Orders, Worker};

use crate::load::START;
use crate::peer::{Does, Peer, Seen};

/// A load of calls of 10 s at most with a time-out of 2 s and a drain of 1 s.
struct Calls {
    kind: CallKind,
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
            kind: CallKind::Unary,
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
        let seen = Rc::new(RefCell::new(Seen::default()));
        let peer = Peer::new(answer, self.allowed, seen.clone());
        let record = self.run_against(peer);
        (record, seen.take())
    }

    fn run_against(self, server: impl Script) -> Record {
        let timeout = 2 * SECOND;
        let deadline = std::time::Duration::from_nanos(timeout);
        let path = "/helloworld.Greeter/SayHello";
        let head = head("http", "127.0.0.1:50051", path, Some(deadline), &[]).unwrap();
        let mut ask = Ask::new(self.kind, head, &self.messages);
        ask.timeout = timeout;
        match self.kind {
            CallKind::Bidirectional => ask.right.count = Some(self.messages.len() as u64),
            CallKind::ServerStreaming => {}
            _ => {
                ask.right.count = Some(1);
                ask.right.messages = vec![Box::from(&b"hi"[..])];
            }
        }
        let orders = Orders {
            keepalive: self.keepalive,
            timeout,
        };
        let clock = clock::Simulated::default();
        clock.advance_to(START);
        let below = Simulated::new(clock.clone(), server);
        let transport = Multiplexed::new(below, self.connections, self.streams, self.keepalive);
        let arrivals = self
            .rate
            .map(|rate| Arrivals::new(Spread::Constant, Schedule::constant(rate), 1, 0, 1));
        let queue = RequestQueue::new(arrivals, self.requests);
        let span = self.requests.is_none().then_some(10 * SECOND);
        let control = RunControl::new(0, span, SECOND, 1);
        let record = Record::new(0, 5, None);
        let slots = self.connections * self.streams as usize;
        let worker = Worker::<Grpc, _, _>::new(orders, ask, transport, clock, queue, record, slots);
        worker.run(&control).unwrap()
    }
}
