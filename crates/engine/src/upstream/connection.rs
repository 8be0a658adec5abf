//! One caller: its requests in, its answers out, in order and when they are due.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;

use super::Plan;
use super::facts::Tally;
use super::replies::{Persistence, Reply, Status};
use super::requests::{Heard, Request, Requests};
use crate::chance::chance;
use crate::transport::os;
use crate::transport::poller::Interest;

/// Decides when and how each request is answered, and counts.
pub(super) struct Clerk {
    pub plan: Arc<Plan>,
    pub tally: Tally,
    /// Number of the next request: of one thread every `threads`-th, so that all together are 0, 1, 2, …
    next: u64,
}

impl Clerk {
    pub fn new(plan: Arc<Plan>, thread: u32) -> Self {
        Self {
            plan,
            tally: Tally::new(),
            next: u64::from(thread),
        }
    }

    fn decide(&mut self, request: Request, now: u64) -> Pending {
        let spec = &self.plan.spec;
        let n = self.next;
        self.next += u64::from(spec.threads);
        self.tally.since.requests += 1;
        // Draws 0 and 1 make the latency.
        let fault = spec.errors > 0.0 && chance(spec.seed, n, 2) < spec.errors;
        let status = if fault { Status::Fault } else { Status::Right };
        let latency = request
            .latency
            .unwrap_or_else(|| spec.latency.sample(spec.seed, n));
        let due = self.released(now + latency);
        Pending {
            due,
            reply: Reply {
                status,
                persistence: request.persistence,
                head_only: request.head_only,
            },
        }
    }

    fn refuse(&mut self, now: u64) -> Pending {
        let reply = Reply {
            status: Status::Refusal,
            persistence: Persistence::Close,
            head_only: false,
        };
        Pending { due: now, reply }
    }

    fn released(&self, due: u64) -> u64 {
        let started = self.plan.started;
        self.plan
            .spec
            .stall
            .map_or(due, |stall| started + stall.release(due - started))
    }

    fn answered(&mut self, status: Status, late: u64) {
        let counts = &mut self.tally.since;
        counts.answered += 1;
        counts.errors += u64::from(status == Status::Fault);
        counts.refused += u64::from(status == Status::Refusal);
        counts.late.saturating_record(late);
    }
}

/// An answer and when it goes out, nanoseconds on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
struct Pending {
    due: u64,
    reply: Reply,
}

/// What a connection waits for next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Requests,
    /// The moment its first answer is due.
    Due(u64),
    /// Room in the kernel's buffer.
    Room,
    /// Nothing: close it.
    End,
    /// The caller's close, not for long: closing first would take the last answer from it (a reset discards what
    /// was not read yet).
    Farewell,
}

/// So many pipelined requests are read ahead; the rest waits in the kernel until some are answered.
const MOST_PENDING: usize = 256;

pub(super) struct Connection {
    pub stream: TcpStream,
    requests: Requests,
    /// Read, but not looked at because too many answers are pending.
    held: Vec<u8>,
    pending: VecDeque<Pending>,
    /// Bytes of the first pending answer that went out.
    written: usize,
    /// How late the first pending answer began to go out.
    late: u64,
    /// When the last answer went out: a pipelined one is not late while it waits for its predecessor.
    free: u64,
    /// No more requests: the last one ended the connection, or the caller did.
    last_heard: bool,
    /// A refusal went out; see [`Next::Farewell`].
    farewell: bool,
    /// Told of bytes it does not want.
    vain: bool,
    /// What the poller was asked for.
    interest: Interest,
    /// Which of its timers counts; others in the heap are out of date.
    pub timer: Option<u64>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            requests: Requests::new(),
            held: Vec::new(),
            pending: VecDeque::new(),
            written: 0,
            late: 0,
            free: 0,
            last_heard: false,
            farewell: false,
            vain: false,
            interest: Interest::READ,
            timer: None,
        }
    }

    /// Requests without a complete answer.
    pub fn active(&self) -> usize {
        self.pending.len()
    }

    /// Whether it only waits for its caller to read a refusal.
    pub fn is_leaving(&self) -> bool {
        self.farewell
    }

    fn wants_bytes(&self) -> bool {
        self.farewell || (!self.last_heard && self.held.is_empty())
    }

    /// What the poller has to be asked for, `next` being what is waited for; `None`: no change.
    ///
    /// Interest in bytes is taken back only when some came in vain: after the last request of a connection they
    /// rarely do, and each change is a system call.
    pub fn new_interest(&mut self, next: Next) -> Option<Interest> {
        let wanted = Interest {
            read: self.wants_bytes(),
            write: next == Next::Room,
        };
        let read = wanted.read || (self.interest.read && !self.vain);
        let new = Interest { read, ..wanted };
        self.vain = false;
        (new != self.interest).then(|| {
            self.interest = new;
            new
        })
    }

    /// Reads what came. Returns false if the connection broke.
    pub fn read(&mut self, clerk: &mut Clerk, buffer: &mut [u8]) -> bool {
        if !self.wants_bytes() {
            self.vain = true;
            return true;
        }
        match self.stream.read(buffer) {
            Ok(0) => self.last_heard = true,
            Ok(_) if self.farewell => return true,
            Ok(count) => {
                self.hear(clerk, &buffer[..count]);
                return true;
            }
            Err(error) => {
                return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            }
        }
        !self.farewell
    }

    fn hear(&mut self, clerk: &mut Clerk, mut bytes: &[u8]) {
        let now = os::monotonic();
        while !bytes.is_empty() && !self.last_heard {
            if self.pending.len() >= MOST_PENDING {
                self.held = bytes.to_vec();
                return;
            }
            let pending = match self.requests.hear(bytes) {
                Ok((used, heard)) => {
                    bytes = &bytes[used..];
                    match heard {
                        Heard::Whole(request) => clerk.decide(request, now),
                        Heard::Waits => {
                            self.go_on();
                            continue;
                        }
                        Heard::More => return,
                    }
                }
                Err(_) => clerk.refuse(now),
            };
            self.last_heard = pending.reply.persistence == Persistence::Close;
            self.pending.push_back(pending);
        }
    }

    /// Tells the caller to send its body. Behind pending answers it would be out of order; a caller that gets no
    /// `100 Continue` sends the body after a while all the same (RFC 9110, section 10.1.1).
    fn go_on(&mut self) {
        if self.pending.is_empty() {
            // Twenty-five bytes into an empty buffer; were they lost, see above.
            let _ = self.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
    }

    /// Sends every answer that is due. An error means that the connection broke.
    pub fn advance(&mut self, clerk: &mut Clerk) -> io::Result<Next> {
        if self.farewell {
            return Ok(Next::Requests);
        }
        while let Some(Pending { due, reply }) = self.pending.front().copied() {
            if self.written == 0 {
                let now = os::monotonic();
                if due > now {
                    return Ok(Next::Due(due));
                }
                self.late = now - due.max(self.free);
            }
            let bytes = clerk.plan.replies.bytes(reply);
            match self.stream.write(&bytes[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Next::Room),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.written == bytes.len() {
                self.finish(clerk, reply);
            }
        }
        if !self.last_heard {
            return Ok(Next::Requests);
        }
        Ok(if self.farewell {
            Next::Farewell
        } else {
            Next::End
        })
    }

    fn finish(&mut self, clerk: &mut Clerk, reply: Reply) {
        self.pending.pop_front();
        self.written = 0;
        clerk.answered(reply.status, self.late);
        if !self.pending.is_empty() {
            self.free = os::monotonic();
        }
        if reply.status == Status::Refusal {
            // What the caller goes on to send is read and dropped until it closes.
            self.farewell = self.stream.shutdown(Shutdown::Write).is_ok();
        } else if !self.held.is_empty() && self.pending.len() <= MOST_PENDING / 2 {
            let held = std::mem::take(&mut self.held);
            self.hear(clerk, &held);
        }
    }
}
