//! The dynamic table (RFC 7541, section 2.3.2): the newest fields, as many as fit.

use super::{DEFAULT_TABLE_SIZE, cost};
use std::collections::VecDeque;

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Where the name begins, counted from the first byte ever kept; the value follows it.
    at: usize,
    name: usize,
    value: usize,
}

/// Names and values stand one after the other in one buffer, the oldest first: an insertion allocates nothing once
/// the buffer has grown to twice the table.
#[derive(Debug)]
pub struct Dynamic {
    bytes: Vec<u8>,
    /// How many bytes were dropped before the first of `bytes`.
    dropped: usize,
    /// The oldest first.
    entries: VecDeque<Entry>,
    size: usize,
    most: usize,
}

impl Dynamic {
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            dropped: 0,
            entries: VecDeque::new(),
            size: 0,
            most: DEFAULT_TABLE_SIZE,
        }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes by the measure of section 4.1.
    #[cfg(test)]
    pub const fn size(&self) -> usize {
        self.size
    }

    #[cfg(test)]
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// The entry so many places behind the newest.
    #[inline]
    pub fn get(&self, behind: usize) -> Option<(&[u8], &[u8])> {
        let newest = self.entries.len().checked_sub(1)?;
        let entry = self.entries.get(newest.checked_sub(behind)?)?;
        let bytes = &self.bytes[entry.at - self.dropped..];
        Some((
            &bytes[..entry.name],
            &bytes[entry.name..entry.name + entry.value],
        ))
    }

    /// A field too large for the whole table empties it, and is no fault (section 4.4).
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        let cost = cost(name, value);
        self.shrink(self.most.saturating_sub(cost));
        if cost > self.most {
            return;
        }
        self.make_room(name.len() + value.len());
        self.entries.push_back(Entry {
            at: self.dropped + self.bytes.len(),
            name: name.len(),
            value: value.len(),
        });
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.size += cost;
    }

    pub fn resize(&mut self, most: usize) {
        self.most = most;
        self.shrink(most);
    }

    fn shrink(&mut self, to: usize) {
        while self.size > to {
            let Some(oldest) = self.entries.pop_front() else {
                return;
            };
            self.size -= oldest.name + oldest.value + super::ENTRY_OVERHEAD;
        }
    }

    /// Drops the bytes of entries that are gone, when they are about to make the buffer grow beyond its bound.
    fn make_room(&mut self, wanted: usize) {
        if self.bytes.len() + wanted <= 2 * self.most {
            return;
        }
        let end = self.dropped + self.bytes.len();
        let gone = self.entries.front().map_or(end, |oldest| oldest.at) - self.dropped;
        self.bytes.drain(..gone);
        self.dropped += gone;
    }
}
