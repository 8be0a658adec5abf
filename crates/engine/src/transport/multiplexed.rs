//! Streams over HTTP/2 connections, each stream a slot of its own, over any transport of bytes.
//!
//! Slot `s` of `connections × streams` belongs to connection `s % connections`, so that requests spread over all of
//! them. A connection has two lines, each a session over one connection of the transport below: when the server says
//! GOAWAY, the requests in flight finish on the one and new ones begin on the other.
//!
//! What a connection is to send is gathered until another connection is acted on, [`GATHERED`] requests have come
//! together, or the worker is about to wait: many streams cost one write, and no request waits for the end of a batch.

mod places;
mod stash;

use std::collections::VecDeque;
use std::io;

use crate::clock::Nanos;
use crate::protocol::http2::{CANCEL, Http2Error, Session, Settings, StreamEvent};
use crate::protocol::{Incoming, StreamRequest, Streams};
use crate::transport::multiplexed::places::{At, Places};
use crate::transport::multiplexed::stash::Stash;
use crate::transport::{
    ByteTransport, Connections, Event, Need, Probe, Reading, Received, Sending, Summary, TcpInfo,
    Token, Transport, no_connection_within,
};

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
    fn receive(
        &mut self,
        token: Token,
        reading: &mut Reading,
        _: Need,
    ) -> Received<Incoming<'_, Streams>> {
        let place = self.places.of(token);
        if let Reading::Events { first, count } = *reading {
            *reading = match count {
                1 => Reading::Kept,
                _ => Reading::Events {
                    first: first + 1,
                    count: count - 1,
                },
            };
            place.unread -= 1;
            return match self.stash.event(first as usize) {
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

    fn answered(&mut self, bulk: u64) {
        self.inner.answered(bulk);
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
}

impl<T: ByteTransport> Probe for Multiplexed<T> {
    fn arrived(&self) -> Option<Nanos> {
        None
    }

    fn tcp_info(&self, number: usize) -> Option<TcpInfo> {
        self.inner.tcp_info(number % self.lines.len())
    }

    /// Of the line a slot is at, also after that has ended.
    fn round_trip(&self, token: Token) -> Option<Nanos> {
        match self.places.get(token)?.at {
            At::Line(number) => self.lines[number].round_trip,
            _ => None,
        }
    }

    fn why_absent(&self, token: Token, limit_s: f64) -> String {
        let connection = &self.connections[self.places.connection(token)];
        match connection.line.map(|line| self.lines[line].stage) {
            Some(Stage::Greeting) => format!(
                "the server took the connection and sent no SETTINGS within {limit_s} s: it does not speak HTTP/2 here"
            ),
            _ => no_connection_within(limit_s),
        }
    }

    fn summary(&self) -> Summary {
        Summary {
            census: Some(self.census),
            ..self.inner.summary()
        }
    }
}

impl<T: ByteTransport> Multiplexed<T> {
    /// Gives slots that wait for a connection their place on it; opens it where there is none.
    fn admit(&mut self, connection: usize) -> io::Result<()> {
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
    fn abandon(&mut self, connection: usize) {
        if let Some(number) = self.connections[connection].line
            && self.connections[connection].waiting.is_empty()
            && matches!(self.lines[number].stage, Stage::Opening | Stage::Greeting)
        {
            self.drop_line(number, None);
        }
    }

    /// Closes a line that serves nobody any more.
    fn release(&mut self, number: usize) {
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
    fn act(&mut self, event: Event, events: &mut Vec<Event>) {
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
            let fed = match self.inner.receive(token, &mut reading, Need::All) {
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
                Received::Nothing | Received::Dropped(_) => break,
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
            if line.session.going_away().is_some() {
                let error = line.unused();
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
    fn leave(&mut self, number: usize) {
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
            let error = why
                .as_ref()
                .map_or_else(|| self.lines[number].unused(), copy);
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

/// Tells a slot of an event kept for it, together with the one before if that was its own.
#[inline]
fn announce(events: &mut Vec<Event>, token: Token, kept: usize) {
    if let Some(Event::Readable(last, Reading::Events { count, .. })) = events.last_mut()
        && *last == token
        && *count < u16::MAX
    {
        *count += 1;
        return;
    }
    let reading = Reading::Events {
        first: kept as u32,
        count: 1,
    };
    events.push(Event::Readable(token, reading));
}

/// How far a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// There is no connection, or no more.
    Absent,
    /// The connection is being made.
    Opening,
    /// It is there, and the server's SETTINGS are not.
    Greeting,
    /// It takes streams.
    Open,
    /// The server takes no more streams on it; those begun go on.
    Leaving,
}

/// See the module.
pub struct Line {
    /// See [`Stage`].
    pub stage: Stage,
    /// Number of the connection, for the transport below.
    pub generation: u32,
    /// Its side of HTTP/2.
    pub session: Session,
    /// What is to be sent.
    pub out: Vec<u8>,
    /// Requests in `out`.
    pub held: u32,
    /// Slots that use it.
    pub attached: u32,
    /// Slots whose requests are not out whole.
    pub sending: Vec<u32>,
    /// Why it ended, where there is more to tell than that the server closed it.
    fault: Option<io::Error>,
    /// The shortest round trip of the connection, once that has ended.
    pub round_trip: Option<Nanos>,
}

impl Line {
    /// A line without a connection.
    pub fn new(settings: Settings) -> Line {
        Line {
            stage: Stage::Absent,
            generation: 0,
            session: Session::new(settings),
            out: Vec::new(),
            held: 0,
            attached: 0,
            sending: Vec::new(),
            fault: None,
            round_trip: None,
        }
    }

    /// Names its connection to the transport below.
    pub fn token(&self, number: usize) -> Token {
        Token {
            slot: number as u32,
            generation: self.generation,
        }
    }

    /// A connection begins.
    pub fn begin(&mut self, settings: Settings) {
        self.stage = Stage::Opening;
        self.generation = self.generation.wrapping_add(1);
        self.session = Session::new(settings);
        self.out.clear();
        self.held = 0;
        self.sending.clear();
        self.fault = None;
        self.round_trip = None;
    }

    /// The connection has ended, for this reason where there is one to tell.
    pub fn end(&mut self, fault: Option<io::Error>) {
        self.stage = Stage::Absent;
        self.generation = self.generation.wrapping_add(1);
        self.out.clear();
        self.held = 0;
        self.fault = fault;
    }

    /// Nobody uses it and nothing is under way: a connection may begin.
    pub fn is_free(&self) -> bool {
        self.stage == Stage::Absent && self.attached == 0
    }

    /// Whether one slot more may use it.
    pub fn has_room(&self) -> bool {
        let allowed = self.session.in_flight() + self.session.room();
        self.stage == Stage::Open && (self.attached as usize) < allowed
    }

    /// Why no request could be begun on it, where the server closed it or is about to: what it said may be read together
    /// with its close.
    fn unused(&self) -> io::Error {
        match self.session.going_away() {
            // Another attempt at once would meet the same, again and again.
            Some(goaway) => io::Error::new(
                io::ErrorKind::ConnectionRefused,
                format!("the server takes no requests: {goaway}"),
            ),
            None if self.session.is_ready() => fault(&Http2Error::EarlyClose {
                streams: 0,
                goaway: None,
            }),
            None => fault(&Http2Error::ClosedAtOnce),
        }
    }

    /// Why it ended.
    pub fn why(&self) -> Option<io::Error> {
        self.fault.as_ref().map(copy)
    }
}

/// What a server did against HTTP/2, or how it closed, as the worker is told it.
pub fn fault(error: &Http2Error) -> io::Error {
    let kind = match error {
        Http2Error::EarlyClose { .. } | Http2Error::ClosedAtOnce => io::ErrorKind::ConnectionReset,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error.to_string())
}

/// The same error for one slot more.
pub fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(errno) => io::Error::from_raw_os_error(errno),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
