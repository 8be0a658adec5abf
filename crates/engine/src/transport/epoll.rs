//! Transport over epoll: edge-triggered, one registration per connection, reads and writes tried directly.
//!
//! A request on a kept-alive connection costs one `send`, one `recv` and its share of one `epoll_pwait2`.

mod taking;

use std::io;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use socket2::Socket;
use taking::{drop_bytes, ends, read};

use super::unsent::Unsent;
use super::{
    ByteTransport, Event, Reading, Received, Sending, Stage, Standing, TURN, TcpInfo, Token,
    Transport, unsent,
};
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::endpoint::{Endpoint, LEAVING, Sockets};
use crate::os::sockets::Stamps;
use crate::protocol::Bytes;

/// With 8 kB, reading a body of 20 MB costs twice the CPU: 18 k against 41 k answers of 220 kB per second.
const READ_BUFFER: usize = 512 * 1024;
/// Room for the head of an answer whose body is dropped.
const HEAD_BUFFER: usize = 4096;
/// More is not dropped at once: a count of bytes is a C int in the kernel.
const LARGEST_DROP: usize = 1 << 30;
/// Events taken at once.
const BATCH: usize = 256;

struct Link {
    stream: TcpStream,
    generation: u32,
    connecting: bool,
    /// What did not fit into the socket's buffer.
    unsent: Option<Unsent>,
}

/// See the module.
pub struct Epoll {
    sockets: Sockets,
    poller: OwnedFd,
    links: Vec<Option<Link>>,
    connects: Stage,
    ready: Vec<libc::epoll_event>,
    buffer: Box<[u8]>,
    /// The kernel is older than 5.11: time-outs are whole milliseconds.
    coarse: bool,
    /// The kernel can drop what comes: it is TCP.
    drops: bool,
    /// Where the kernel is asked when bytes came.
    stamps: Option<Stamps>,
    /// See [`LEAVING`].
    leaving: Vec<TcpStream>,
    /// Connections whose turn ended with bytes unread, and the flags of their event: no edge will tell of them again.
    unfinished: Vec<(Token, i32)>,
}

impl Epoll {
    /// A transport for up to `slots` connections to `target`.
    pub fn new(target: impl Into<Endpoint>, slots: usize) -> io::Result<Epoll> {
        // SAFETY: takes flags only; the result is checked before it is used as a descriptor.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        crate::os::sharpen_timers();
        let target = target.into();
        Ok(Epoll {
            drops: !target.is_unix(),
            sockets: Sockets::new(target, slots),
            // SAFETY: `fd` is open and nobody else owns it.
            poller: unsafe { OwnedFd::from_raw_fd(fd) },
            links: (0..slots).map(|_| None).collect(),
            connects: Stage::new(slots),
            ready: vec![libc::epoll_event { events: 0, u64: 0 }; BATCH],
            buffer: vec![0; READ_BUFFER].into(),
            coarse: false,
            stamps: None,
            leaving: Vec::new(),
            unfinished: Vec::new(),
        })
    }

    /// Asks the kernel when bytes came, from the next connection on. Costs a tenth of a microsecond for each reading.
    #[must_use]
    pub fn stamped(mut self) -> Epoll {
        self.stamps = Some(Stamps::new());
        self
    }

    /// Takes over a connection that another transport has made.
    pub fn adopt(&mut self, token: Token, socket: Socket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let stream = TcpStream::from(socket);
        self.register(&stream, token)?;
        self.keep(token, stream, false);
        Ok(())
    }

    /// Its descriptor, for whoever waits for something else as well.
    pub fn descriptor(&self) -> RawFd {
        self.poller.as_raw_fd()
    }

    fn keep(&mut self, token: Token, stream: TcpStream, connecting: bool) {
        let link = Link {
            stream,
            generation: token.generation,
            connecting,
            unsent: None,
        };
        self.links[token.slot as usize] = Some(link);
    }

    fn link(&mut self, token: Token) -> Option<&mut Link> {
        let link = self.links.get_mut(token.slot as usize)?.as_mut()?;
        (link.generation == token.generation).then_some(link)
    }

    fn register(&self, stream: &TcpStream, token: Token) -> io::Result<()> {
        let interest = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;
        let mut event = libc::epoll_event {
            events: interest as u32,
            u64: token.pack(),
        };
        // SAFETY: both descriptors are open here and `event` lives through the call.
        let result = unsafe {
            libc::epoll_ctl(
                self.poller.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                stream.as_raw_fd(),
                &mut event,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Fills `ready` and returns how many there are.
    fn wait(&mut self, timeout: Nanos) -> io::Result<usize> {
        let (poller, events) = (self.poller.as_raw_fd(), self.ready.as_mut_ptr());
        let count = if self.coarse {
            // Rounded up: waking before the time would spin until it comes.
            let millis = timeout.div_ceil(MILLISECOND).min(i32::MAX as u64) as i32;
            // SAFETY: `events` points to BATCH events that outlive the call.
            unsafe { libc::epoll_wait(poller, events, BATCH as i32, millis) }
        } else {
            let timeout = libc::timespec {
                tv_sec: (timeout / SECOND) as libc::time_t,
                tv_nsec: (timeout % SECOND) as libc::c_long,
            };
            // By number: the C library's wrapper is younger than the system call.
            // SAFETY: `events` points to BATCH events and `timeout` to a timespec, and both outlive the call; no
            // signal mask is given.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    poller,
                    events,
                    BATCH as libc::c_int,
                    &raw const timeout,
                    std::ptr::null::<libc::sigset_t>(),
                    0usize,
                ) as i32
            }
        };
        if count >= 0 {
            return Ok(count as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            // EPERM: seccomp filters older than the call say so.
            Some(libc::ENOSYS | libc::EPERM) if !self.coarse => {
                self.coarse = true;
                self.wait(timeout)
            }
            _ => Err(error),
        }
    }

    fn translate(&mut self, ready: libc::epoll_event, events: &mut Vec<Event>) {
        let (flags, token) = (ready.events as i32, Token::unpack(ready.u64));
        let Some(link) = self.link(token) else { return };
        let broken = flags & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
        if link.connecting {
            if !broken && flags & libc::EPOLLOUT == 0 {
                return;
            }
            link.connecting = false;
            if broken && let Ok(Some(error)) = link.stream.take_error() {
                events.push(Event::NotConnected(token, error));
                return;
            }
            self.connects.end(token.slot);
            events.push(Event::Connected(token));
        } else if flags & libc::EPOLLOUT != 0
            && link.unsent.is_some()
            && unsent::write(&link.stream, &mut link.unsent) == Sending::Done
        {
            events.push(Event::Sent(token));
        }
        if broken || flags & (libc::EPOLLIN | libc::EPOLLRDHUP) != 0 {
            events.push(readable(token, flags));
        }
    }
}

fn readable(token: Token, flags: i32) -> Event {
    Event::Readable(
        token,
        Reading {
            more: true,
            length: flags,
            ..Reading::default()
        },
    )
}

impl Transport for Epoll {
    type Medium = Bytes;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        self.connects.begin(token.slot);
        let stream = TcpStream::from(self.sockets.connect()?);
        self.register(&stream, token)?;
        if self.stamps.is_some() {
            Stamps::ask(&stream)?;
        }
        self.keep(token, stream, true);
        Ok(())
    }

    #[inline]
    fn send(&mut self, token: Token, request: &Arc<[u8]>) -> Sending {
        let Some(link) = self.link(token) else {
            return Sending::Pending;
        };
        match unsent::write_some(&link.stream, request) {
            Ok(count) if count == request.len() => Sending::Done,
            Ok(count) => {
                link.unsent = Some(Unsent::shared(request, count));
                // More may fit by now, and an edge that came between would not come again.
                unsent::write(&link.stream, &mut link.unsent)
            }
            Err(_) => Sending::Pending,
        }
    }

    #[inline]
    fn received(&mut self, token: Token, reading: &mut Reading) -> Received<&[u8]> {
        if !reading.more {
            return Received::Nothing;
        }
        if reading.buffer == TURN {
            reading.more = false;
            self.unfinished.push((token, reading.length));
            return Received::Nothing;
        }
        reading.buffer += 1;
        let Some(link) = self.links[token.slot as usize].as_ref() else {
            return Received::Nothing;
        };
        let room = match std::mem::take(&mut reading.brief) {
            true => HEAD_BUFFER,
            false => READ_BUFFER,
        };
        loop {
            match read(&link.stream, &mut self.buffer[..room], &mut self.stamps) {
                Ok(0) => return Received::Closed,
                Ok(count) => {
                    reading.more = count == room || ends(reading);
                    return Received::Piece(&self.buffer[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    reading.more = false;
                    return Received::Nothing;
                }
                Err(error) => return Received::Failed(error),
            }
        }
    }

    #[inline]
    fn discard(&mut self, token: Token, reading: &mut Reading, left: u64) -> Option<Received<u64>> {
        if !reading.more {
            return Some(Received::Nothing);
        }
        if !self.drops {
            return None;
        }
        let Some(link) = self.links[token.slot as usize].as_ref() else {
            return Some(Received::Nothing);
        };
        // With room for more than is expected, a short count tells that the socket is empty, as with `received`.
        let asked = usize::try_from(left.saturating_add(READ_BUFFER as u64))
            .unwrap_or(LARGEST_DROP)
            .min(LARGEST_DROP);
        Some(match drop_bytes(&link.stream, asked, &mut self.stamps) {
            Ok(0) => Received::Closed,
            Ok(count) => {
                reading.more = count == asked || ends(reading);
                Received::Piece(count as u64)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                reading.more = false;
                Received::Nothing
            }
            Err(error) => Received::Failed(error),
        })
    }

    #[inline]
    fn arrived(&self) -> Option<Nanos> {
        self.stamps.as_ref()?.last()
    }

    fn close(&mut self, token: Token) {
        if self.link(token).is_some()
            && let Some(link) = self.links[token.slot as usize].take()
            && self.leaving.len() < LEAVING
        {
            self.leaving.push(link.stream);
        }
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        // Closing the descriptors takes them out of the epoll set.
        self.leaving.clear();
        let until = if self.unfinished.is_empty() {
            until
        } else {
            now
        };
        let count = self.wait(until.saturating_sub(now))?;
        if count > 0
            && let Some(stamps) = &mut self.stamps
        {
            stamps.align();
        }
        for index in 0..count {
            self.translate(self.ready[index], events);
        }
        for (token, flags) in std::mem::take(&mut self.unfinished) {
            if self.link(token).is_some() {
                events.push(readable(token, flags));
            }
        }
        Ok(())
    }

    fn standing(&self) -> Standing {
        Standing {
            connect: Some(self.connects.times()),
            tls: None,
        }
    }

    fn look(&self, number: usize) -> Option<TcpInfo> {
        TcpInfo::of(&self.links.get(number)?.as_ref()?.stream)
    }

    fn name(&self) -> &'static str {
        "epoll"
    }
}

impl ByteTransport for Epoll {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        match self.link(token) {
            Some(link) => unsent::send_own(&link.stream, &mut link.unsent, bytes),
            None => Sending::Pending,
        }
    }
}
