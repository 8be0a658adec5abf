//! Streams over HTTP/2 connections, each stream a slot of its own, over any transport of bytes.
//!
//! Slot `s` of `connections × streams` belongs to connection `s % connections`, so that requests spread over all of
//! them. A connection has two lines, each a session over one connection of the transport below: when the server says
//! GOAWAY, the requests in flight finish on the one and new ones begin on the other.
//!
//! What a connection is to send is gathered until another connection is acted on, [`GATHERED`] requests have come
//! together, or the worker is about to wait: many streams cost one write, and no request waits for the end of a batch.

mod line;
mod lines;
mod places;
mod stash;

use std::collections::VecDeque;
use std::io;

use crate::clock::Nanos;
use crate::protocol::http2::{CANCEL, Settings, StreamEvent};
use crate::record::Connections;

use super::{
    ByteTransport, Event, Incoming, Reading, Received, Sending, Standing, StreamRequest, Streams,
    TcpInfo, Token, Transport,
};
use line::{Line, Stage};
use places::{At, Places};
use stash::Stash;

/// Requests that go out in one write at most.
const GATHERED: u32 = 16;

/// Of one request, bytes that wait for the server's windows: a gigabyte is an upload, more is a mistake.
const MAX_WAITING: usize = 1 << 30;

/// See the module.
pub struct Multiplexed<T> {
    inner: T,
    settings: Settings,
    /// The connections are closed after each request.
    single_use: bool,
    /// Line `l` belongs to connection `l % connections`.
    lines: Vec<Line>,
    connections: Vec<Connection>,
    places: Places,
    stash: Stash,
    /// The line that was acted on last; it alone may hold requests back.
    current: Option<usize>,
    /// Lines with something to send that no request follows.
    owing: Vec<usize>,
    /// Told with the next batch.
    pending: Vec<Event>,
    below: Vec<Event>,
    census: Connections,
}

/// One of the connections asked for.
#[derive(Default)]
struct Connection {
    /// The line that takes its requests.
    line: Option<usize>,
    /// Slots that wait for it.
    waiting: VecDeque<Token>,
    opened: bool,
    answered: bool,
}

impl<T: ByteTransport> Multiplexed<T> {
    /// `connections` connections of `streams` slots each over `inner`, which must have room for [`lines`].
    pub fn new(inner: T, connections: usize, streams: u32, keepalive: bool) -> Multiplexed<T> {
        let settings = Settings {
            streams,
            max_waiting: MAX_WAITING,
            ..Settings::default()
        };
        Multiplexed {
            inner,
            settings,
            single_use: !keepalive,
            lines: (0..lines(connections))
                .map(|_| Line::new(settings))
                .collect(),
            connections: (0..connections).map(|_| Connection::default()).collect(),
            places: Places::new(connections, streams as usize),
            stash: Stash::default(),
            current: None,
            owing: Vec::new(),
            pending: Vec::new(),
            below: Vec::new(),
            census: Connections::default(),
        }
    }

    /// Before a line is acted on: what another one held back goes out.
    #[inline]
    fn turn_to(&mut self, line: usize) {
        if self.current != Some(line) {
            self.flush();
            self.current = Some(line);
        }
    }

    fn flush(&mut self) {
        if let Some(line) = self.current.take() {
            self.write(line);
        }
    }

    fn write(&mut self, number: usize) {
        let line = &mut self.lines[number];
        line.held = 0;
        if !line.out.is_empty() {
            let token = line.token(number);
            self.inner.write(token, &mut line.out);
        }
    }

    /// A request could not be begun although the slot was promised room: the server has lowered its limit, or the
    /// numbers of streams are used up. It counts as refused, and the slot waits for room elsewhere.
    #[cold]
    fn expel(&mut self, token: Token, line: usize) {
        if self.lines[line].session.in_flight() == 0 {
            self.leave(line);
        }
        let place = self.places.of(token);
        (place.expelled, place.active) = (true, true);
        self.pending
            .push(Event::Readable(token, Reading::default()));
    }
}

/// How many connections the transport below must have room for.
pub fn lines(connections: usize) -> usize {
    2 * connections
}

impl<T: ByteTransport> Transport for Multiplexed<T> {
    type Medium = Streams;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        self.places.enter(token);
        let connection = self.places.connection(token);
        self.connections[connection].waiting.push_back(token);
        self.admit(connection)
    }

    #[inline]
    fn send(&mut self, token: Token, request: &StreamRequest) -> Sending {
        let At::Line(number) = self.places.of(token).at else {
            return Sending::Pending;
        };
        self.turn_to(number);
        let tag = self.places.tag(token);
        let Line { session, out, .. } = &mut self.lines[number];
        let begun = match &request.head {
            Some(head) => session.begin(tag, head, &request.body, request.end, out),
            None => session.send(tag, &request.body, request.end, out),
        };
        if begun.is_err() {
            // More of a request whose stream has ended is wanted by nobody, and its end is on its way to the worker.
            if request.head.is_some() {
                self.expel(token, number);
            }
            return Sending::Done;
        }
        let whole = !request.end || session.is_sent(tag);
        let line = &mut self.lines[number];
        line.held += 1;
        if !whole {
            line.sending.push(token.slot);
        }
        if line.held >= GATHERED {
            self.write(number);
        }
        self.places.of(token).active = true;
        if whole {
            Sending::Done
        } else {
            Sending::Pending
        }
    }

    #[inline]
    fn received(&mut self, token: Token, reading: &mut Reading) -> Received<Incoming<'_, Streams>> {
        let place = self.places.of(token);
        if reading.buffer > 0 {
            let number = reading.length as usize;
            reading.buffer -= 1;
            reading.length += 1;
            place.unread -= 1;
            return match self.stash.event(number) {
                Some(event) => Received::Piece(event),
                None => Received::Nothing,
            };
        }
        if place.expelled {
            if std::mem::take(&mut place.active) {
                return Received::Piece(StreamEvent::Refused);
            }
            return Received::Closed;
        }
        let At::Line(number) = place.at else {
            return Received::Nothing;
        };
        let (unread, active) = (place.unread, place.active);
        let line = &self.lines[number];
        match line.stage {
            _ if unread > 0 => Received::Nothing,
            Stage::Absent => line.why().map_or(Received::Closed, Received::Failed),
            Stage::Leaving if !active => Received::Closed,
            _ => Received::Nothing,
        }
    }

    fn close(&mut self, token: Token) {
        let Some(place) = self.places.get(token) else {
            return;
        };
        let (at, active) = (place.at, place.active);
        self.places.leave(token);
        let connection = self.places.connection(token);
        let At::Line(number) = at else {
            self.connections[connection]
                .waiting
                .retain(|waiting| *waiting != token);
            return self.abandon(connection);
        };
        let tag = self.places.tag(token);
        let line = &mut self.lines[number];
        line.attached -= 1;
        if active && line.stage != Stage::Absent {
            line.session.cancel(tag, CANCEL, &mut line.out);
            self.owing.push(number);
        }
        if self.single_use || self.lines[number].stage == Stage::Leaving {
            self.release(number);
        }
        // The error of an attempt to connect is told to those who wait.
        let _ = self.admit(connection);
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        self.flush();
        while let Some(line) = self.owing.pop() {
            self.write(line);
        }
        self.stash.clear();
        let until = if self.pending.is_empty() { until } else { now };
        let mut below = std::mem::take(&mut self.below);
        self.inner.poll(now, until, &mut below)?;
        for event in below.drain(..) {
            self.act(event, events);
        }
        self.below = below;
        events.append(&mut self.pending);
        Ok(())
    }

    fn delay(&self, token: Token, limit_s: f64) -> String {
        let connection = &self.connections[self.places.connection(token)];
        match connection.line.map(|line| self.lines[line].stage) {
            Some(Stage::Greeting) => format!(
                "the server took the connection and sent no SETTINGS within {limit_s} s: it does not speak HTTP/2 here"
            ),
            _ => format!("no connection within {limit_s} s"),
        }
    }

    fn census(&self, _: Connections) -> Connections {
        self.census
    }

    fn standing(&self) -> Standing {
        self.inner.standing()
    }

    fn look(&self, number: usize) -> Option<TcpInfo> {
        self.inner.look(number % self.lines.len())
    }

    /// Of the line a slot is at, also after that has ended.
    fn round_trip(&self, token: Token) -> Option<Nanos> {
        match self.places.get(token)?.at {
            At::Line(number) => self.lines[number].round_trip,
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        self.inner.name()
    }
}
