//! Runs a load: one thread per worker, this one tells what happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde_json::json;

use crate::apart::apart;
use crate::calls::Plan;
use crate::clock::{Clock, MILLISECOND, Monotonic, Nanos, nanos, seconds};
use crate::conversation::Conversation;
use crate::endpoint::{Endpoint, LEAVING};
use crate::os;
use crate::pace::Arrivals;
use crate::place::TargetError;
use crate::progress::Progress;
use crate::protocol::Protocol;
use crate::protocol::grpc::Grpc;
use crate::protocol::http1::{Ask, Exchange, Lines};
use crate::protocol::http2::{Heads, Plain, PlainAsk};
use crate::protocol::websocket::broadcast;
use crate::protocol::websocket::broadcast::Broadcast;
use crate::protocol::websocket::connect::Connect;
use crate::protocol::websocket::echo::Echo;
use crate::record::{Fairness, Record, Share, Slice, Steps};
use crate::requests::{Draw, Requests};
use crate::results::LoadResult;
use crate::spec::{Lane, Length, LoadSpec, Mode, SpecError, TransportChoice};
use crate::target::{Target, What};
#[cfg(target_os = "linux")]
use crate::transport::adaptive::Adaptive;
use crate::transport::multiplexed::Multiplexed;
use crate::transport::polled::Polled;
use crate::transport::tls::Tls;
#[cfg(target_os = "linux")]
use crate::transport::uring::Uring;
use crate::transport::{ByteTransport, Transport, multiplexed};
use crate::worker::RequestQueue;
use crate::worker::RunControl;
use crate::worker::{Orders, Worker};

/// Raised when a load cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// What was asked for makes no sense.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The target may not be loaded.
    #[error("{0}")]
    NotAllowed(String),
    /// The system does not let us.
    #[error(transparent)]
    System(#[from] io::Error),
    /// The listener ended it while it was prepared: there is nothing to tell.
    #[error("the load was ended before its first request")]
    Ended,
    /// All parts were to begin at a moment that had passed when this one heard of it.
    #[error(
        "the moment at which all parts of the load begin was {0:.3} s ago when this one heard of it: its machine is too busy, or the way to it too slow"
    )]
    Late(f64),
}

impl From<TargetError> for EngineError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Spec(fault) => EngineError::Spec(fault),
            TargetError::NotAllowed(_) | TargetError::NotLoopback(_) => {
                EngineError::NotAllowed(error.to_string())
            }
            TargetError::Unknown { .. } => EngineError::Spec(SpecError(error.to_string())),
        }
    }
}

/// Told an event as one line of JSON; returns whether the load goes on.
pub type Listener<'a> = &'a mut dyn FnMut(&str) -> bool;

/// At least four ticks a second, with room for a late wake-up.
const TICK: Nanos = 200 * MILLISECOND;
/// How soon the beginning is noticed.
const GLANCE: Nanos = 2 * MILLISECOND;
/// Descriptors for everything that is not a connection: standard streams, pollers, what the host program has open.
const OTHER_FILES: u64 = 64;

/// Runs a whole load and returns its result. `on_event` is called on this thread, at least four times a second.
pub fn run(
    spec: &LoadSpec,
    body: &[u8],
    expected: Option<&[u8]>,
    on_event: Listener<'_>,
) -> Result<LoadResult, EngineError> {
    run_with(spec, body, expected, None, on_event)
}

/// The same of one part of a load. Once it is ready it says so, with event `ready` every few milliseconds, and waits for
/// `begin`, the moment of `CLOCK_MONOTONIC` at which all parts begin; 0: it is not known yet.
pub fn run_part(
    spec: &LoadSpec,
    body: &[u8],
    expected: Option<&[u8]>,
    begin: &Arc<AtomicU64>,
    on_event: Listener<'_>,
) -> Result<LoadResult, EngineError> {
    run_with(spec, body, expected, Some(begin.clone()), on_event)
}

fn run_with(
    spec: &LoadSpec,
    body: &[u8],
    expected: Option<&[u8]>,
    begin: Option<Arc<AtomicU64>>,
    on_event: Listener<'_>,
) -> Result<LoadResult, EngineError> {
    let spec = &allowed(spec, os::most_files()?);
    let target = prepared(spec, body, expected, on_event)?;
    os::allow_files(files(spec.connections, spec.threads))?;
    let span = match spec.length() {
        Length::Span(span) => Some(span),
        Length::Requests(_) => None,
    };
    let control = RunControl::new(
        nanos(spec.warmup_s),
        span,
        nanos(spec.drain_s),
        spec.threads as usize,
    );
    let control = match begin {
        Some(begin) => control.held(begin),
        None => control,
    };
    let mut progress = Progress::new(spec.threads, spec.part.is_some());
    let (sender, slices) = channel();
    let mut told_end = false;
    let results: Vec<io::Result<Record>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..spec.threads)
            .map(|thread| {
                let part = Part::new(spec, &target, &control, thread, sender.clone());
                // Its record hangs up at the end of the span; the drain is attended, too.
                let present = sender.clone();
                scope.spawn(move || {
                    let done = part.work();
                    drop(present);
                    done
                })
            })
            .collect();
        drop(sender);
        told_end = attend(&control, &slices, &mut progress, on_event);
        // A worker that panics has a fault of ours to tell, so the panic goes on here.
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let mut total = Record::new(0, spec.max_examples, None);
    for result in results {
        total.add(result?);
    }
    if control.is_held() && control.origin().is_none() {
        return Err(match control.late() {
            0 => EngineError::Ended,
            late => EngineError::Late(seconds(late)),
        });
    }
    if !told_end {
        // Where a count ended the span, its end is known only now. Nobody can stop a load that is over.
        on_event(&json!({"event": "span_ended", "monotonic_ns": total.span.end}).to_string());
    }
    Ok(LoadResult::new(spec, &target, total, progress.series()))
}

/// Looks up the target and asks it for what it describes, which waits for others: meanwhile `on_event` is called.
fn prepared(
    spec: &LoadSpec,
    body: &[u8],
    expected: Option<&[u8]>,
    on_event: Listener<'_>,
) -> Result<Target, EngineError> {
    let (spec, body, expected) = (spec.clone(), body.to_vec(), expected.map(<[u8]>::to_vec));
    let work = move || Target::new(&spec, &body, expected.as_deref());
    let event = json!({"event": "preparing"}).to_string();
    match apart("prepare", work, Duration::from_nanos(TICK), || {
        on_event(&event)
    })? {
        Some(target) => Ok(target?),
        None => Err(EngineError::Ended),
    }
}

/// How many files a load has open at most: some connections are still being closed when others take their places.
fn files(connections: u64, threads: u64) -> u64 {
    let leaving = connections.min(LEAVING as u64 * threads);
    connections + leaving + 4 * threads + OTHER_FILES
}

/// The load with as many connections as `most` open files allow, where it takes fewer than it asks for.
fn allowed(spec: &LoadSpec, most: u64) -> LoadSpec {
    let mut spec = spec.clone();
    if spec.fewer_connections && files(spec.connections, spec.threads) > most {
        // Each of few needs a second file while it is closed, of many only some.
        let room = most.saturating_sub(files(0, spec.threads));
        let many = room.saturating_sub(LEAVING as u64 * spec.threads);
        spec.connections = (room / 2).max(many).clamp(spec.threads, spec.connections);
    }
    spec
}

/// Tells events until all workers are done. Returns whether the end of the span was among them.
fn attend(
    control: &RunControl,
    slices: &Receiver<Slice>,
    progress: &mut Progress,
    on_event: Listener<'_>,
) -> bool {
    let mut milestones = Milestones::default();
    let mut next_tick = Monotonic.now() + TICK;
    loop {
        let now = Monotonic.now();
        let mut go_on = true;
        for event in milestones.passed(control, now) {
            go_on &= on_event(&event);
        }
        if control.is_ready() {
            go_on &= on_event(r#"{"event": "ready"}"#);
        }
        if now >= next_tick {
            next_tick = now + TICK;
            let tick = progress.tick(now, milestones.start, milestones.over);
            go_on &= on_event(&serde_json::to_string(&tick).expect("numbers and names"));
        }
        if !go_on {
            control.stop.store(true, Ordering::Relaxed);
        }
        let wake = next_tick.min(milestones.next(control, now));
        match slices.recv_timeout(Duration::from_nanos(wake.saturating_sub(now))) {
            Ok(slice) => progress.add(&slice),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return milestones.over,
        }
    }
}

/// The events that come once.
#[derive(Default)]
struct Milestones {
    start: Option<Nanos>,
    measuring: bool,
    over: bool,
}

impl Milestones {
    fn passed(&mut self, control: &RunControl, now: Nanos) -> Vec<String> {
        let Some(origin) = control.origin() else {
            return Vec::new();
        };
        let start = origin + control.warmup;
        let mut events = Vec::new();
        if self.start.replace(start).is_none() {
            events.push(
                json!({"event": "connected", "opened": control.opened.load(Ordering::SeqCst)}),
            );
        }
        if !self.measuring && now >= start {
            self.measuring = true;
            events.push(json!({"event": "measuring", "monotonic_ns": start}));
        }
        if let Some(end) = control.end(start)
            && !self.over
            && now >= end
        {
            self.over = true;
            events.push(json!({"event": "span_ended", "monotonic_ns": end}));
        }
        events.into_iter().map(|event| event.to_string()).collect()
    }

    fn next(&self, control: &RunControl, now: Nanos) -> Nanos {
        match self.start {
            None => now + GLANCE,
            Some(start) if !self.measuring => start,
            Some(start) if !self.over => control.end(start).unwrap_or(Nanos::MAX),
            Some(_) => Nanos::MAX,
        }
    }
}

/// See the module.
pub struct Part<'a> {
    spec: &'a LoadSpec,
    target: &'a Target,
    control: &'a RunControl,
    thread: u64,
    slices: Sender<Slice>,
}

/// What a thread recorded.
type Done = io::Result<Record>;

impl<'a> Part<'a> {
    /// The part of thread `thread`, whose slices of the timeline go to `slices`.
    pub fn new(
        spec: &'a LoadSpec,
        target: &'a Target,
        control: &'a RunControl,
        thread: u64,
        slices: Sender<Slice>,
    ) -> Part<'a> {
        Part {
            spec,
            target,
            control,
            thread,
            slices,
        }
    }

    /// Carries it out, to the end of the drain.
    pub fn work(self) -> Done {
        let open = self.spec.is_open();
        match Bottom::open(
            self.spec.transport,
            open,
            &self.target.endpoint,
            self.sockets(),
        ) {
            Ok(Bottom::Polled(transport)) => self.sealed(*transport),
            #[cfg(target_os = "linux")]
            Ok(Bottom::Uring(transport)) => self.sealed(*transport),
            #[cfg(target_os = "linux")]
            Ok(Bottom::Adaptive(transport)) => self.sealed(*transport),
            Err(error) => {
                self.control.line_up(&Monotonic, false);
                Err(error)
            }
        }
    }

    /// Which requests are its own.
    fn lane(&self) -> Lane {
        self.spec.lane(self.thread)
    }

    /// Its share of the connections.
    fn connections(&self) -> usize {
        share(self.spec.connections, self.thread, self.spec.threads) as usize
    }

    /// The most sockets it has open at once.
    fn sockets(&self) -> usize {
        match self.target.what {
            What::Http(_) | What::WebSocket(_) => self.connections(),
            What::Http2(..) | What::Grpc(_) => multiplexed::lines(self.connections()),
        }
    }

    fn sealed(self, transport: impl ByteTransport) -> Done {
        match &self.target.secure {
            None => self.over(transport),
            Some(secure) => {
                let sockets = self.sockets();
                self.over(Tls::new(transport, secure.own(), sockets))
            }
        }
    }

    fn over(self, transport: impl ByteTransport) -> Done {
        let target = self.target;
        match &target.what {
            What::Http(requests) => self.ask(requests, transport),
            What::Http2(requests, heads) => self.ask_by_streams(requests, heads, transport),
            What::Grpc(plan) => self.call(plan, transport),
            What::WebSocket(said) => self.converse(said, transport),
        }
    }

    fn ask(self, requests: &Requests, transport: impl ByteTransport) -> Done {
        let (slots, keepalive) = (self.connections(), self.spec.keepalive);
        let ask = match requests.plain() {
            Some(request) => {
                let lines = Lines::new(request, keepalive);
                let right_bytes = request.right.body.as_ref().map_or(0, |body| body.len());
                let check_every = self.spec.compares_every(right_bytes);
                Ask::fixed(lines.fixed().unwrap_or_default(), request, check_every)
            }
            None => {
                let draw = Draw::new(requests, self.spec, self.thread);
                Ask::drawn(requests, draw, keepalive, self.target.secure.is_some())
            }
        };
        self.go::<Exchange, _>(ask, transport, slots)
    }

    fn ask_by_streams(
        self,
        requests: &Requests,
        heads: &[Heads],
        transport: impl ByteTransport,
    ) -> Done {
        let (connections, streams) = (self.connections(), self.spec.streams as u32);
        let transport = Multiplexed::new(transport, connections, streams, self.spec.keepalive);
        let draw = Draw::new(requests, self.spec, self.thread);
        let ask = PlainAsk::new(requests, heads, draw);
        let slots = connections * streams as usize;
        self.go::<Plain, _>(ask, transport, slots)
    }

    fn call(self, plan: &Plan, transport: impl ByteTransport) -> Done {
        let (connections, streams) = (self.connections(), self.spec.streams as u32);
        let transport = Multiplexed::new(transport, connections, streams, self.spec.keepalive);
        let slots = connections * streams as usize;
        let ask = plan.ask(self.lane());
        self.go::<Grpc, _>(ask, transport, slots)
    }

    fn converse(self, said: &Conversation, transport: impl ByteTransport) -> Done {
        let (slots, thread) = (self.connections(), self.lane().first);
        match said.mode {
            Mode::Echo => {
                let transport = said.sockets(transport, slots, thread);
                self.go::<Echo, _>(said.echo(), transport, slots)
            }
            Mode::Connect => self.go::<Connect, _>(said.connect(thread), transport, slots),
            Mode::Broadcast => {
                let ask = broadcast::Ask {
                    members: slots as u32,
                };
                let transport = said.room(transport, Monotonic);
                self.go::<Broadcast, _>(ask, transport, said.at_once as usize)
            }
        }
    }

    fn go<P: Protocol, T: Transport<Medium = P::Medium>>(
        self,
        ask: P::Ask,
        transport: T,
        slots: usize,
    ) -> Done {
        let (connections, lane) = (self.connections(), self.lane());
        let Part {
            spec,
            target,
            control,
            thread,
            slices,
        } = self;
        let orders = Orders {
            keepalive: spec.keepalive,
            timeout: nanos(spec.timeout_s),
        };
        let arrivals = spec
            .pace()
            .map(|pace| Arrivals::new(spec.arrivals, pace, spec.seed, lane.first, lane.step));
        let requests = match spec.length() {
            Length::Span(_) => None,
            Length::Requests(requests) => Some(counted(spec, lane, requests)),
        };
        let mut record = Record::new(thread, spec.max_examples, Some(slices));
        let named = target.requests().map_or(0, |requests| requests.all.len());
        record.by_request = (0..named).map(|_| Share::default()).collect();
        record.steps = Steps::new(spec.steps().iter().map(|step| step.length));
        let in_room = target
            .conversation()
            .is_some_and(|said| said.mode == Mode::Broadcast);
        record.fairness =
            (!spec.is_open() && !in_room).then(|| Box::new(Fairness::new(connections, slots)));
        let queue = RequestQueue::new(arrivals, requests);
        let worker =
            Worker::<P, _, _>::new(orders, ask, transport, Monotonic, queue, record, slots);
        // A closed loop has no moment to miss, and may need all of its CPU.
        let worker = if spec.is_open() {
            worker.prompt()
        } else {
            worker
        };
        worker.run(control)
    }
}

/// The transports of bytes a real load can use.
enum Bottom {
    Polled(Box<Polled>),
    #[cfg(target_os = "linux")]
    Uring(Box<Uring>),
    #[cfg(target_os = "linux")]
    Adaptive(Box<Adaptive>),
}

impl Bottom {
    /// `open`: the load is an open loop, whose answers the kernel is to stamp.
    #[cfg(target_os = "linux")]
    fn epoll(target: &Endpoint, open: bool, slots: usize) -> io::Result<Bottom> {
        let epoll = Polled::new(target.clone(), slots)?;
        let epoll = if open { epoll.stamped() } else { epoll };
        Ok(Bottom::Polled(Box::new(epoll)))
    }

    #[cfg(target_os = "linux")]
    fn open(
        choice: TransportChoice,
        open: bool,
        target: &Endpoint,
        slots: usize,
    ) -> io::Result<Bottom> {
        // A unix socket whose listen queue is full has to be waited for, and a ring cannot do that and be ended.
        if choice == TransportChoice::Epoll || target.is_unix() {
            return Bottom::epoll(target, open, slots);
        }
        match choice {
            TransportChoice::IoUring => match Uring::new(target.clone(), slots) {
                Ok(uring) => {
                    let uring = if open { uring.stamped() } else { uring };
                    Ok(Bottom::Uring(Box::new(uring)))
                }
                Err(error) => Err(io::Error::other(format!(
                    "io_uring cannot be used here ({error}): it needs Linux 6.1 and permission \
                     (kernel.io_uring_disabled, seccomp filters of containers); --transport auto takes epoll then"
                ))),
            },
            // Requests come one by one: there are no batches, and the kernel knows when each answer came.
            _ if open => Bottom::epoll(target, open, slots),
            _ => match Adaptive::new(target.clone(), slots) {
                Ok(adaptive) => Ok(Bottom::Adaptive(Box::new(adaptive))),
                Err(_) => Bottom::epoll(target, open, slots),
            },
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn open(
        choice: TransportChoice,
        _open: bool,
        target: &Endpoint,
        slots: usize,
    ) -> io::Result<Bottom> {
        match choice {
            TransportChoice::IoUring => Err(io::Error::other(
                "io_uring is Linux'; leave --transport at auto",
            )),
            _ => Polled::new(target.clone(), slots).map(|epoll| Bottom::Polled(Box::new(epoll))),
        }
    }
}

/// Thread `thread`'s share of `whole` things dealt one by one.
fn share(whole: u64, thread: u64, threads: u64) -> u64 {
    whole / threads + u64::from(thread < whole % threads)
}

/// How many of `requests` measured ones are of a lane: of those of an open loop with a warm-up, the first that counts is
/// the first that is due after it.
fn counted(spec: &LoadSpec, lane: Lane, requests: u64) -> u64 {
    let warmup = nanos(spec.warmup_s);
    let Some(pace) = spec.pace().filter(|_| lane.step > 1 && warmup > 0) else {
        return share(requests, lane.first, lane.step);
    };
    let mut arrivals = Arrivals::new(spec.arrivals, pace, spec.seed, 0, 1);
    let mut before = 0;
    while arrivals.due() < warmup {
        arrivals.advance();
        before += 1;
    }
    share(before + requests, lane.first, lane.step) - share(before, lane.first, lane.step)
}

/// When the first `count` requests of a load, or of a part of one, are due, from its beginning. Empty in closed loop.
#[must_use]
pub fn schedule(spec: &LoadSpec, count: usize) -> Vec<Nanos> {
    let Some(pace) = spec.pace() else {
        return Vec::new();
    };
    let mut lanes: Vec<_> = (0..spec.threads)
        .map(|thread| spec.lane(thread))
        .map(|lane| {
            Arrivals::new(
                spec.arrivals,
                pace.clone(),
                spec.seed,
                lane.first,
                lane.step,
            )
        })
        .collect();
    (0..count)
        .map(|number| {
            let lane = &mut lanes[number % spec.threads as usize];
            let due = lane.due();
            lane.advance();
            due
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A load that lasts for a number of requests, in `of` parts of `threads` threads.
    fn counts(of: u64, threads: u64, warmup_s: f64, requests: u64) -> Vec<(Lane, u64)> {
        let whole = LoadSpec::from_json(&format!(
            r#"{{"url": "http://127.0.0.1/", "requests": {requests}, "rate": 997, "arrivals": "poisson",
                "connections": 1000, "threads": {threads}, "warmup_s": {warmup_s}}}"#
        ))
        .unwrap();
        let mut found = Vec::new();
        for number in 0..of {
            let mut spec = whole.clone();
            spec.part = Some(crate::spec::PartSpec { number, of });
            found.extend((0..threads).map(|thread| {
                let lane = spec.lane(thread);
                (lane, counted(&spec, lane, requests))
            }));
        }
        found
    }

    proptest! {
        #[test]
        fn parts_count_the_requests_that_the_whole_counts(
            of in 1u64..9, threads in 1u64..5, warmup_s in 0.0f64..1.5, requests in 1u64..3_000,
        ) {
            let alone = &counts(1, 1, warmup_s, requests)[0];
            prop_assert_eq!(alone.1, requests);
            let pace = Arrivals::new(
                crate::pace::Spread::Poisson, crate::pace::Schedule::constant(997.0), 1, 0, 1,
            );
            let before = {
                let mut arrivals = pace;
                std::iter::from_fn(|| {
                    let due = arrivals.due();
                    arrivals.advance();
                    Some(due)
                })
                .take_while(|&due| due < nanos(warmup_s))
                .count() as u64
            };
            for (lane, count) in counts(of, threads, warmup_s, requests) {
                let its = (before..before + requests).filter(|n| n % lane.step == lane.first).count();
                prop_assert_eq!(count, its as u64);
            }
        }
    }

    fn spec(fields: &str) -> LoadSpec {
        let json = format!(
            r#"{{"url": "http://127.0.0.1/", "duration_s": 1, "rate": 10, "connections": 1000, {fields}}}"#
        );
        LoadSpec::from_json(&json).unwrap()
    }

    #[test]
    fn connections_that_nobody_asked_for_are_as_many_as_files_allow() {
        for threads in [1, 4] {
            for most in [100, 256, 600, 1_024, 1_400] {
                let asked = spec(&format!(
                    r#""fewer_connections": true, "threads": {threads}"#
                ));
                let had = allowed(&asked, most).connections;
                assert!(files(had, threads) <= most, "{most}: {had}");
                assert!(
                    files(had + 1, threads) > most || had == 1_000,
                    "{most}: {had}"
                );
            }
        }
        assert_eq!(
            allowed(&spec(r#""fewer_connections": true"#), 4_096).connections,
            1_000
        );
        let asked = spec(r#""fewer_connections": false"#);
        assert_eq!(
            allowed(&asked, 1_024).connections,
            1_000,
            "what was asked for is not changed"
        );
        let none = allowed(&spec(r#""fewer_connections": true, "threads": 2"#), 10);
        assert_eq!(
            none.connections, 2,
            "too few for any: the limit says so itself"
        );
    }
}
