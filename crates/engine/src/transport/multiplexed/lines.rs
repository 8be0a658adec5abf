//! What happens to the lines: they are opened, read, left and lost, and the slots that use them are told.

use std::io;

use super::Multiplexed;
use super::line::{Stage, copy, fault};
use super::places::At;
use crate::transport::{ByteTransport, Event, Reading, Received, Token};

impl<T: ByteTransport> Multiplexed<T> {
    /// Gives slots that wait for a connection their place on it; opens it where there is none.
    pub(super) fn admit(&mut self, connection: usize) -> io::Result<()> {
        let number = match self.connections[connection].line {
            Some(number) => number,
            None => match self.open(connection)? {
                Some(number) => number,
                None => return Ok(()),
            },
        };
        if self.lines[number].stage != Stage::Open {
            return Ok(());
        }
        let waiting = &mut self.connections[connection].waiting;
        while self.lines[number].has_room()
            && let Some(token) = waiting.pop_front()
        {
            self.places.of(token).at = At::Line(number);
            self.lines[number].attached += 1;
            self.pending.push(Event::Connected(token));
        }
        for token in waiting {
            let place = self.places.of(*token);
            if place.at == At::Waiting {
                place.at = At::Parked;
                self.pending.push(Event::Full(*token));
            }
        }
        Ok(())
    }

    /// Opens a line for a connection somebody waits for. None: none is free yet, or nobody waits.
    fn open(&mut self, connection: usize) -> io::Result<Option<usize>> {
        if self.connections[connection].waiting.is_empty() {
            return Ok(None);
        }
        let lines = [connection, connection + self.connections.len()];
        let Some(number) = lines.into_iter().find(|&line| self.lines[line].is_free()) else {
            return Ok(None);
        };
        self.lines[number].begin(self.settings);
        self.connections[connection].line = Some(number);
        if let Err(error) = self.inner.connect(self.lines[number].token(number)) {
            self.lines[number].end(None);
            self.connections[connection].line = None;
            // Only the slot that asks now is told by the error; the others wait for its next attempt.
            self.connections[connection].waiting.pop_back();
            return Err(error);
        }
        Ok(Some(number))
    }

    /// Nobody waits for a connection that is still being made: it is given up.
    pub(super) fn abandon(&mut self, connection: usize) {
        if let Some(number) = self.connections[connection].line
            && self.connections[connection].waiting.is_empty()
            && matches!(self.lines[number].stage, Stage::Opening | Stage::Greeting)
        {
            self.drop_line(number, None);
        }
    }

    /// Closes a line that serves nobody any more.
    pub(super) fn release(&mut self, number: usize) {
        let line = &self.lines[number];
        if line.stage != Stage::Absent && line.attached == 0 {
            self.write(number);
            self.drop_line(number, None);
        }
    }

    fn drop_line(&mut self, number: usize, why: Option<io::Error>) {
        let connection = number % self.connections.len();
        self.inner.close(self.lines[number].token(number));
        self.lines[number].end(why);
        if self.connections[connection].line == Some(number) {
            self.connections[connection].line = None;
        }
    }

    /// Acts on an event of the transport below.
    pub(super) fn act(&mut self, event: Event, events: &mut Vec<Event>) {
        match event {
            Event::Connected(token) => {
                if let Some(number) = self.current_line(token) {
                    let line = &mut self.lines[number];
                    line.stage = Stage::Greeting;
                    line.session.open(&mut line.out);
                    self.write(number);
                }
            }
            Event::NotConnected(token, error) => {
                if let Some(number) = self.current_line(token) {
                    self.lose(number, Some(error));
                }
            }
            Event::Readable(token, reading) => {
                if let Some(number) = self.current_line(token) {
                    self.read(number, token, reading, events);
                }
            }
            Event::Sent(_) | Event::Full(_) => {}
        }
    }

    fn current_line(&self, token: Token) -> Option<usize> {
        let number = token.slot as usize;
        (self.lines[number].generation == token.generation).then_some(number)
    }

    fn read(&mut self, number: usize, token: Token, mut reading: Reading, events: &mut Vec<Event>) {
        let mut heard = false;
        loop {
            let fed = match self.inner.received(token, &mut reading) {
                Received::Piece(bytes) => {
                    let line = &mut self.lines[number];
                    let (places, stash) = (&mut self.places, &mut self.stash);
                    let fed = line.session.feed(bytes, &mut line.out, |tag, event| {
                        heard = true;
                        let token = places.token(number, tag);
                        let place = places.of(token);
                        place.unread += 1;
                        place.active &= !event.ends();
                        let kept = stash.keep(event);
                        announce(events, token, kept);
                    });
                    fed.map_err(|error| fault(&error))
                }
                Received::Nothing => break,
                Received::Closed => match self.lines[number].session.eof() {
                    Ok(()) => return self.lose(number, None),
                    Err(error) => Err(fault(&error)),
                },
                Received::Failed(error) => Err(error),
            };
            if let Err(error) = fed {
                self.write(number);
                return self.lose(number, Some(error));
            }
        }
        self.after(number, heard, events);
    }

    /// A line was read: what that changes for it as a whole. `heard`: there were events of its streams.
    fn after(&mut self, number: usize, heard: bool, events: &mut Vec<Event>) {
        let connection = number % self.connections.len();
        let line = &mut self.lines[number];
        if !line.out.is_empty() {
            self.owing.push(number);
        }
        if !line.sending.is_empty() {
            self.tell_sent(number, events);
        }
        let line = &mut self.lines[number];
        if line.stage == Stage::Greeting && line.session.is_ready() {
            if let Some(goaway) = line.session.going_away() {
                // Another attempt at once would meet the same, again and again.
                let why = format!("the server takes no requests: {goaway}");
                let error = io::Error::new(io::ErrorKind::ConnectionRefused, why);
                return self.lose(number, Some(error));
            }
            line.stage = Stage::Open;
            self.count_opened(connection);
        }
        if heard && !std::mem::replace(&mut self.connections[connection].answered, true) {
            self.census.answered += 1;
        }
        let line = &self.lines[number];
        if line.stage == Stage::Open && line.session.going_away().is_some() {
            self.leave(number);
        }
        if !self.connections[connection].waiting.is_empty() {
            // An error here is one of the system below, and the next attempt of whoever waits meets it again.
            let _ = self.admit(connection);
        }
    }

    fn count_opened(&mut self, connection: usize) {
        let before = std::mem::replace(&mut self.connections[connection].opened, true);
        match before {
            true => self.census.reopened += 1,
            false => self.census.opened += 1,
        }
    }

    /// Slots whose requests have gone out whole, or go out no further because their answers are there.
    fn tell_sent(&mut self, number: usize, events: &mut Vec<Event>) {
        let line = &mut self.lines[number];
        let places = &mut self.places;
        let count = places.connections();
        line.sending.retain(|&slot| {
            let tag = slot / count as u32;
            let token = places.token(number, tag);
            let over = line.session.is_sent(tag) || !places.of(token).active;
            if over {
                events.push(Event::Sent(token));
            }
            !over
        });
    }

    /// The server takes no more requests on a line: its idle slots are told, the others when their requests end.
    pub(super) fn leave(&mut self, number: usize) {
        let connection = number % self.connections.len();
        self.lines[number].stage = Stage::Leaving;
        if self.connections[connection].line == Some(number) {
            self.connections[connection].line = None;
        }
        let idle = self
            .places
            .at_line(number)
            .filter(|(_, place)| !place.active);
        self.pending
            .extend(idle.map(|(token, _)| Event::Readable(token, Reading::default())));
        self.release(number);
    }

    /// A line has ended. Slots that use it are told; those that only waited for it fail to connect.
    fn lose(&mut self, number: usize, why: Option<io::Error>) {
        let connection = number % self.connections.len();
        let waits_for_it = matches!(self.lines[number].stage, Stage::Opening | Stage::Greeting);
        if waits_for_it {
            let error = why.as_ref().map_or_else(closed_at_once, copy);
            let (places, pending) = (&mut self.places, &mut self.pending);
            self.connections[connection].waiting.retain(|&token| {
                // Those that were told of no room wait for nothing in particular, and go on to do so.
                let parked = places.of(token).at == At::Parked;
                if !parked {
                    places.leave(token);
                    pending.push(Event::NotConnected(token, copy(&error)));
                }
                parked
            });
        }
        let users = self.places.at_line(number);
        self.pending
            .extend(users.map(|(token, _)| Event::Readable(token, Reading::default())));
        // Those whose requests are lost will ask.
        let token = self.lines[number].token(number);
        self.lines[number].round_trip = self.inner.round_trip(token);
        self.drop_line(number, why);
        if !waits_for_it {
            let _ = self.admit(connection);
        }
    }
}

fn closed_at_once() -> io::Error {
    fault(&crate::protocol::http2::Http2Error::ClosedAtOnce)
}

/// Tells a slot of an event kept for it, together with the one before if that was its own.
#[inline]
fn announce(events: &mut Vec<Event>, token: Token, kept: usize) {
    if let Some(Event::Readable(last, reading)) = events.last_mut()
        && *last == token
        && reading.buffer > 0
        && reading.buffer < u16::MAX
    {
        reading.buffer += 1;
        return;
    }
    let reading = Reading {
        more: false,
        buffer: 1,
        length: kept as i32,
        ..Reading::default()
    };
    events.push(Event::Readable(token, reading));
}
