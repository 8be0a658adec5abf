//! A body as it passes: counted, and compared with the right one piece by piece; nothing is kept.

use std::sync::Arc;

use super::search::Search;

/// Whether the body was the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyCheck {
    /// Nothing to compare with, or only the length was compared, and was right.
    Unchecked,
    /// Length and content were compared.
    Right,
    /// Length or content differ.
    Wrong,
}

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
