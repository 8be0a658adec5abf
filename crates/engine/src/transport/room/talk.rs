//! A message on its way, slot by slot.

use std::io;

use crate::clock::Nanos;
use crate::transport::{Delivered, Token};

/// Low bits of a number that say the slot: ten million messages at once are more than fit in any room.
const SLOT_BITS: u32 = 24;

/// The number of trial messages; none other has it, they count from 1.
pub const TRIAL: u64 = 0;

/// The number of a message.
pub fn number(count: u64, slot: u32) -> u64 {
    count << SLOT_BITS | u64::from(slot)
}

/// The slot a number says.
pub fn slot(number: u64) -> u32 {
    // The cast is exact: these bits are fewer.
    (number & ((1 << SLOT_BITS) - 1)) as u32
}

/// What there is to tell of a slot.
pub enum Told<'a> {
    Nothing,
    Heard(Delivered<'a>),
    Over(io::Error),
}

/// What it means that a member has a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
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
    pub fn hear(&mut self, member: usize, now: Nanos, right: bool) -> Heard {
        let bit = 1 << (member % 64);
        let has = &mut self.has[member / 64];
        if *has & bit != 0 {
            return Heard::Again;
        }
        *has |= bit;
        self.wrong += u32::from(!right);
        self.fresh.push(now);
        match self.fresh.len() {
            1 => Heard::First,
            _ => Heard::More,
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
    pub fn tell(&mut self) -> Told<'_> {
        if !self.attached {
            return Told::Nothing;
        }
        if !self.fresh.is_empty() {
            std::mem::swap(&mut self.fresh, &mut self.told);
            self.fresh.clear();
            return Told::Heard(Delivered {
                moments: &self.told,
                wrong: std::mem::take(&mut self.wrong),
            });
        }
        match self.over.take() {
            Some(why) => Told::Over(why),
            None => Told::Nothing,
        }
    }
}
