//! A transport without a network: a scripted server on a simulated clock, for tests that take no time.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;

use super::{
    ByteTransport, Event, Need, Probe, Reading, Received, Sending, Summary, TcpInfo, Token,
    Transport, no_connection_within,
};
use crate::clock;
use crate::clock::{Clock, Nanos};
use crate::protocol::{Bytes, Payload};

/// What a scripted server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Accepts the connection.
    Accept,
    /// Refuses it, or breaks it, with this `errno`.
    Break(i32),
    /// Takes in the rest of a request that did not go out at once.
    Take,
    /// Sends bytes.
    Send(Vec<u8>),
    /// Closes its side.
    Close,
}

/// A scripted server: answers what happens with acts, each at its moment on the clock.
pub trait Script {
    /// A connection is asked for; without an `Accept` it hangs.
    fn connection(&mut self, token: Token, now: Nanos) -> Vec<(Nanos, Act)>;

    /// A request was sent. With a `Take` among the acts it goes out whole only then.
    fn request(&mut self, token: Token, now: Nanos) -> Vec<(Nanos, Act)>;

    /// The same, for a server that reads what it is asked.
    fn read(&mut self, token: Token, request: &[u8], now: Nanos) -> Vec<(Nanos, Act)> {
        let _ = request;
        self.request(token, now)
    }

    /// Bytes of a layer upon this transport were sent. `Take` means nothing here.
    fn bytes(&mut self, token: Token, bytes: &[u8], now: Nanos) -> Vec<(Nanos, Act)> {
        let _ = bytes;
        self.request(token, now)
    }

    /// What the server does on other connections because of what it was sent last.
    fn elsewhere(&mut self) -> Vec<(Nanos, Token, Act)> {
        Vec::new()
    }
}

/// See the module.
pub struct Simulated<S> {
    clock: clock::Simulated,
    script: S,
    /// By moment, then in the order they were scheduled.
    calendar: BTreeMap<(Nanos, u64), (Token, Act)>,
    scheduled: u64,
    inbox: HashMap<u64, VecDeque<Act>>,
    current: Vec<u8>,
}

impl<S: Script> Simulated<S> {
    /// A transport to `script`; `clock` is the worker's.
    pub fn new(clock: clock::Simulated, script: S) -> Simulated<S> {
        Simulated {
            clock,
            script,
            calendar: BTreeMap::new(),
            scheduled: 0,
            inbox: HashMap::new(),
            current: Vec::new(),
        }
    }

    fn schedule(&mut self, token: Token, acts: Vec<(Nanos, Act)>) {
        let here = acts.into_iter().map(|(at, act)| (at, token, act));
        for (at, token, act) in here.chain(self.script.elsewhere()) {
            self.scheduled += 1;
            self.calendar.insert((at, self.scheduled), (token, act));
        }
    }

    fn happen(&mut self, token: Token, act: Act, events: &mut Vec<Event>) {
        let Some(inbox) = self.inbox.get_mut(&token.pack()) else {
            match act {
                Act::Accept => {
                    self.inbox.insert(token.pack(), VecDeque::new());
                    events.push(Event::Connected(token));
                }
                Act::Break(errno) => {
                    let error = io::Error::from_raw_os_error(errno);
                    events.push(Event::NotConnected(token, error));
                }
                _ => {}
            }
            return;
        };
        match act {
            Act::Take => events.push(Event::Sent(token)),
            act => {
                inbox.push_back(act);
                events.push(Event::Readable(token, Reading::default()));
            }
        }
    }
}

impl<S: Script> Transport for Simulated<S> {
    type Medium = Bytes;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        let acts = self.script.connection(token, self.clock.now());
        self.schedule(token, acts);
        Ok(())
    }

    fn send(&mut self, token: Token, request: &Payload) -> Sending {
        let acts = self.script.read(token, request.bytes(), self.clock.now());
        let later = acts.iter().any(|(_, act)| *act == Act::Take);
        self.schedule(token, acts);
        if later {
            Sending::Pending
        } else {
            Sending::Done
        }
    }

    fn receive(&mut self, token: Token, _: &mut Reading, _: Need) -> Received<&[u8]> {
        match self
            .inbox
            .get_mut(&token.pack())
            .and_then(VecDeque::pop_front)
        {
            Some(Act::Send(bytes)) => {
                self.current = bytes;
                Received::Piece(&self.current)
            }
            Some(Act::Close) => Received::Closed,
            Some(Act::Break(errno)) => Received::Failed(io::Error::from_raw_os_error(errno)),
            _ => Received::Nothing,
        }
    }

    fn answered(&mut self, _: u64) {}

    fn close(&mut self, token: Token) {
        self.inbox.remove(&token.pack());
        self.calendar.retain(|_, (whose, _)| *whose != token);
    }

    fn poll(&mut self, _now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let Some((&(at, _), _)) = self
            .calendar
            .first_key_value()
            .filter(|((at, _), _)| *at <= until)
        else {
            self.clock.advance_to(until);
            return Ok(());
        };
        self.clock.advance_to(at);
        while let Some(entry) = self
            .calendar
            .first_entry()
            .filter(|entry| entry.key().0 <= at)
        {
            let (token, act) = entry.remove();
            self.happen(token, act, events);
        }
        Ok(())
    }
}

impl<S> Probe for Simulated<S> {
    fn arrived(&self) -> Option<Nanos> {
        None
    }

    fn tcp_info(&self, _: usize) -> Option<TcpInfo> {
        None
    }

    fn round_trip(&self, _: Token) -> Option<Nanos> {
        None
    }

    fn why_absent(&self, _: Token, limit_s: f64) -> String {
        no_connection_within(limit_s)
    }

    fn summary(&self) -> Summary {
        Summary {
            name: "simulated",
            ..Summary::default()
        }
    }
}

impl<S: Script> ByteTransport for Simulated<S> {
    fn write(&mut self, token: Token, bytes: &mut Vec<u8>) -> Sending {
        let acts = self.script.bytes(token, bytes, self.clock.now());
        self.schedule(token, acts);
        bytes.clear();
        Sending::Done
    }
}
