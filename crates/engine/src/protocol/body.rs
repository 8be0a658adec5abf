//! A body as it passes: counted, and compared with the right one piece by piece; nothing is kept.

use std::sync::Arc;

use crate::outcome::BodyCheck;

use memchr::memmem;

#[derive(Debug)]
pub(in crate::protocol) struct Body {
    len: u64,
    compare: bool,
    differs: bool,
    /// HEAD and 304 tell of a body they do not send: there is nothing to hold against them.
    none: bool,
    /// For what must be in it; apart, because most connections look for nothing.
    search: Option<Box<Search>>,
}

impl Body {
    pub(in crate::protocol) const fn new(compare: bool) -> Self {
        Self {
            len: 0,
            compare,
            differs: false,
            none: false,
            search: None,
        }
    }

    /// Another body begins.
    pub(in crate::protocol) fn restart(&mut self, compare: bool) {
        self.len = 0;
        self.compare = compare;
        self.differs = false;
        self.none = false;
    }

    /// What must be in it; None: nothing in particular. Said anew for each body.
    pub(in crate::protocol) fn seek(&mut self, wanted: Option<&Arc<[u8]>>) {
        match (&mut self.search, wanted) {
            (None, None) => {}
            (Some(search), Some(wanted)) if search.is_for(wanted) => search.restart(),
            (search, wanted) => {
                *search = wanted.map(|wanted| Box::new(Search::new(wanted.clone())));
            }
        }
    }

    pub(in crate::protocol) const fn len(&self) -> u64 {
        self.len
    }

    pub(in crate::protocol) const fn compares(&self) -> bool {
        self.compare || self.search.is_some()
    }

    /// This answer has no body by its nature.
    pub(in crate::protocol) fn forget(&mut self) {
        self.none = true;
    }

    /// Bytes that are not looked at.
    pub(in crate::protocol) fn pass(&mut self, count: u64) {
        self.len = self.len.saturating_add(count);
    }

    pub(in crate::protocol) fn take(&mut self, piece: &[u8], expected: Option<&[u8]>) {
        if self.compare
            && !self.differs
            && let Some(expected) = expected
        {
            let rest = usize::try_from(self.len)
                .ok()
                .and_then(|at| expected.get(at..));
            self.differs = !rest.is_some_and(|rest| rest.starts_with(piece));
        }
        if let Some(search) = &mut self.search {
            search.take(piece);
        }
        self.pass(piece.len() as u64);
    }

    pub(in crate::protocol) fn verdict(&self, expected: Option<&[u8]>) -> BodyCheck {
        if let Some(search) = &self.search {
            return match search.found() || self.none {
                true => BodyCheck::Right,
                false => BodyCheck::Wrong,
            };
        }
        let Some(expected) = expected else {
            return BodyCheck::Unchecked;
        };
        if self.none {
            BodyCheck::Unchecked
        } else if self.differs || self.len != expected.len() as u64 {
            BodyCheck::Wrong
        } else if self.compare {
            BodyCheck::Right
        } else {
            BodyCheck::Unchecked
        }
    }
}

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
