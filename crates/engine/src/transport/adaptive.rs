//! io_uring, until answers turn out to have much on average that nobody looks at: then epoll, connection by connection.
//!
//! io_uring hands over what the kernel has copied already, segment by segment. Over epoll the kernel drops what nobody
//! looks at, which is several times cheaper (`benchmarks/README.md`). A connection moves when it sends its next request.
//!
//! One answer decides nothing: the average of all answers so far does, those of the warm-up included, whenever their
//! number has doubled. A request whose every answer is read (it has a check) adds to their number and not to their bytes.

use std::io;

use super::polled::Polled;
use super::uring::Uring;
use super::{
    ByteTransport, Event, Need, Probe, Reading, Received, Sending, Summary, TcpInfo, Token,
    Transport, no_connection_within, shortest_round_trip,
};
use crate::clock::Nanos;
use crate::endpoint::Endpoint;
use crate::protocol::{Bytes, Payload};

/// So many bytes to be dropped of an average answer make epoll the cheaper: not to copy them saves 0.8 us, and a request
/// without io_uring's batches costs 0.5 us more (on 50 connections, from the tables of `benchmarks/README.md`).
const WORTH: u64 = 16 * 1024;
/// Fewer answers do not tell what an average one is.
const FEW: u64 = 16;

/// See the module.
pub struct Adaptive {
    uring: Uring,
    /// Where large answers are received, once there was one.
    epoll: Option<Polled>,
    /// Connections of `uring`.
    behind: usize,
    answers: u64,
    /// Bytes of them that nobody had to look at.
    bulk: u64,
    /// So many answers are looked at together next.
    look: u64,
    /// See [`Summary::changed_for`].
    changed_for: Option<u64>,
    target: Endpoint,
    slots: usize,
}

impl Adaptive {
    /// A transport for up to `slots` connections to `target`; an error where this system has no io_uring.
    pub fn new(target: Endpoint, slots: usize) -> io::Result<Adaptive> {
        Ok(Adaptive {
            uring: Uring::new(target.clone(), slots)?,
            epoll: None,
            behind: 0,
            answers: 0,
            bulk: 0,
            look: FEW,
            changed_for: None,
            target,
            slots,
        })
    }

    /// Looks at all answers so far: where they are worth it, connections are epoll's from now on, as they send.
    #[cold]
    fn decide(&mut self) {
        self.look *= 2;
        let average = self.bulk / self.answers;
        if self.epoll.is_none() && average >= WORTH {
            // Where there is no epoll to be had, io_uring goes on.
            self.epoll = Polled::new(self.target.clone(), self.slots).ok();
            self.changed_for = self.epoll.as_ref().map(|_| average);
        }
    }

    /// Moves a connection that is about to send.
    fn fetch(&mut self, token: Token) {
        if self.behind > 0
            && let Some(epoll) = &mut self.epoll
            && let Some(socket) = self.uring.release(token)
        {
            self.behind -= 1;
            // An epoll that has no room left leaves the connection without events, and its request runs out of time.
            let _ = epoll.adopt(token, socket);
        }
    }
}

impl Transport for Adaptive {
    type Medium = Bytes;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        match &mut self.epoll {
            Some(epoll) => epoll.connect(token),
            None => {
                self.uring.connect(token)?;
                self.behind += 1;
                Ok(())
            }
        }
    }

    #[inline]
    fn send(&mut self, token: Token, request: &Payload) -> Sending {
        self.fetch(token);
        match &mut self.epoll {
            None => self.uring.send(token, request),
            Some(epoll) => epoll.send(token, request),
        }
    }

    #[inline]
    fn receive(&mut self, token: Token, reading: &mut Reading, need: Need) -> Received<&[u8]> {
        match &mut self.epoll {
            Some(epoll) if !self.uring.holds(token) => epoll.receive(token, reading, need),
            _ => self.uring.receive(token, reading, need),
        }
    }

    #[inline]
    fn answered(&mut self, bulk: u64) {
        self.answers += 1;
        self.bulk += bulk;
        if self.answers == self.look {
            self.decide();
        }
    }

    fn close(&mut self, token: Token) {
        if self.uring.holds(token) {
            self.behind -= 1;
            self.uring.close(token);
        } else if let Some(epoll) = &mut self.epoll {
            epoll.close(token);
        }
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let Some(epoll) = &mut self.epoll else {
            return self.uring.poll(now, until, events);
        };
        if self.behind == 0 {
            self.uring.flush();
            return epoll.poll(now, until, events);
        }
        epoll.poll(now, now, events)?;
        self.uring.watch(epoll.descriptor());
        let until = if events.is_empty() { until } else { now };
        self.uring.poll(now, until, events)?;
        if events.is_empty() {
            epoll.poll(now, now, events)?;
        }
        Ok(())
    }
}

impl Probe for Adaptive {
    /// Neither is asked to stamp what comes: a closed loop has no need of it.
    fn arrived(&self) -> Option<Nanos> {
        None
    }

    fn tcp_info(&self, number: usize) -> Option<TcpInfo> {
        let behind = self.uring.tcp_info(number);
        behind.or_else(|| self.epoll.as_ref()?.tcp_info(number))
    }

    fn round_trip(&self, token: Token) -> Option<Nanos> {
        shortest_round_trip(self.tcp_info(token.slot as usize))
    }

    fn why_absent(&self, _: Token, limit_s: f64) -> String {
        no_connection_within(limit_s)
    }

    fn summary(&self) -> Summary {
        let mut summary = self.uring.summary();
        if let Some(epoll) = &self.epoll {
            let epoll = epoll.summary();
            summary.name = epoll.name;
            summary.standing.add(epoll.standing);
        }
        Summary {
            changed_for: self.changed_for,
            ..summary
        }
    }
}

impl ByteTransport for Adaptive {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        self.fetch(token);
        match &mut self.epoll {
            None => self.uring.write(token, bytes),
            Some(epoll) => epoll.write(token, bytes),
        }
    }
}
