//! Connections whose sockets are read and written when the system says that they are ready: epoll on Linux, kqueue on
//! macOS. Edge-triggered, one registration per connection, reads and writes tried directly.
//!
//! A request on a kept-alive connection costs one `send`, one `recv` and its share of one `epoll_pwait2`.

use std::io::{self, ErrorKind, Write};
use std::net::TcpStream;
#[cfg(target_os = "linux")]
use std::os::fd::RawFd;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use socket2::Socket;

use super::{
    ByteTransport, Bytes, Event, Need, Probe, Reading, Received, Sending, Stage, Standing, Summary,
    TURN, TcpInfo, Token, Transport, no_connection_within, shortest_round_trip,
};
use crate::clock::Nanos;
use crate::endpoint::{Endpoint, LEAVING, Sockets};
use crate::os;
use crate::os::poller::Poller;
use crate::os::readiness::{Interest, Mode, Ready};
use crate::os::sockets::{CAN_DISCARD, Stamps, discard, read};
use crate::protocol::Payload;

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
pub struct Polled {
    sockets: Sockets,
    poller: Poller,
    links: Vec<Option<Link>>,
    connects: Stage,
    ready: Vec<Ready>,
    buffer: Box<[u8]>,
    /// The kernel can drop what comes: it is TCP.
    drops: bool,
    /// Where the kernel is asked when bytes came.
    stamps: Option<Stamps>,
    /// See [`LEAVING`].
    leaving: Vec<TcpStream>,
    /// Connections whose turn ended with bytes unread, and whether their end was announced: no edge will tell of them
    /// again.
    unfinished: Vec<(Token, bool)>,
}

impl Polled {
    /// A transport for up to `slots` connections to `target`.
    pub fn new(target: impl Into<Endpoint>, slots: usize) -> io::Result<Polled> {
        let poller = Poller::new(BATCH)?;
        os::sharpen_timers();
        let target = target.into();
        Ok(Polled {
            drops: CAN_DISCARD && !target.is_unix(),
            sockets: Sockets::new(target, slots),
            poller,
            links: (0..slots).map(|_| None).collect(),
            connects: Stage::new(slots),
            ready: Vec::with_capacity(BATCH),
            buffer: vec![0; READ_BUFFER].into(),
            stamps: None,
            leaving: Vec::new(),
            unfinished: Vec::new(),
        })
    }

    /// Asks the kernel when bytes came, from the next connection on. Costs a tenth of a microsecond for each reading.
    #[must_use]
    pub fn stamped(mut self) -> Polled {
        self.stamps = Some(Stamps::new());
        self
    }

    /// Takes over a connection that another transport has made.
    #[cfg(target_os = "linux")]
    pub fn adopt(&mut self, token: Token, socket: Socket) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let stream = TcpStream::from(socket);
        self.register(&stream, token)?;
        self.keep(token, stream, false);
        Ok(())
    }

    /// Its descriptor, for whoever waits for something else as well.
    #[cfg(target_os = "linux")]
    pub fn descriptor(&self) -> RawFd {
        self.poller.descriptor()
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
        self.poller
            .add(stream, token.pack(), Interest::BOTH, Mode::Edge)
    }

    fn translate(&mut self, ready: Ready, events: &mut Vec<Event>) {
        let token = Token::unpack(ready.token);
        let Some(link) = self.link(token) else { return };
        if link.connecting {
            if !ready.broken && !ready.write {
                return;
            }
            link.connecting = false;
            // Only epoll says which of them failed; elsewhere each is asked.
            if (ready.broken || cfg!(not(target_os = "linux")))
                && let Ok(Some(error)) = link.stream.take_error()
            {
                events.push(Event::NotConnected(token, error));
                return;
            }
            self.connects.end(token.slot);
            events.push(Event::Connected(token));
        } else if ready.write
            && link.unsent.is_some()
            && write(&link.stream, &mut link.unsent) == Sending::Done
        {
            events.push(Event::Sent(token));
        }
        if ready.read {
            events.push(readable(token, ready.ended));
        }
    }

    /// Drops up to `left` bytes and what came behind them.
    fn drop_some(&mut self, token: Token, reading: &mut Reading, left: u64) -> Received<&[u8]> {
        let Reading::Socket { ended, .. } = *reading else {
            return Received::Nothing;
        };
        let Some(link) = self.links[token.slot as usize].as_ref() else {
            return Received::Nothing;
        };
        // With room for more than is expected, a short count tells that the socket is empty, as when it is read.
        let asked = usize::try_from(left.saturating_add(READ_BUFFER as u64))
            .unwrap_or(LARGEST_DROP)
            .min(LARGEST_DROP);
        match discard(&link.stream, asked, &mut self.stamps) {
            Ok(0) => Received::Closed,
            Ok(count) => {
                if count < asked && !ended {
                    *reading = Reading::Kept;
                }
                Received::Dropped(count as u64)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                *reading = Reading::Kept;
                Received::Nothing
            }
            Err(error) => Received::Failed(error),
        }
    }
}

fn readable(token: Token, ended: bool) -> Event {
    Event::Readable(token, Reading::Socket { ended, pieces: 0 })
}

impl Transport for Polled {
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
    fn send(&mut self, token: Token, request: &Payload) -> Sending {
        let Some(link) = self.link(token) else {
            return Sending::Pending;
        };
        let bytes = request.bytes();
        match write_some(&link.stream, bytes) {
            Ok(count) if count == bytes.len() => Sending::Done,
            Ok(count) => {
                link.unsent = Some(match request {
                    Payload::Shared(request) => Unsent::shared(request, count),
                    Payload::Own(bytes) => Unsent::own(bytes[count..].to_vec(), 0),
                });
                // More may fit by now, and an edge that came between would not come again.
                write(&link.stream, &mut link.unsent)
            }
            Err(_) => Sending::Pending,
        }
    }

    #[inline]
    fn receive(&mut self, token: Token, reading: &mut Reading, need: Need) -> Received<&[u8]> {
        let Reading::Socket { ended, pieces } = reading else {
            return Received::Nothing;
        };
        let room = match need {
            Need::All => READ_BUFFER,
            Need::Head => HEAD_BUFFER,
            Need::NoneOf(left) if self.drops => return self.drop_some(token, reading, left),
            Need::NoneOf(_) => READ_BUFFER,
        };
        if *pieces == TURN {
            self.unfinished.push((token, *ended));
            *reading = Reading::Kept;
            return Received::Nothing;
        }
        *pieces += 1;
        let Some(link) = self.links[token.slot as usize].as_ref() else {
            return Received::Nothing;
        };
        loop {
            match read(&link.stream, &mut self.buffer[..room], &mut self.stamps) {
                Ok(0) => return Received::Closed,
                Ok(count) => {
                    // A short read has emptied the socket, and what comes later makes a new edge; an end that was
                    // announced has to be fetched.
                    if count < room && !*ended {
                        *reading = Reading::Kept;
                    }
                    return Received::Piece(&self.buffer[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    *reading = Reading::Kept;
                    return Received::Nothing;
                }
                Err(error) => return Received::Failed(error),
            }
        }
    }

    fn answered(&mut self, _: u64) {}

    fn close(&mut self, token: Token) {
        if self.link(token).is_some()
            && let Some(link) = self.links[token.slot as usize].take()
            && self.leaving.len() < LEAVING
        {
            self.poller.closing(&link.stream);
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
        let mut ready = std::mem::take(&mut self.ready);
        self.poller
            .wait(Some(until.saturating_sub(now)), &mut ready)?;
        if !ready.is_empty()
            && let Some(stamps) = &mut self.stamps
        {
            stamps.align();
        }
        for ready in &ready {
            self.translate(*ready, events);
        }
        self.ready = ready;
        for (token, ended) in std::mem::take(&mut self.unfinished) {
            if self.link(token).is_some() {
                events.push(readable(token, ended));
            }
        }
        Ok(())
    }
}

impl Probe for Polled {
    #[inline]
    fn arrived(&self) -> Option<Nanos> {
        self.stamps.as_ref()?.last()
    }

    fn tcp_info(&self, number: usize) -> Option<TcpInfo> {
        #[cfg(target_os = "linux")]
        return TcpInfo::of(&self.links.get(number)?.as_ref()?.stream);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = number;
            None
        }
    }

    fn round_trip(&self, token: Token) -> Option<Nanos> {
        shortest_round_trip(self.tcp_info(token.slot as usize))
    }

    fn why_absent(&self, _: Token, limit_s: f64) -> String {
        no_connection_within(limit_s)
    }

    fn summary(&self) -> Summary {
        Summary {
            name: if cfg!(target_os = "linux") {
                "epoll"
            } else {
                "polling"
            },
            standing: Standing {
                connect: Some(self.connects.times()),
                tls: None,
            },
            ..Summary::default()
        }
    }
}

impl ByteTransport for Polled {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        match self.link(token) {
            Some(link) => send_own(&link.stream, &mut link.unsent, bytes),
            None => Sending::Pending,
        }
    }
}

/// The rest of something that is going out.
struct Unsent {
    bytes: Rest,
    /// How much of it is out.
    sent: usize,
}

enum Rest {
    /// A request, shared by all that send it.
    Shared(Arc<[u8]>),
    /// Bytes gathered for this connection alone.
    Own(Vec<u8>),
}

impl Unsent {
    /// A request of which `sent` bytes are out.
    fn shared(request: &Arc<[u8]>, sent: usize) -> Unsent {
        Unsent {
            bytes: Rest::Shared(request.clone()),
            sent,
        }
    }

    /// Bytes of which `sent` are out.
    fn own(bytes: Vec<u8>, sent: usize) -> Unsent {
        Unsent {
            bytes: Rest::Own(bytes),
            sent,
        }
    }

    /// Lets more bytes follow, and takes them away.
    fn follow(&mut self, more: &mut Vec<u8>) {
        match &mut self.bytes {
            Rest::Own(bytes) => bytes.append(more),
            Rest::Shared(request) => {
                let mut bytes = request[self.sent..].to_vec();
                bytes.append(more);
                *self = Unsent::own(bytes, 0);
            }
        }
    }

    fn rest(&self) -> &[u8] {
        match &self.bytes {
            Rest::Shared(request) => &request[self.sent..],
            Rest::Own(bytes) => &bytes[self.sent..],
        }
    }
}

/// Writes what is unsent until it is gone or the socket is full.
fn write(stream: &TcpStream, unsent: &mut Option<Unsent>) -> Sending {
    while let Some(rest) = unsent {
        if rest.rest().is_empty() {
            *unsent = None;
            break;
        }
        match write_some(stream, rest.rest()) {
            Ok(0) => return Sending::Pending,
            Ok(count) => rest.sent += count,
            // The peer is gone, but an answer may lie in our receive buffer: the read will tell.
            Err(_) => {
                *unsent = None;
                return Sending::Pending;
            }
        }
    }
    Sending::Done
}

/// One write: how much the socket took, 0 where it is full.
#[inline]
fn write_some(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match stream.write(bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            result => return result,
        }
    }
}

/// Sends bytes behind what is unsent, and takes them away.
fn send_own(stream: &TcpStream, unsent: &mut Option<Unsent>, bytes: &mut Vec<u8>) -> Sending {
    if let Some(before) = unsent {
        before.follow(bytes);
        return Sending::Pending;
    }
    match write_some(stream, bytes) {
        Ok(count) if count == bytes.len() => {
            bytes.clear();
            Sending::Done
        }
        Ok(count) => {
            *unsent = Some(Unsent::own(std::mem::take(bytes), count));
            // More may fit by now, and an edge that came between would not come again.
            write(stream, unsent)
        }
        // As in `write`.
        Err(_) => {
            bytes.clear();
            Sending::Pending
        }
    }
}
