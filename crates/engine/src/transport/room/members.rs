//! Who is in the room: members come, hear and are lost.

use std::io;

use super::{Room, Stage, talk};
use crate::clock::Clock;
use crate::protocol::websocket::letter::{Known, Reader};
use crate::transport::{ByteTransport, Event, Reading, Received, Token, Transport};

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
    pub(super) fn gather(&mut self) {
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
    pub(super) fn act(&mut self, event: Event) {
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
            match self.inner.received(token, &mut reading) {
                Received::Piece(piece) => {
                    let reader = &mut self.members[number].reader;
                    reader.take(&self.letter, piece.bytes);
                    if piece.end {
                        let known = reader.end(&self.letter, piece.kind);
                        self.heard(number, known);
                    }
                }
                Received::Nothing => return,
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
        if letter == talk::TRIAL {
            return self.let_in(number);
        }
        let slot = talk::slot(letter);
        let Some(talk) = self.talks.get_mut(slot as usize) else {
            self.counts.strangers += 1;
            return;
        };
        if !talk.carries(letter) {
            self.counts.late += 1;
            return;
        }
        match talk.hear(number, self.clock.now(), right) {
            talk::Heard::Again => self.counts.again += 1,
            talk::Heard::First => self.heard.push(slot),
            talk::Heard::More => {}
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
