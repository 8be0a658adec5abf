//! A body as it passes: counted, and compared with the right one piece by piece; nothing is kept.

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
}

impl Body {
    pub(in crate::protocol) const fn new(compare: bool) -> Self {
        Self {
            len: 0,
            compare,
            differs: false,
            none: false,
        }
    }

    pub(in crate::protocol) const fn len(&self) -> u64 {
        self.len
    }

    pub(in crate::protocol) const fn compares(&self) -> bool {
        self.compare
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
        self.pass(piece.len() as u64);
    }

    pub(in crate::protocol) fn verdict(&self, expected: Option<&[u8]>) -> BodyCheck {
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
