//! The simulated third party: an HTTP server that answers when it was told to, late by microseconds, at little CPU.
//!
//! ```
//! use velodrome_engine::upstream::Upstream;
//! let mut upstream = Upstream::start(r#"{"latency": "lognormal(50ms,0.4)", "errors": 0.01}"#).unwrap();
//! println!("http://127.0.0.1:{}/?velodrome-latency=75ms", upstream.port()); // one request may have its own latency
//! let facts = upstream.stop(); // {"requests":0,…,"late_ms":{"p50":null,…},…}
//! ```
//!
//! Each thread owns its connections, its timers and its counts; nothing is shared on the path of a request.

mod requests;
mod shard;
mod spec;
#[cfg(test)]
mod tests;

use crate::clock::monotonic;
use std::io;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::os;
use crate::upstream::requests::Replies;
use crate::upstream::shard::{Command, Shard};
use crate::upstream::spec::Spec;

pub use requests::{Incoming, NotARequest, Persistence, Request, Requests};
pub use spec::{Latency, duration};

/// Why a third party cannot start.
#[derive(Debug, Error)]
pub enum UpstreamError {
    /// The specification: every problem it has, in one sentence.
    #[error("the third party cannot be simulated: {}", .0.join("; "))]
    Spec(Vec<String>),
    /// The address is taken, not ours, or needs rights.
    #[error("the third party cannot listen on {address}: {source}")]
    Listen { address: String, source: io::Error },
    /// The system has no more threads or file descriptors.
    #[error("the third party cannot start: {0}")]
    System(#[from] io::Error),
}

/// What all threads know.
#[derive(Debug)]
struct Plan {
    spec: Spec,
    replies: Replies,
    /// On `CLOCK_MONOTONIC`, nanoseconds. Stalls are counted from here.
    started: u64,
}

struct Handle {
    commands: Sender<Command>,
    wake: UnixStream,
    thread: JoinHandle<()>,
}

/// A running third party; ends with `stop` or when dropped.
pub struct Upstream {
    port: u16,
    plan: Arc<Plan>,
    /// Empty once stopped. The lock lets `facts` be asked from any thread.
    handles: Mutex<Vec<Handle>>,
    last: Option<String>,
}

impl Upstream {
    /// Binds and starts the threads. `spec` is JSON: host ("127.0.0.1"), port (0: a fresh one), latency ("0ms"; see
    /// [`Latency`]), errors (0, a share), stall (null or `{"every_s":…,"for_s":…}`), body (64 bytes, or
    /// `{"text":…}`, `{"base64":…}`), type ("text/plain"), threads (1), seed (1).
    ///
    /// # Errors
    /// All problems of the specification at once; or the address; or the system.
    pub fn start(spec: &str) -> Result<Self, UpstreamError> {
        let spec = Spec::parse(spec).map_err(UpstreamError::Spec)?;
        // As many connections as the system allows; fewer than thousands are still worth serving.
        let _ = os::allow_files(MANY_FILES);
        let address = format!("{}:{}", spec.host, spec.port);
        let listener = listen(&spec.host, spec.port)
            .map_err(|source| UpstreamError::Listen { address, source })?;
        let port = listener.local_addr()?.port();
        let replies = Replies::new(&spec.body, &spec.content_type);
        let plan = Arc::new(Plan {
            spec,
            replies,
            started: monotonic(),
        });
        let mut upstream = Self {
            port,
            plan,
            handles: Mutex::default(),
            last: None,
        };
        for thread in 0..upstream.plan.spec.threads {
            let handle = upstream.spawn(thread, listener.try_clone()?)?;
            upstream
                .handles
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .push(handle);
        }
        Ok(upstream)
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// What it did since it started, as JSON: requests, answered, active, connections, cpu_s, late_ms {p50, p99, max}
    /// (how much later than due an answer was written), errors, stalls; and under `since` the same since the last time
    /// facts were asked. `failed` is there if a thread died.
    #[must_use]
    pub fn facts(&self) -> String {
        match &self.last {
            Some(last) => last.clone(),
            None => self.ask(Command::Facts),
        }
    }

    /// Closes everything and returns the last facts; again and again the same.
    pub fn stop(&mut self) -> String {
        if let Some(last) = &self.last {
            return last.clone();
        }
        let last = self.ask(Command::Stop);
        for handle in self
            .handles
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            // A thread that panicked was already told of under `failed`.
            let _ = handle.thread.join();
        }
        self.last.insert(last).clone()
    }

    fn spawn(&self, thread: u32, listener: TcpListener) -> io::Result<Handle> {
        let (commands, inbox) = mpsc::channel();
        let (wake, woken) = UnixStream::pair()?;
        let shard = Shard::new(Arc::clone(&self.plan), thread, listener, woken, inbox)?;
        let name = format!("upstream-{thread}");
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || shard.run())?;
        Ok(Handle {
            commands,
            wake,
            thread,
        })
    }

    fn ask(&self, command: impl Fn(Sender<Snapshot>) -> Command) -> String {
        let handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let (reply, answers) = mpsc::channel();
        for handle in handles.iter() {
            // Where the thread is gone its answer is missing, which is told below.
            let _ = handle.commands.send(command(reply.clone()));
            let _ = (&handle.wake).write(&[0]);
        }
        drop(reply);
        let snapshots: Vec<Snapshot> = answers.iter().collect();
        let stalls = self
            .plan
            .spec
            .stall
            .map_or(0, |stall| stall.begun(monotonic() - self.plan.started));
        document(&snapshots, stalls, handles.len() - snapshots.len())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Thousands of callers, each with a connection; what most hard limits allow without asking root.
const MANY_FILES: u64 = 65_536;

/// A backlog as long as the system allows: the third party is never what turns a caller away.
fn listen(host: &str, port: u16) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
    for address in (host, port).to_socket_addrs()? {
        match bound(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bound(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM,
        None,
    )?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::from(u16::MAX))?;
    Ok(socket.into())
}

/// Counts of one thread.
#[derive(Debug, Clone)]
struct Counts {
    /// Requests received whole.
    pub requests: u64,
    pub answered: u64,
    /// Answers with status 500.
    pub errors: u64,
    /// Answers with status 400: what came was not a request.
    pub refused: u64,
    pub cpu_ns: u64,
    /// From when an answer was due to when it was written, nanoseconds.
    pub late: Histogram<u64>,
}

/// Answers later than this count as this late, about a minute.
const LATEST_NS: u64 = 1 << 36;

impl Counts {
    pub fn new() -> Self {
        // Two digits are 1 %: 35 kB a histogram. Bounds and digits are constants the library accepts.
        let late = Histogram::new_with_bounds(1, LATEST_NS, 2).expect("constant bounds");
        Self {
            requests: 0,
            answered: 0,
            errors: 0,
            refused: 0,
            cpu_ns: 0,
            late,
        }
    }

    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.answered += other.answered;
        self.errors += other.errors;
        self.refused += other.refused;
        self.cpu_ns += other.cpu_ns;
        // Both have the same bounds, so nothing can be out of range.
        let _ = self.late.add(&other.late);
    }

    fn describe(&self) -> Map<String, Value> {
        let late = |value: u64| (!self.late.is_empty()).then_some(value as f64 / 1e6);
        let plain = json!({
            "requests": self.requests,
            "answered": self.answered,
            "errors": self.errors,
            "refused": self.refused,
            "cpu_s": self.cpu_ns as f64 / 1e9,
            "late_ms": {
                "p50": late(self.late.value_at_quantile(0.5)),
                "p99": late(self.late.value_at_quantile(0.99)),
                "max": late(self.late.max()),
            },
        });
        match plain {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

/// What one thread tells when it is asked.
#[derive(Debug)]
struct Snapshot {
    total: Counts,
    since: Counts,
    since_ns: u64,
    active: u64,
    connections: u64,
}

/// The counting of one thread: in all, and since facts were last asked.
#[derive(Debug)]
struct Tally {
    /// Up to when facts were last asked.
    before: Counts,
    pub since: Counts,
    asked: u64,
    cpu_asked: u64,
}

impl Tally {
    /// To be called on the thread whose CPU time counts.
    pub fn new() -> Self {
        let cpu_asked = os::cpu_time().total();
        Self {
            before: Counts::new(),
            since: Counts::new(),
            asked: monotonic(),
            cpu_asked,
        }
    }

    pub fn snapshot(&mut self, active: u64, connections: u64) -> Snapshot {
        let (now, cpu) = (monotonic(), os::cpu_time().total());
        let mut since = std::mem::replace(&mut self.since, Counts::new());
        since.cpu_ns = cpu.saturating_sub(self.cpu_asked);
        self.before.add(&since);
        let since_ns = now - self.asked;
        (self.asked, self.cpu_asked) = (now, cpu);
        Snapshot {
            total: self.before.clone(),
            since,
            since_ns,
            active,
            connections,
        }
    }
}

/// The facts of all threads as one JSON object.
fn document(snapshots: &[Snapshot], stalls: u64, dead: usize) -> String {
    let (mut total, mut since) = (Counts::new(), Counts::new());
    for snapshot in snapshots {
        total.add(&snapshot.total);
        since.add(&snapshot.since);
    }
    let mut document = total.describe();
    let mut recent = since.describe();
    let span = snapshots
        .iter()
        .map(|snapshot| snapshot.since_ns)
        .max()
        .unwrap_or(0);
    recent.insert("span_s".to_owned(), json!(span as f64 / 1e9));
    document.insert("since".to_owned(), Value::Object(recent));
    document.insert(
        "active".to_owned(),
        json!(snapshots.iter().map(|s| s.active).sum::<u64>()),
    );
    document.insert(
        "connections".to_owned(),
        json!(snapshots.iter().map(|s| s.connections).sum::<u64>()),
    );
    document.insert("stalls".to_owned(), json!(stalls));
    if dead > 0 {
        document.insert(
            "failed".to_owned(),
            json!(format!("{dead} of its threads died")),
        );
    }
    Value::Object(document).to_string()
}
