//! One thread's part of a load: its transport, its worker, its record.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::agenda::Agenda;
use crate::calls::Plan;
use crate::clock::{Monotonic, nanos};
use crate::conversation::Conversation;
use crate::course::Course;
use crate::pace::Arrivals;
use crate::protocol::Protocol;
use crate::protocol::grpc::Grpc;
use crate::protocol::http1::{self, Http1, Lines, Varied, VariedAsk};
use crate::protocol::http2::{Heads, Plain, PlainAsk};
use crate::protocol::websocket::broadcast::{self, Broadcast};
use crate::protocol::websocket::connect::Connect;
use crate::protocol::websocket::echo::Echo;
use crate::record::{Record, Share, Slice, Steps};
use crate::requests::{Draw, Requests};
use crate::spec::{Length, LoadSpec, Mode, TransportChoice};
use crate::target::{Target, What};
use crate::transport::epoll::Epoll;
use crate::transport::multiplexed::{self, Multiplexed};
use crate::transport::tls::Tls;
use crate::transport::written::Fresh;
use crate::transport::{ByteTransport, Endpoint, Transport};
#[cfg(target_os = "linux")]
use crate::transport::{adaptive::Adaptive, uring::Uring};
use crate::worker::{Orders, Worker};

/// See the module.
pub struct Part<'a> {
    spec: &'a LoadSpec,
    target: &'a Target,
    course: &'a Course,
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
        course: &'a Course,
        thread: u64,
        slices: Sender<Slice>,
    ) -> Part<'a> {
        Part {
            spec,
            target,
            course,
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
            Ok(Bottom::Epoll(transport)) => self.sealed(*transport),
            #[cfg(target_os = "linux")]
            Ok(Bottom::Uring(transport)) => self.sealed(*transport),
            #[cfg(target_os = "linux")]
            Ok(Bottom::Adaptive(transport)) => self.sealed(*transport),
            Err(error) => {
                self.course.line_up(&Monotonic, false);
                Err(error)
            }
        }
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
        let Some(request) = requests.plain() else {
            let draw = Draw::new(requests, self.spec, self.thread);
            let ask = VariedAsk::new(requests, draw, keepalive, self.target.secure.is_some());
            return self.go::<Varied, _>(ask, true, Fresh::new(transport), slots);
        };
        let bytes = Lines::new(request, keepalive);
        let ask = http1::Ask {
            // A copy per thread: the count of an Arc that all share would travel between CPUs with each request.
            request: Arc::from(bytes.fixed().unwrap_or_default()),
            head: request.is_head(),
            expected: request.right.body.as_deref().map(Arc::from),
            status: request.right.status,
            check_every: self
                .spec
                .compares_every(request.right.body.as_ref().map_or(0, |body| body.len())),
            bulky: false,
        };
        self.go::<Http1, _>(ask, request.is_idempotent(), transport, slots)
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
        self.go::<Plain, _>(ask, true, transport, slots)
    }

    fn call(self, plan: &Plan, transport: impl ByteTransport) -> Done {
        let (connections, streams) = (self.connections(), self.spec.streams as u32);
        let transport = Multiplexed::new(transport, connections, streams, self.spec.keepalive);
        let slots = connections * streams as usize;
        // Nobody knows what a call does: it is sent again only where the server says that it did nothing with it.
        let ask = plan.ask(self.thread);
        self.go::<Grpc, _>(ask, false, transport, slots)
    }

    fn converse(self, said: &Conversation, transport: impl ByteTransport) -> Done {
        let (slots, thread) = (self.connections(), self.thread);
        // Nobody knows what a message does: none is sent again.
        match said.mode {
            Mode::Echo => {
                let transport = said.sockets(transport, slots, thread);
                self.go::<Echo, _>(said.echo(), false, transport, slots)
            }
            Mode::Connect => self.go::<Connect, _>(said.connect(thread), false, transport, slots),
            Mode::Broadcast => {
                let ask = broadcast::Ask {
                    members: slots as u32,
                };
                let transport = said.room(transport, Monotonic);
                self.go::<Broadcast, _>(ask, false, transport, said.at_once as usize)
            }
        }
    }

    fn go<P: Protocol, T: Transport<Medium = P::Medium>>(
        self,
        ask: P::Ask,
        idempotent: bool,
        transport: T,
        slots: usize,
    ) -> Done {
        let Part {
            spec,
            target,
            course,
            thread,
            slices,
        } = self;
        let orders = Orders {
            idempotent,
            keepalive: spec.keepalive,
            timeout: nanos(spec.timeout_s),
        };
        let arrivals = spec
            .pace()
            .map(|pace| Arrivals::new(spec.arrivals, pace, spec.seed, thread, spec.threads));
        let requests = match spec.length() {
            Length::Span(_) => None,
            Length::Requests(requests) => Some(share(requests, thread, spec.threads)),
        };
        let mut record = Record::new(thread, spec.max_examples, Some(slices));
        let named = target.requests().map_or(0, |requests| requests.all.len());
        record.by_request = (0..named).map(|_| Share::default()).collect();
        record.steps = Steps::new(spec.steps().iter().map(|step| step.length));
        let agenda = Agenda::new(arrivals, requests);
        let worker =
            Worker::<P, _, _>::new(orders, ask, transport, Monotonic, agenda, record, slots);
        // A closed loop has no moment to miss, and may need all of its CPU.
        let worker = if spec.is_open() {
            worker.prompt()
        } else {
            worker
        };
        worker.run(course)
    }
}

/// The transports of bytes a real load can use.
enum Bottom {
    Epoll(Box<Epoll>),
    #[cfg(target_os = "linux")]
    Uring(Box<Uring>),
    #[cfg(target_os = "linux")]
    Adaptive(Box<Adaptive>),
}

impl Bottom {
    /// `open`: the load is an open loop, whose answers the kernel is to stamp.
    #[cfg(target_os = "linux")]
    fn epoll(target: &Endpoint, open: bool, slots: usize) -> io::Result<Bottom> {
        let epoll = Epoll::new(target.clone(), slots)?;
        let epoll = if open { epoll.stamped() } else { epoll };
        Ok(Bottom::Epoll(Box::new(epoll)))
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
            _ => Epoll::new(target.clone(), slots).map(|epoll| Bottom::Epoll(Box::new(epoll))),
        }
    }
}

/// Thread `thread`'s share of `whole` things dealt one by one.
fn share(whole: u64, thread: u64, threads: u64) -> u64 {
    whole / threads + u64::from(thread < whole % threads)
}
