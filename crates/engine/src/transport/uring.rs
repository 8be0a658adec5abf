//! Transport over io_uring: multishot receives into provided buffers, sends submitted in batches.
//!
//! A request on a kept-alive connection costs its share of one `io_uring_enter` per batch and no other system call.
//! Needs Linux 6.1; where it is older or forbids io_uring, [`Uring::new`] says so and epoll serves.

#[allow(unsafe_code)]
mod ring;

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::Arc;

use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};
use socket2::{SockAddr, Socket};

use crate::clock::{Nanos, SECOND};
use crate::endpoint::{Endpoint, LEAVING, Sockets};
use crate::os::sockets::Stamps;
use crate::protocol::{Bytes, Payload};
use crate::transport::uring::ring::{
    Buffers, Flights, GROUP, Landing, MAX_SLOTS, Operation, Stamped, label, unlabel,
};
use crate::transport::{
    ByteTransport, Event, Need, Probe, Reading, Received, Sending, Stage, Standing, Summary,
    TcpInfo, Token, Transport, no_connection_within, shortest_round_trip,
};

const ENTRIES: u32 = 2048;
const COMPLETIONS: u32 = 16384;
/// A request up to this size fits into a fresh socket buffer, so its completion would tell nothing and is not asked for.
const SMALL: usize = 4096;
struct Link {
    socket: Socket,
    generation: u32,
    /// Bytes of the large request in flight that are out.
    sent: usize,
    /// Bytes of it are under way; the order of two sends at once would be the kernel's to choose.
    flying: bool,
    /// What goes out after them.
    queued: Vec<u8>,
}

/// See the module.
pub struct Uring {
    ring: ManuallyDrop<IoUring>,
    buffers: ManuallyDrop<Buffers>,
    /// The kernel reads the address while it connects: it must not move.
    target: ManuallyDrop<Box<SockAddr>>,
    /// Every request that was sent whole; the kernel may read one until its connection is gone. A load has one: bytes
    /// that change are written as flights.
    requests: ManuallyDrop<Vec<Arc<[u8]>>>,
    flights: ManuallyDrop<Flights>,
    sockets: Sockets,
    links: Vec<Option<Link>>,
    connects: Stage,
    /// Receives that ended because all buffers were lent.
    starved: Vec<Token>,
    /// Connects and receives that the kernel has not finished with.
    under_way: usize,
    completions: Vec<(u64, i32, u32)>,
    /// A [`Operation::Watch`] is under way.
    watching: bool,
    /// See [`LEAVING`].
    leaving: Vec<(Token, Socket)>,
    /// Where the kernel is asked when bytes came.
    stamped: ManuallyDrop<Option<Stamped>>,
}

impl Uring {
    /// A transport for up to `slots` connections to `target`; an error where this system has no such io_uring.
    pub fn new(target: impl Into<Endpoint>, slots: usize) -> io::Result<Uring> {
        if slots > MAX_SLOTS {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        let ring = IoUring::builder()
            // Only this thread submits, and completions are worked off when it asks: without the two, each completion
            // interrupts it, and io_uring is slower than epoll.
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS)
            .build(ENTRIES)?;
        crate::os::sharpen_timers();
        let buffers = Buffers::register(&ring, slots)?;
        let sockets = Sockets::new(target, slots);
        Ok(Uring {
            ring: ManuallyDrop::new(ring),
            buffers: ManuallyDrop::new(buffers),
            target: ManuallyDrop::new(Box::new(sockets.target())),
            requests: ManuallyDrop::new(Vec::new()),
            flights: ManuallyDrop::default(),
            sockets,
            links: (0..slots).map(|_| None).collect(),
            connects: Stage::new(slots),
            starved: Vec::new(),
            under_way: 0,
            completions: Vec::with_capacity(COMPLETIONS as usize),
            watching: false,
            leaving: Vec::new(),
            stamped: ManuallyDrop::new(None),
        })
    }

    /// Asks the kernel when bytes came, from the next connection on: completions are seen in batches, and late.
    #[must_use]
    pub fn stamped(mut self) -> Uring {
        self.stamped = ManuallyDrop::new(Some(Stamped::new()));
        self
    }

    fn link(&mut self, token: Token) -> Option<&mut Link> {
        let link = self.links.get_mut(token.slot as usize)?.as_mut()?;
        (link.generation == token.generation).then_some(link)
    }

    /// Moves completions out of the ring.
    fn collect(&mut self) {
        for done in self.ring.completion() {
            let (operation, _) = unlabel(done.user_data());
            let quiet = matches!(
                operation,
                Operation::Send | Operation::Release | Operation::Watch
            );
            let over = !cqueue::more(done.flags()) && !quiet;
            self.under_way -= usize::from(over);
            self.completions
                .push((done.user_data(), done.result(), done.flags()));
        }
    }

    /// Submits what is queued and waits for a completion.
    fn wait(&mut self, longest: Nanos) -> io::Result<()> {
        let timeout = Timespec::new()
            .sec(longest / SECOND)
            .nsec((longest % SECOND) as u32);
        let arguments = SubmitArgs::new().timespec(&timeout);
        let Err(error) = self.ring.submitter().submit_with_args(1, &arguments) else {
            return Ok(());
        };
        match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(error),
        }
    }
}

impl Transport for Uring {
    type Medium = Bytes;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        self.connects.begin(token.slot);
        self.start_connect(token)
    }

    #[inline]
    fn send(&mut self, token: Token, request: &Payload) -> Sending {
        let request = match request {
            Payload::Shared(request) => request,
            Payload::Own(bytes) => return self.send_copy(token, bytes),
        };
        if !self
            .requests
            .last()
            .is_some_and(|last| Arc::ptr_eq(last, request))
        {
            self.requests.push(request.clone());
        }
        if let Some(link) = self.link(token) {
            link.sent = 0;
        }
        self.push_send(token, request);
        if request.len() <= SMALL {
            Sending::Done
        } else {
            Sending::Pending
        }
    }

    #[inline]
    fn receive(&mut self, _: Token, reading: &mut Reading, _: Need) -> Received<&[u8]> {
        let Reading::Buffer { number, result } = std::mem::take(reading) else {
            return Received::Nothing;
        };
        let Ok(length) = usize::try_from(result) else {
            return Received::Failed(io::Error::from_raw_os_error(-result));
        };
        if length == 0 {
            return Received::Closed;
        }
        let bytes = self.buffers.bytes(number, length);
        match &mut *self.stamped {
            None => Received::Piece(bytes),
            Some(stamped) => stamped.unwrap(bytes),
        }
    }

    fn answered(&mut self, _: u64) {}

    fn close(&mut self, token: Token) {
        if self.link(token).is_some()
            && let Some(link) = self.links[token.slot as usize].take()
        {
            self.leaving.push((token, link.socket));
            if self.leaving.len() >= LEAVING {
                self.let_go();
            }
        }
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        self.buffers.give_back();
        self.let_go();
        for token in std::mem::take(&mut self.starved) {
            self.arm(token);
        }
        // What was collected while operations were queued must not wait for what comes next.
        let longest = if self.completions.is_empty() {
            until.saturating_sub(now)
        } else {
            0
        };
        self.wait(longest)?;
        if let Some(stamped) = &mut *self.stamped {
            stamped.align();
        }
        self.collect();
        let mut completions = std::mem::take(&mut self.completions);
        for (label, result, flags) in completions.drain(..) {
            let (operation, token) = unlabel(label);
            let current = self.link(token).is_some();
            match operation {
                Operation::Receive => self.brought(token, result, flags, current, events),
                Operation::Connect if current => self.connected(token, result, events),
                Operation::Send if current => self.sent(token, result, events),
                Operation::Fly => self.flew(token.slot, result, events),
                Operation::Watch => self.watching = false,
                _ => {}
            }
        }
        // Operations queued meanwhile may have collected more: that is for the next poll.
        completions.append(&mut self.completions);
        self.completions = completions;
        Ok(())
    }
}

impl Probe for Uring {
    #[inline]
    fn arrived(&self) -> Option<Nanos> {
        self.stamped.as_ref()?.last()
    }

    fn tcp_info(&self, number: usize) -> Option<TcpInfo> {
        TcpInfo::of(&self.links.get(number)?.as_ref()?.socket)
    }

    fn round_trip(&self, token: Token) -> Option<Nanos> {
        shortest_round_trip(self.tcp_info(token.slot as usize))
    }

    fn why_absent(&self, _: Token, limit_s: f64) -> String {
        no_connection_within(limit_s)
    }

    fn summary(&self) -> Summary {
        Summary {
            name: "io_uring",
            standing: Standing {
                connect: Some(self.connects.times()),
                tls: None,
            },
            ..Summary::default()
        }
    }
}

impl ByteTransport for Uring {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        match self.link(token) {
            Some(link) if link.flying => link.queued.append(bytes),
            Some(_) => self.depart(token, bytes),
            None => bytes.clear(),
        }
        Sending::Pending
    }
}

impl Uring {
    /// From now on what comes is received.
    fn arm(&mut self, token: Token) {
        let Some(link) = self.link(token) else { return };
        let fd = Fd(link.socket.as_raw_fd());
        self.under_way += 1;
        let receive = match &*self.stamped {
            None => opcode::RecvMulti::new(fd, GROUP).build(),
            Some(stamped) => opcode::RecvMsgMulti::new(fd, stamped.wanted(), GROUP).build(),
        };
        self.push(&receive.user_data(label(Operation::Receive, token)));
    }

    /// Makes a connection.
    fn start_connect(&mut self, token: Token) -> io::Result<()> {
        let socket = self.sockets.open()?;
        let fd = Fd(socket.as_raw_fd());
        self.links[token.slot as usize] = Some(Link {
            socket,
            generation: token.generation,
            sent: 0,
            flying: false,
            queued: Vec::new(),
        });
        let connect = opcode::Connect::new(fd, self.target.as_ptr().cast(), self.target.len());
        self.under_way += 1;
        self.push(&connect.build().user_data(label(Operation::Connect, token)));
        Ok(())
    }

    /// Submits the rest of a request.
    fn push_send(&mut self, token: Token, request: &Arc<[u8]>) {
        let Some(link) = self.link(token) else { return };
        let (fd, rest) = (Fd(link.socket.as_raw_fd()), &request[link.sent..]);
        let send = opcode::Send::new(fd, rest.as_ptr(), rest.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(label(Operation::Send, token));
        let quiet = if request.len() <= SMALL {
            Flags::SKIP_SUCCESS
        } else {
            Flags::empty()
        };
        self.push(&send.flags(quiet));
    }
}

impl Uring {
    /// A connect has ended.
    fn connected(&mut self, token: Token, result: i32, events: &mut Vec<Event>) {
        if result == -libc::EADDRNOTAVAIL
            && self.sockets.next_source()
            && self.start_connect(token).is_ok()
        {
            return;
        }
        if result < 0 {
            let error = io::Error::from_raw_os_error(-result);
            return events.push(Event::NotConnected(token, error));
        }
        self.connects.end(token.slot);
        if self.stamped.is_some()
            && let Some(link) = self.link(token)
        {
            // Without them the moment of reading is taken, which is what other systems have.
            let _ = Stamps::ask(&link.socket);
        }
        self.arm(token);
        events.push(Event::Connected(token));
    }

    /// A receive has brought something, or ended.
    fn brought(
        &mut self,
        token: Token,
        result: i32,
        flags: u32,
        current: bool,
        events: &mut Vec<Event>,
    ) {
        let buffer = cqueue::buffer_select(flags);
        if let Some(buffer) = buffer {
            self.buffers.lent(buffer);
        }
        if !current {
            return;
        }
        let ended = !cqueue::more(flags);
        if result == -libc::ENOBUFS {
            return self.starved.push(token);
        }
        let reading = Reading::Buffer {
            number: buffer.unwrap_or(0),
            result,
        };
        events.push(Event::Readable(token, reading));
        if ended && result > 0 {
            self.starved.push(token);
        }
    }

    /// Sends bytes that belong to this connection alone, and takes them away.
    fn depart(&mut self, token: Token, bytes: &mut Vec<u8>) {
        let number = self.flights.depart(token, bytes);
        self.fly(number);
    }

    /// Sends bytes that are made anew each time: the kernel reads while it sends, and the next are made meanwhile.
    fn send_copy(&mut self, token: Token, bytes: &[u8]) -> Sending {
        match self.link(token) {
            Some(link) if link.flying => link.queued.extend_from_slice(bytes),
            Some(_) => {
                let number = self.flights.copy(token, bytes);
                self.fly(number);
            }
            None => {}
        }
        Sending::Pending
    }

    /// Sends what is not out of a flight.
    fn fly(&mut self, number: u32) {
        let Some((token, rest)) = self.flights.rest(number) else {
            return;
        };
        let (start, length) = (rest.as_ptr(), rest.len() as u32);
        let flight = Token {
            slot: number,
            generation: 0,
        };
        let Some(link) = self.link(token) else {
            // The connection is gone, and nobody waits for the rest.
            self.flights.arrive(number, -libc::ECANCELED);
            return;
        };
        link.flying = true;
        let send = opcode::Send::new(Fd(link.socket.as_raw_fd()), start, length)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(label(Operation::Fly, flight));
        self.under_way += 1;
        self.push(&send);
    }

    /// A flight has ended, or a part of it.
    fn flew(&mut self, number: u32, result: i32, events: &mut Vec<Event>) {
        let token = match self.flights.arrive(number, result) {
            Some(Landing::Part) => return self.fly(number),
            Some(Landing::Over(token)) => token,
            None => return,
        };
        let Some(link) = self.link(token) else { return };
        link.flying = false;
        let mut queued = std::mem::take(&mut link.queued);
        if !queued.is_empty() {
            self.depart(token, &mut queued);
        } else if result >= 0 {
            events.push(Event::Sent(token));
        }
    }

    /// A large request is out, or a part of it.
    fn sent(&mut self, token: Token, result: i32, events: &mut Vec<Event>) {
        // A send that failed has lost its peer; the receive tells, after an answer that may have come before.
        let Ok(count) = usize::try_from(result) else {
            return;
        };
        let Some(request) = self.requests.last().cloned() else {
            return;
        };
        let Some(link) = self.link(token) else { return };
        link.sent += count;
        if link.sent >= request.len() {
            events.push(Event::Sent(token));
        } else {
            self.push_send(token, &request);
        }
    }
}

impl Uring {
    /// Lets a connection go that carries no request: nothing of this ring reads from its socket any more. None: it is
    /// not here.
    pub fn release(&mut self, token: Token) -> Option<Socket> {
        self.link(token)?;
        let armed = label(Operation::Receive, token);
        let cancel = opcode::AsyncCancel::new(armed)
            .build()
            .flags(Flags::SKIP_SUCCESS)
            .user_data(label(Operation::Release, token));
        self.push(&cancel);
        // The receive only waits for its socket, and such a wait is marked as ended within the call: it takes no byte
        // that comes later.
        let _ = self.ring.submit();
        self.links[token.slot as usize]
            .take()
            .map(|link| link.socket)
    }

    /// Closes the connections that left, with the next batch. What is queued for them goes out before, and nothing is
    /// queued after: the number of a descriptor is nobody else's until the kernel has closed it.
    fn let_go(&mut self) {
        for (token, socket) in std::mem::take(&mut self.leaving) {
            let fd = Fd(socket.into_raw_fd());
            let told = label(Operation::Release, token);
            // An operation under way would keep the socket open.
            let end = opcode::AsyncCancel2::new(CancelBuilder::fd(fd).all()).build();
            self.push(&end.flags(Flags::SKIP_SUCCESS).user_data(told));
            let close = opcode::Close::new(fd).build();
            self.push(&close.flags(Flags::SKIP_SUCCESS).user_data(told));
        }
    }

    /// Closes what left although nobody polls.
    pub fn flush(&mut self) {
        if !self.leaving.is_empty() {
            self.let_go();
            let _ = self.ring.submit();
        }
    }

    /// Lets the next wait end when a poller has something, too.
    pub fn watch(&mut self, poller: RawFd) {
        if std::mem::replace(&mut self.watching, true) {
            return;
        }
        let nobody = Token {
            slot: 0,
            generation: 0,
        };
        self.push(
            &opcode::PollAdd::new(Fd(poller), libc::POLLIN as u32)
                .build()
                .user_data(label(Operation::Watch, nobody)),
        );
    }

    /// Whether a connection is here.
    pub fn holds(&self, token: Token) -> bool {
        let link = self.links.get(token.slot as usize);
        matches!(link, Some(Some(link)) if link.generation == token.generation)
    }
}
