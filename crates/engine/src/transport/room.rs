//! A room on the server whose members hear all that is said in it, each member a WebSocket of its own.
//!
//! A slot is a message on its way: one member sends it, in turns, and it has arrived when all members, the sender
//! included, have it. Slots are connected once the room is complete: all members have shaken hands, and each has heard
//! a trial message, because a server may let a member in a moment after it took its handshake.

use std::io;

use crate::clock::{Clock, MILLISECOND, Nanos, SECOND};
use crate::protocol::websocket::Upgrade;
use crate::protocol::websocket::broadcast::{Known, Letter, Reader};
use crate::protocol::{Delivered, Rounds};
use crate::transport::websocket::WebSocket;
use crate::transport::{
    ByteTransport, Connections, Event, Need, Probe, Reading, Received, RoomCounts, Sending,
    Summary, TcpInfo, Token, Transport,
};

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

    const PATIENCE: Nanos = PATIENCE;

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
        let number = message_number(self.next_number, token.slot);
        self.next_number += 1;
        talk.begin(number);
        let member = self.speaker;
        self.speaker = (member + 1) % self.members.len();
        self.say(member, number);
        Sending::Done
    }

    #[inline]
    fn receive(&mut self, token: Token, _: &mut Reading, _: Need) -> Received<Delivered<'_>> {
        let talk = &mut self.talks[token.slot as usize];
        match talk.tell() {
            News::Nothing => Received::Nothing,
            News::Heard(delivered) => Received::Piece(delivered),
            News::Over(why) => Received::Failed(why),
        }
    }

    fn answered(&mut self, bulk: u64) {
        self.inner.answered(bulk);
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
                self.say(0, TRIAL);
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
}

impl<T: ByteTransport, C> Probe for Room<T, C> {
    fn arrived(&self) -> Option<Nanos> {
        None
    }

    fn tcp_info(&self, number: usize) -> Option<TcpInfo> {
        self.inner.tcp_info(number)
    }

    /// A message goes over all connections.
    fn round_trip(&self, _: Token) -> Option<Nanos> {
        None
    }

    fn why_absent(&self, _: Token, limit_s: f64) -> String {
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

    fn summary(&self) -> Summary {
        Summary {
            census: Some(self.census),
            room: Some(self.counts),
            ..self.inner.summary()
        }
    }
}

/// How far a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Away,
    Coming,
    There,
    /// It has heard a trial message: the server has let it in.
    In,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Member {
    generation: u32,
    stage: Presence,
    reader: Reader,
    opened: bool,
    answered: bool,
}

impl Member {
    /// Names its connection to the transport below.
    pub fn token(&self, number: usize) -> Token {
        Token {
            slot: number as u32,
            generation: self.generation,
        }
    }

    /// Whether it has shaken hands.
    pub fn is_there(&self) -> bool {
        matches!(self.stage, Presence::There | Presence::In)
    }

    /// Whether the server has let it in.
    pub fn has_heard(&self) -> bool {
        self.stage == Presence::In
    }
}

impl<T: ByteTransport, C: Clock> Room<T, C> {
    /// Lets those come who are away.
    fn gather(&mut self) {
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            if member.stage != Presence::Away {
                continue;
            }
            member.generation = member.generation.wrapping_add(1);
            member.stage = Presence::Coming;
            member.reader = Reader::default();
            let token = member.token(number);
            if let Err(error) = self.inner.connect(token) {
                return self.refused(number, &error);
            }
        }
    }

    /// Acts on an event of the transport below.
    fn act(&mut self, event: Event) {
        match event {
            Event::Connected(token) => {
                if let Some(number) = self.current(token) {
                    self.came(number);
                }
            }
            Event::NotConnected(token, error) => {
                if let Some(number) = self.current(token) {
                    self.refused(number, &error);
                }
            }
            Event::Readable(token, reading) => {
                if let Some(number) = self.current(token) {
                    self.hear(number, token, reading);
                }
            }
            Event::Sent(_) | Event::Full(_) => {}
        }
    }

    fn current(&self, token: Token) -> Option<usize> {
        let number = token.slot as usize;
        (self.members[number].generation == token.generation).then_some(number)
    }

    fn came(&mut self, number: usize) {
        let member = &mut self.members[number];
        member.stage = Presence::There;
        match std::mem::replace(&mut member.opened, true) {
            true => self.census.reopened += 1,
            false => self.census.opened += 1,
        }
        if self.members.iter().all(Member::is_there) {
            self.stage = Stage::Trying(0);
        }
    }

    /// A member could not come: the room stays incomplete, and who waits for it is told.
    fn refused(&mut self, number: usize, error: &io::Error) {
        self.send_away(number);
        for token in std::mem::take(&mut self.waiting) {
            self.pending.push(Event::NotConnected(token, copy(error)));
        }
    }

    fn send_away(&mut self, number: usize) {
        let member = &mut self.members[number];
        self.inner.close(member.token(number));
        member.stage = Presence::Away;
        member.generation = member.generation.wrapping_add(1);
    }

    fn hear(&mut self, number: usize, token: Token, mut reading: Reading) {
        loop {
            match self.inner.receive(token, &mut reading, Need::All) {
                Received::Piece(piece) => {
                    let reader = &mut self.members[number].reader;
                    reader.take(&self.letter, piece.bytes);
                    if piece.end {
                        let known = reader.end(&self.letter, piece.kind);
                        self.heard(number, known);
                    }
                }
                Received::Nothing | Received::Dropped(_) => return,
                Received::Closed => return self.lose(number, "the server closed it"),
                Received::Failed(error) => return self.lose(number, &error.to_string()),
            }
        }
    }

    /// A member has a whole message.
    fn heard(&mut self, number: usize, known: Known) {
        let Known::Letter {
            number: letter,
            right,
        } = known
        else {
            self.counts.strangers += 1;
            return;
        };
        if letter == TRIAL {
            return self.let_in(number);
        }
        let slot = slot_of(letter);
        let Some(talk) = self.talks.get_mut(slot as usize) else {
            self.counts.strangers += 1;
            return;
        };
        if !talk.carries(letter) {
            self.counts.late += 1;
            return;
        }
        match talk.hear(number, self.clock.now(), right) {
            Reception::Again => self.counts.again += 1,
            Reception::First => self.heard.push(slot),
            Reception::More => {}
        }
        let member = &mut self.members[number];
        if !std::mem::replace(&mut member.answered, true) {
            self.census.answered += 1;
        }
    }

    fn let_in(&mut self, number: usize) {
        let member = &mut self.members[number];
        if member.stage == Presence::There {
            member.stage = Presence::In;
        }
        if matches!(self.stage, Stage::Trying(_)) && self.members.iter().all(Member::has_heard) {
            self.stage = Stage::Complete;
            self.pending
                .extend(self.waiting.drain(..).map(Event::Connected));
        }
    }

    /// A member is lost, and with it all messages on their way: they can never reach all.
    fn lose(&mut self, number: usize, why: &str) {
        let count = self.members.len();
        let why = format!("member {} of {count} lost its WebSocket: {why}", number + 1);
        let error = io::Error::new(io::ErrorKind::ConnectionReset, why);
        if std::mem::replace(&mut self.stage, Stage::Gathering) != Stage::Complete {
            return self.refused(number, &error);
        }
        self.send_away(number);
        for talk in &mut self.talks {
            if talk.end(copy(&error)) {
                let token = talk.token();
                self.pending
                    .push(Event::Readable(token, Reading::default()));
            }
        }
    }
}

/// The same error for one slot more.
fn copy(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(errno) => io::Error::from_raw_os_error(errno),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Low bits of a number that say the slot: ten million messages at once are more than fit in any room.
const SLOT_BITS: u32 = 24;

/// The number of trial messages; none other has it, they count from 1.
pub const TRIAL: u64 = 0;

/// The number of a message.
pub fn message_number(count: u64, slot: u32) -> u64 {
    count << SLOT_BITS | u64::from(slot)
}

/// The slot a number says.
pub fn slot_of(number: u64) -> u32 {
    // The cast is exact: these bits are fewer.
    (number & ((1 << SLOT_BITS) - 1)) as u32
}

/// What there is to tell of a slot.
pub enum News<'a> {
    Nothing,
    Heard(Delivered<'a>),
    Over(io::Error),
}

/// What it means that a member has a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Reception {
    /// Since the slot was told last, nobody else has heard it.
    First,
    More,
    /// The member had it already.
    Again,
}

/// See the module.
pub struct Talk {
    token: Token,
    attached: bool,
    /// The message on its way; 0: none.
    number: u64,
    /// By member: whether it has the message.
    has: Vec<u64>,
    /// When members got it since the slot was told last, and how many of them got another.
    fresh: Vec<Nanos>,
    wrong: u32,
    /// The same, while it is being told.
    told: Vec<Nanos>,
    over: Option<io::Error>,
}

impl Talk {
    /// A slot nobody uses, in a room of so many members.
    pub fn new(members: usize) -> Talk {
        Talk {
            token: Token {
                slot: 0,
                generation: 0,
            },
            attached: false,
            number: 0,
            has: vec![0; members.div_ceil(64)],
            fresh: Vec::new(),
            wrong: 0,
            told: Vec::new(),
            over: None,
        }
    }

    pub fn token(&self) -> Token {
        self.token
    }

    pub fn is_of(&self, token: Token) -> bool {
        self.attached && self.token == token
    }

    pub fn attach(&mut self, token: Token) {
        self.token = token;
        self.attached = true;
        self.number = 0;
        self.fresh.clear();
        self.over = None;
    }

    pub fn detach(&mut self) {
        self.attached = false;
        self.number = 0;
        self.over = None;
    }

    /// A message goes out.
    pub fn begin(&mut self, number: u64) {
        self.number = number;
        self.has.fill(0);
        self.fresh.clear();
        self.wrong = 0;
    }

    /// Whether this is the message on its way.
    pub fn carries(&self, number: u64) -> bool {
        self.number == number
    }

    /// A member has the message.
    pub fn hear(&mut self, member: usize, now: Nanos, right: bool) -> Reception {
        let bit = 1 << (member % 64);
        let has = &mut self.has[member / 64];
        if *has & bit != 0 {
            return Reception::Again;
        }
        *has |= bit;
        self.wrong += u32::from(!right);
        self.fresh.push(now);
        match self.fresh.len() {
            1 => Reception::First,
            _ => Reception::More,
        }
    }

    /// The room is incomplete. Whether there is a slot to be told.
    pub fn end(&mut self, why: io::Error) -> bool {
        if self.attached {
            self.over = Some(why);
        }
        self.attached
    }

    /// What there is to tell.
    pub fn tell(&mut self) -> News<'_> {
        if !self.attached {
            return News::Nothing;
        }
        if !self.fresh.is_empty() {
            std::mem::swap(&mut self.fresh, &mut self.told);
            self.fresh.clear();
            return News::Heard(Delivered {
                moments: &self.told,
                wrong: std::mem::take(&mut self.wrong),
            });
        }
        match self.over.take() {
            Some(why) => News::Over(why),
            None => News::Nothing,
        }
    }
}
