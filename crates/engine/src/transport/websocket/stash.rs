//! Pieces of messages, kept from when their segment was read until they are asked for.

use crate::protocol::websocket::{Kind, Piece};

struct Kept {
    kind: Kind,
    /// Where its bytes end among all.
    until: usize,
    end: bool,
}

/// See the module. Emptied for each segment, so its memory is that of the largest.
#[derive(Default)]
pub struct Stash {
    pieces: Vec<Kept>,
    bytes: Vec<u8>,
    /// How many were asked for, and how many bytes they had.
    read: usize,
    passed: usize,
}

impl Stash {
    /// Whether all that is kept was asked for.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.read == self.pieces.len()
    }

    pub fn keep(&mut self, piece: Piece<'_>) {
        if self.is_empty() {
            self.clear();
        }
        self.bytes.extend_from_slice(piece.bytes);
        self.pieces.push(Kept {
            kind: piece.kind,
            until: self.bytes.len(),
            end: piece.end,
        });
    }

    /// The oldest that was not asked for.
    #[inline]
    pub fn next(&mut self) -> Option<Piece<'_>> {
        let kept = self.pieces.get(self.read)?;
        let from = std::mem::replace(&mut self.passed, kept.until);
        self.read += 1;
        Some(Piece {
            kind: kept.kind,
            bytes: &self.bytes[from..kept.until],
            end: kept.end,
        })
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
        self.bytes.clear();
        (self.read, self.passed) = (0, 0);
    }
}
