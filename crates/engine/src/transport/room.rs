//! A room on the server whose members hear all that is said in it, each member a WebSocket of its own.
//!
//! A slot is a message on its way: one member sends it, in turns, and it has arrived when all members, the sender
//! included, have it. Slots are connected once the room is complete: all members have shaken hands, and each has heard
//! a trial message, because a server may let a member in a moment after it took its handshake.

mod members;
mod talk;

use std::io;

use crate::clock::{Clock, MILLISECOND, Nanos, SECOND};
use crate::protocol::websocket::Upgrade;
use crate::protocol::websocket::letter::Letter;
use crate::record::{Connections, RoomCounts};

use super::websocket::WebSocket;
use super::{
    ByteTransport, Delivered, Event, Reading, Received, Rounds, Sending, Standing, TcpInfo, Token,
    Transport,
};
use members::Member;
use talk::Talk;

/// How often a trial message is sent until all members have heard one.
const TRIAL_EVERY: Nanos = 50 * MILLISECOND;

/// A room of thousands takes its time, and no message can be sent before it is complete.
const PATIENCE: Nanos = 10 * SECOND;

/// How far the room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Members are missing.
    Gathering,
    /// All are there; the next trial message is sent then.
    Trying(Nanos),
    Complete,
}

/// See the module.
pub struct Room<T: ByteTransport, C> {
    inner: WebSocket<T>,
    clock: C,
    letter: Letter,
    stage: Stage,
    members: Vec<Member>,
    talks: Vec<Talk>,
    /// Who speaks next.
    speaker: usize,
    /// Numbers of messages count upwards.
    next_number: u64,
    /// Slots that wait for the room to be complete.
    waiting: Vec<Token>,
    /// Slots whose messages were heard by members since they were told last.
    heard: Vec<u32>,
    /// Told with the next batch.
    pending: Vec<Event>,
    below: Vec<Event>,
    out: Vec<u8>,
    mask: [u8; 4],
    census: Connections,
    counts: RoomCounts,
}

/// What a room is made of.
pub struct Plan {
    /// How many connections.
    pub members: usize,
    /// How many messages may be on their way at once.
    pub slots: usize,
    /// What is said.
    pub letter: Letter,
    /// The requests of the members' handshakes.
    pub upgrade: Upgrade,
    /// Most bytes of one message of the server.
    pub limit: u64,
    /// See [`framed`](crate::protocol::websocket::framed).
    pub mask: [u8; 4],
}

impl<T: ByteTransport, C: Clock> Room<T, C> {
    /// A room over `inner`, which has room for its members; `clock` is the worker's.
    pub fn new(inner: T, clock: C, plan: Plan) -> Room<T, C> {
        Room {
            inner: WebSocket::new(inner, plan.members, plan.upgrade, plan.limit),
            clock,
            letter: plan.letter,
            stage: Stage::Gathering,
            members: (0..plan.members).map(|_| Member::default()).collect(),
            talks: (0..plan.slots).map(|_| Talk::new(plan.members)).collect(),
            speaker: 0,
            next_number: 1,
            waiting: Vec::new(),
            heard: Vec::new(),
            pending: Vec::new(),
            below: Vec::new(),
            out: Vec::new(),
            mask: plan.mask,
            census: Connections::default(),
            counts: RoomCounts::default(),
        }
    }

    /// Lets a member say the letter with a number.
    fn say(&mut self, member: usize, number: u64) {
        self.letter.write(number, self.mask, &mut self.out);
        let token = self.members[member].token(member);
        self.inner.write(token, &mut self.out);
    }
}

impl<T: ByteTransport, C: Clock> Transport for Room<T, C> {
    type Medium = Rounds;

    fn connect(&mut self, token: Token) -> io::Result<()> {
        self.talks[token.slot as usize].attach(token);
        if self.stage == Stage::Complete {
            self.pending.push(Event::Connected(token));
            return Ok(());
        }
        self.waiting.push(token);
        self.gather();
        Ok(())
    }

    #[inline]
    fn send(&mut self, token: Token, (): &()) -> Sending {
        let talk = &mut self.talks[token.slot as usize];
        if self.stage != Stage::Complete {
            return Sending::Pending;
        }
        let number = talk::number(self.next_number, token.slot);
        self.next_number += 1;
        talk.begin(number);
        let member = self.speaker;
        self.speaker = (member + 1) % self.members.len();
        self.say(member, number);
        Sending::Done
    }

    #[inline]
    fn received(&mut self, token: Token, _: &mut Reading) -> Received<Delivered<'_>> {
        let talk = &mut self.talks[token.slot as usize];
        match talk.tell() {
            talk::Told::Nothing => Received::Nothing,
            talk::Told::Heard(delivered) => Received::Piece(delivered),
            talk::Told::Over(why) => Received::Failed(why),
        }
    }

    fn close(&mut self, token: Token) {
        let talk = &mut self.talks[token.slot as usize];
        if talk.is_of(token) {
            talk.detach();
            self.waiting.retain(|waiting| *waiting != token);
        }
    }

    fn poll(&mut self, now: Nanos, until: Nanos, events: &mut Vec<Event>) -> io::Result<()> {
        let mut until = if self.pending.is_empty() { until } else { now };
        if let Stage::Trying(mut next) = self.stage {
            if now >= next {
                self.say(0, talk::TRIAL);
                next = now + TRIAL_EVERY;
                self.stage = Stage::Trying(next);
            }
            until = until.min(next);
        }
        let mut below = std::mem::take(&mut self.below);
        let polled = self.inner.poll(now, until, &mut below);
        for event in below.drain(..) {
            self.act(event);
        }
        self.below = below;
        for slot in self.heard.drain(..) {
            let token = self.talks[slot as usize].token();
            events.push(Event::Readable(token, Reading::default()));
        }
        events.append(&mut self.pending);
        polled
    }

    fn patience(&self) -> Nanos {
        PATIENCE
    }

    fn delay(&self, _: Token, limit_s: f64) -> String {
        let members = self.members.len();
        let there = self
            .members
            .iter()
            .filter(|member| member.is_there())
            .count();
        let heard = self
            .members
            .iter()
            .filter(|member| member.has_heard())
            .count();
        match self.stage {
            Stage::Gathering => {
                format!("{there} of {members} members were connected after {limit_s} s")
            }
            _ => format!(
                "{heard} of {members} members heard a trial message within {limit_s} s: the server does not send on to \
                 all what one says, or not as it was said"
            ),
        }
    }

    fn census(&self, _: Connections) -> Connections {
        self.census
    }

    fn room(&self) -> Option<RoomCounts> {
        Some(self.counts)
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
