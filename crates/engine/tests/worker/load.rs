//! A load on a simulated clock against a scripted server.

use std::sync::Arc;

use velodrome_engine::clock::{self, Nanos, SECOND};
use velodrome_engine::outcome::Right;
use velodrome_engine::pace::{Arrivals, Schedule, Spread, Step};
use velodrome_engine::protocol::http1::{Ask, Exchange};
use velodrome_engine::record::{Record, Steps};
use velodrome_engine::requests::Request;
use velodrome_engine::template::Template;
use velodrome_engine::transport::Token;
use velodrome_engine::transport::simulated::{Act, Script, Simulated};
use velodrome_engine::worker::{Orders, RequestQueue, RunControl, Worker};

pub const RIGHT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// When the timeline begins.
pub const START: Nanos = SECOND;

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
pub struct Load {
    pub rate: Option<f64>,
    pub steps: Vec<Step>,
    pub requests: Option<u64>,
    pub connections: usize,
    pub keepalive: bool,
    pub warmup: Nanos,
    pub accept: Act,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            rate: None,
            steps: Vec::new(),
            requests: None,
            connections: 1,
            keepalive: true,
            warmup: 0,
            accept: Act::Accept,
        }
    }
}

impl Load {
    pub fn run(self, answer: impl FnMut(u64, Nanos) -> Vec<(Nanos, Act)>) -> Record {
        let request = Request {
            name: String::new(),
            weight: 1.0,
            method: "GET".into(),
            path: Template::fixed("/"),
            fields: Vec::new(),
            body: Template::fixed(""),
            tells_length: false,
            right: Right {
                body: Some(Arc::from(&b"ok"[..])),
                ..Right::default()
            },
        };
        let ask = Ask::fixed(b"GET / HTTP/1.1\r\n\r\n", &request, 1);
        let orders = Orders {
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
        let schedule = match self.steps.is_empty() {
            true => self.rate.map(Schedule::constant),
            false => Some(Schedule::new(&self.steps)),
        };
        let arrivals = schedule.map(|schedule| Arrivals::new(Spread::Constant, schedule, 1, 0, 1));
        let queue = RequestQueue::new(arrivals, self.requests);
        let span = self.requests.is_none().then_some(10 * SECOND);
        let control = RunControl::new(self.warmup, span, SECOND, 1);
        let mut record = Record::new(0, 5, None);
        record.steps = Steps::new(self.steps.iter().map(|step| step.length));
        Worker::<Exchange, _, _>::new(
            orders,
            ask,
            transport,
            clock,
            queue,
            record,
            self.connections,
        )
        .run(&control)
        .unwrap()
    }
}

pub fn after(pause: Nanos, now: Nanos) -> Vec<(Nanos, Act)> {
    vec![(now + pause, Act::Send(RIGHT.to_vec()))]
}

pub fn at(durations: &velodrome_engine::durations::Durations, quantile: f64) -> f64 {
    durations.histogram.value_at_quantile(quantile) as f64 / 1e6
}

/// Compares with the three digits a histogram keeps.
pub fn near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= wanted * 0.002 + 1e-6
}
