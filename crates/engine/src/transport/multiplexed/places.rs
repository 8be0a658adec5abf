//! Where the slots of the worker are.

use crate::transport::Token;

/// Where a slot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// It asks for no connection.
    #[default]
    Nowhere,
    /// It waits for its connection.
    Waiting,
    /// It waits, and was told that there is no room.
    Parked,
    /// It uses the line of this number.
    Line(usize),
}

/// What is known of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    generation: u32,
    /// See [`At`].
    pub at: At,
    /// Its stream is open: its request is unanswered.
    pub active: bool,
    /// Events kept for it.
    pub unread: u32,
    /// It was promised room that there is not.
    pub expelled: bool,
}

/// All slots.
pub struct Places {
    connections: usize,
    places: Vec<Place>,
}

impl Places {
    /// `streams` slots for each of the connections.
    pub fn new(connections: usize, streams: usize) -> Places {
        Places {
            connections,
            places: vec![Place::default(); connections * streams],
        }
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.connections
    }

    /// The connection a slot belongs to.
    #[inline]
    pub fn connection(&self, token: Token) -> usize {
        token.slot as usize % self.connections
    }

    /// The number of a slot among those of its connection.
    #[inline]
    pub fn tag(&self, token: Token) -> u32 {
        (token.slot as usize / self.connections) as u32
    }

    /// The slot of a tag on a line.
    #[inline]
    pub fn token(&self, line: usize, tag: u32) -> Token {
        let slot = tag as usize * self.connections + line % self.connections;
        Token {
            slot: slot as u32,
            generation: self.places[slot].generation,
        }
    }

    /// What is known of a slot.
    #[inline]
    pub fn of(&mut self, token: Token) -> &mut Place {
        &mut self.places[token.slot as usize]
    }

    /// What is known of a slot, if this is its present connection.
    pub fn get(&self, token: Token) -> Option<&Place> {
        let place = &self.places[token.slot as usize];
        (place.generation == token.generation && place.at != At::Nowhere).then_some(place)
    }

    /// A slot asks for a connection.
    pub fn enter(&mut self, token: Token) {
        *self.of(token) = Place {
            generation: token.generation,
            at: At::Waiting,
            ..Place::default()
        };
    }

    /// A slot wants its connection no more.
    pub fn leave(&mut self, token: Token) {
        *self.of(token) = Place::default();
    }

    /// The slots at a line.
    pub fn at_line(&self, line: usize) -> impl Iterator<Item = (Token, &Place)> {
        let first = line % self.connections;
        (first..self.places.len())
            .step_by(self.connections)
            .map(|slot| {
                let place = &self.places[slot];
                let token = Token {
                    slot: slot as u32,
                    generation: place.generation,
                };
                (token, place)
            })
            .filter(move |(_, place)| place.at == At::Line(line))
    }
}
