//! io_uring, until large answers come of which most is not looked at: then epoll, connection by connection.
//!
//! io_uring hands over what the kernel has copied already, segment by segment. Over epoll the kernel drops what nobody
//! looks at, which is several times cheaper (`benchmarks/README.md`). A connection moves when it sends its next request.

use std::io;
use std::sync::Arc;

use super::epoll::Epoll;
use super::uring::Uring;
use super::{
    ByteTransport, Bytes, Endpoint, Event, Reading, Received, Sending, Standing, TcpInfo, Token,
    Transport,
};
use crate::clock::Nanos;

/// So much to be dropped makes an answer large. Below, one receive into one buffer brings all of it.
const LARGE: u64 = 64 * 1024;

/// See the module.
pub struct Adaptive {
    uring: Uring,
    /// Where large answers are received, once there was one.
    epoll: Option<Epoll>,
    /// Connections of `uring`.
    behind: usize,
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
            target,
            slots,
        })
    }

    /// From now on connections are epoll's as they send.
    #[cold]
    fn turn(&mut self) {
        // Where there is no epoll to be had, io_uring goes on.
        self.epoll = Epoll::new(self.target.clone(), self.slots).ok();
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
    fn send(&mut self, token: Token, request: &Arc<[u8]>) -> Sending {
        self.fetch(token);
        match &mut self.epoll {
            None => self.uring.send(token, request),
            Some(epoll) => epoll.send(token, request),
        }
    }

    #[inline]
    fn received(&mut self, token: Token, reading: &mut Reading) -> Received<&[u8]> {
        match &mut self.epoll {
            Some(epoll) if !self.uring.holds(token) => epoll.received(token, reading),
            _ => self.uring.received(token, reading),
        }
    }

    #[inline]
    fn discard(&mut self, token: Token, reading: &mut Reading, most: u64) -> Option<Received<u64>> {
        match &mut self.epoll {
            Some(epoll) if !self.uring.holds(token) => epoll.discard(token, reading, most),
            Some(_) => None,
            None => {
                if most >= LARGE {
                    self.turn();
                }
                None
            }
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

    fn standing(&self) -> Standing {
        let mut standing = self.uring.standing();
        if let Some(epoll) = &self.epoll {
            standing.add(epoll.standing());
        }
        standing
    }

    fn look(&self, number: usize) -> Option<TcpInfo> {
        let behind = self.uring.look(number);
        behind.or_else(|| self.epoll.as_ref()?.look(number))
    }

    fn name(&self) -> &'static str {
        match self.epoll {
            None => self.uring.name(),
            Some(_) => "epoll",
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
