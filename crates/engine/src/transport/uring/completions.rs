//! What completions mean to the worker.

use std::io;

use io_uring::cqueue;

use super::Uring;
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
        };
        events.push(Event::Readable(token, reading));
        if ended && result > 0 {
            self.starved.push(token);
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
