//! What completions mean to the worker.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::types::Fd;
use io_uring::{cqueue, opcode};

use super::Uring;
use super::flights::Landing;
use crate::transport::label::{Operation, label};
use crate::transport::stamps::Stamps;
use crate::transport::{Event, Reading, Token};

impl Uring {
    /// A connect has ended.
    pub(super) fn connected(&mut self, token: Token, result: i32, events: &mut Vec<Event>) {
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
        self.receive(token);
        events.push(Event::Connected(token));
    }

    /// A receive has brought something, or ended.
    pub(super) fn arrived(
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
        let reading = Reading {
            more: true,
            buffer: buffer.unwrap_or(0),
            length: result,
            ..Reading::default()
        };
        events.push(Event::Readable(token, reading));
        if ended && result > 0 {
            self.starved.push(token);
        }
    }

    /// Sends bytes that belong to this connection alone, and takes them away.
    pub(super) fn depart(&mut self, token: Token, bytes: &mut Vec<u8>) {
        let number = self.flights.depart(token, bytes);
        self.fly(number);
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
    pub(super) fn flew(&mut self, number: u32, result: i32, events: &mut Vec<Event>) {
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
    pub(super) fn sent(&mut self, token: Token, result: i32, events: &mut Vec<Event>) {
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
