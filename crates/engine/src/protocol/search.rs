//! Whether some bytes occur in a body that passes in pieces.

use std::sync::Arc;

use memchr::memmem;

/// See the module. Of what has passed it keeps one byte less than it looks for.
#[derive(Debug)]
pub(in crate::protocol) struct Search {
    wanted: Arc<[u8]>,
    found: bool,
    /// The end of what has passed.
    tail: Vec<u8>,
}

impl Search {
    pub fn new(wanted: Arc<[u8]>) -> Search {
        Search {
            found: wanted.is_empty(),
            wanted,
            tail: Vec::new(),
        }
    }

    /// Whether it looks for these bytes, to be used again for another body.
    pub fn is_for(&self, wanted: &Arc<[u8]>) -> bool {
        Arc::ptr_eq(&self.wanted, wanted)
    }

    /// Another body begins.
    pub fn restart(&mut self) {
        self.found = self.wanted.is_empty();
        self.tail.clear();
    }

    pub fn found(&self) -> bool {
        self.found
    }

    pub fn take(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        let overlap = self.wanted.len() - 1;
        if !self.tail.is_empty() {
            let before = self.tail.len();
            self.tail
                .extend_from_slice(&piece[..piece.len().min(overlap)]);
            self.found = memmem::find(&self.tail, &self.wanted).is_some();
            if piece.len() < overlap {
                let surplus = self.tail.len().saturating_sub(overlap);
                self.tail.drain(..surplus);
                return;
            }
            self.tail.truncate(before);
        }
        self.found |= memmem::find(piece, &self.wanted).is_some();
        self.tail.clear();
        self.tail
            .extend_from_slice(&piece[piece.len().saturating_sub(overlap)..]);
    }
}

#[cfg(test)]
mod tests {
    use super::Search;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_in_the_whole_is_found_in_any_pieces(
            body in "[ab]{0,60}", wanted in "[ab]{0,6}", cuts in prop::collection::vec(0_usize..9, 0..30)
        ) {
            let mut search = Search::new(wanted.as_bytes().into());
            for _ in 0..2 {
                search.restart();
                let mut rest = body.as_bytes();
                for cut in &cuts {
                    let (piece, behind) = rest.split_at((*cut).min(rest.len()));
                    search.take(piece);
                    rest = behind;
                }
                search.take(rest);
                prop_assert_eq!(search.found(), body.contains(&wanted));
            }
        }
    }
}
