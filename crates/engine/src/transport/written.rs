//! Requests that are made anew each time, over any transport of bytes.

use std::io;

use super::{
    ByteTransport, Event, Reading, Received, Sending, Standing, TcpInfo, Token, Transport,
};
use crate::clock::Nanos;
use crate::protocol::Written;
use crate::transport::Connections;

/// See the module: the bytes of a request are copied, so that the next can be made while these go out.
pub struct Fresh<T> {
    inner: T,
    out: Vec<u8>,
}

impl<T: ByteTransport> Fresh<T> {
    /// Over `inner`.
    pub fn new(inner: T) -> Fresh<T> {
        Fresh {
            inner,
            out: Vec::new(),
        }
    }
}

impl<T: ByteTransport> Transport for Fresh<T> {
    type Medium = Written;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        self.inner.connect(token)
    }

    #[inline]
    fn send(&mut self, token: Token, request: &Vec<u8>) -> Sending {
        self.out.clear();
        self.out.extend_from_slice(request);
        self.inner.write(token, &mut self.out)
    }

    #[inline]
    fn received(&mut self, token: Token, reading: &mut Reading) -> Received<&[u8]> {
        self.inner.received(token, reading)
    }

    #[inline]
    fn discard(&mut self, token: Token, reading: &mut Reading, left: u64) -> Option<Received<u64>> {
        self.inner.discard(token, reading, left)
    }

    #[inline]
    fn weighed(&mut self, bulk: u64) {
        self.inner.weighed(bulk);
    }

    fn changed_for(&self) -> Option<u64> {
        self.inner.changed_for()
    }

    #[inline]
    fn arrived(&self) -> Option<Nanos> {
        self.inner.arrived()
    }

    fn close(&mut self, token: Token) {
        self.inner.close(token);
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        self.inner.poll(now, until, events)
    }

    fn patience(&self) -> Nanos {
        self.inner.patience()
    }

    fn delay(&self, token: Token, limit_s: f64) -> String {
        self.inner.delay(token, limit_s)
    }

    fn census(&self, of_slots: Connections) -> Connections {
        self.inner.census(of_slots)
    }

    fn standing(&self) -> Standing {
        self.inner.standing()
    }

    fn look(&self, number: usize) -> Option<TcpInfo> {
        self.inner.look(number)
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}
