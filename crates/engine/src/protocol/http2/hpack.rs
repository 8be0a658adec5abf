//! HPACK (RFC 7541): header fields in few bytes. A full decoder, and what a client needs to write one request head.

mod static_table;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use thiserror::Error;

pub use static_table::{FIELDS, find as find_static};

/// What an entry of a table costs beside its bytes (RFC 7541, section 4.1).
pub const ENTRY_OVERHEAD: usize = 32;

/// The size of a dynamic table until a SETTINGS frame says otherwise (RFC 9113, section 6.5.2).
pub const DEFAULT_TABLE_SIZE: usize = 4096;

/// What a field costs in a table and in a list.
#[must_use]
pub const fn cost(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD
}

/// The connection cannot go on: both sides' tables must agree, and after a fault nobody knows whether they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HpackError {
    #[error("it ends in the middle of a field")]
    Truncated,
    /// No length or index of a sane block needs more than 28 bits.
    #[error("it has a number beyond 2^28")]
    NumberTooLarge,
    #[error("it names entry {index} of a table of {entries}")]
    NoSuchEntry { index: u32, entries: usize },
    #[error("it has a Huffman code that does not exist or is padded wrongly")]
    BadHuffman,
    #[error("it sets its table to {asked} bytes where {allowed} are allowed")]
    TableTooLarge { asked: u32, allowed: usize },
    /// RFC 7541, section 4.2: at the beginning of a block only.
    #[error("it changes the size of its table after the first field")]
    LateResize,
    /// A few bytes can name a large entry of the table many times over; the bound ends that.
    #[error("its fields take more than {limit} bytes when unpacked")]
    ListTooLarge { limit: usize },
}

/// A field by its place in the tables (RFC 7541, section 6.1).
pub fn indexed(out: &mut Vec<u8>, index: usize) {
    write(out, 0x80, 7, index);
}

/// A field spelt out; `keep`: the reader puts it into its dynamic table (section 6.2.1), else it does not (6.2.2).
pub fn literal(out: &mut Vec<u8>, name: &[u8], value: &[u8], keep: bool) {
    let (pattern, prefix) = if keep { (0x40, 6) } else { (0x00, 4) };
    match static_table::find(name, value) {
        Some((index, _)) => write(out, pattern, prefix, index),
        None => {
            out.push(pattern);
            string(out, name);
        }
    }
    string(out, value);
}

/// A new size of the writer's dynamic table (section 6.3).
pub fn resize(out: &mut Vec<u8>, size: usize) {
    write(out, 0x20, 5, size);
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = crate::protocol::http2::hpack::static_table::coded_len(text);
    if coded < text.len() {
        write(out, 0x80, 7, coded);
        crate::protocol::http2::hpack::static_table::encode(text, out);
    } else {
        write(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}

/// Four bytes after the prefix: 28 bits.
const MOST_SHIFT: u32 = 21;

/// Reads a number whose first `prefix` (at most 8) bits are the low bits of the first byte.
#[inline]
pub fn read(block: &mut &[u8], prefix: u32) -> Result<u32, HpackError> {
    let (&first, rest) = block.split_first().ok_or(HpackError::Truncated)?;
    *block = rest;
    let mask = (1_u32 << prefix) - 1;
    let low = u32::from(first) & mask;
    if low < mask {
        return Ok(low);
    }
    more(block, low)
}

fn more(block: &mut &[u8], mut number: u32) -> Result<u32, HpackError> {
    let mut shift = 0;
    loop {
        let (&byte, rest) = block.split_first().ok_or(HpackError::Truncated)?;
        *block = rest;
        if shift > MOST_SHIFT {
            return Err(HpackError::NumberTooLarge);
        }
        number += u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
        shift += 7;
    }
}

/// Writes a number; `pattern` is the first byte's bits above the prefix.
pub fn write(out: &mut Vec<u8>, pattern: u8, prefix: u32, number: usize) {
    let mask = (1_usize << prefix) - 1;
    // The casts are exact: each number is below 256 here.
    if number < mask {
        return out.push(pattern | number as u8);
    }
    out.push(pattern | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

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
struct Dynamic {
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
            self.size -= oldest.name + oldest.value + ENTRY_OVERHEAD;
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

/// The reading end of one connection. It keeps its table, at most 4096 bytes by the measure of HPACK, and room for
/// one name and one value.
#[derive(Debug)]
pub struct Decoder {
    table: Dynamic,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Room for unpacked strings that is kept from block to block; what an unusual block took beyond it is given back.
const KEPT_ROOM: usize = 4096;

impl Decoder {
    /// A decoder with an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: Dynamic::new(),
            name: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Reads a whole block; `on` gets each field. `limit`: bytes its fields may take by the measure of HPACK.
    ///
    /// # Errors
    /// The block is faulty or too large; the connection cannot go on.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        limit: usize,
        mut on: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HpackError> {
        let mut left = limit;
        let mut first = true;
        while let Some(&byte) = block.first() {
            if byte & 0xe0 == 0x20 {
                self.resize(&mut block, first)?;
                continue;
            }
            first = false;
            let spent = self.field(&mut block, byte, left, &mut on)?;
            left = left
                .checked_sub(spent)
                .ok_or(HpackError::ListTooLarge { limit })?;
        }
        self.name.shrink_to(KEPT_ROOM);
        self.value.shrink_to(KEPT_ROOM);
        Ok(())
    }

    /// One field; returns what it costs. A field that costs more than is `left` is not told.
    #[inline]
    fn field<'a, 'b: 'a>(
        &'a mut self,
        block: &mut &'b [u8],
        byte: u8,
        left: usize,
        on: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, HpackError> {
        if byte & 0x80 != 0 {
            let (name, value) = entry(&self.table, read(block, 7)?)?;
            let cost = cost(name, value);
            if cost <= left {
                on(name, value);
            }
            return Ok(cost);
        }
        let keep = byte & 0x40 != 0;
        let index = read(block, if keep { 6 } else { 4 })?;
        let Self { table, name, value } = self;
        let name = match index {
            0 => read_string(block, name)?,
            _ => {
                name.clear();
                name.extend_from_slice(entry(table, index)?.0);
                name.as_slice()
            }
        };
        let value = read_string(block, value)?;
        let cost = cost(name, value);
        if cost <= left {
            on(name, value);
            if keep {
                table.insert(name, value);
            }
        }
        Ok(cost)
    }

    fn resize(&mut self, block: &mut &[u8], first: bool) -> Result<(), HpackError> {
        let asked = read(block, 5)?;
        if !first {
            return Err(HpackError::LateResize);
        }
        if asked as usize > DEFAULT_TABLE_SIZE {
            return Err(HpackError::TableTooLarge {
                asked,
                allowed: DEFAULT_TABLE_SIZE,
            });
        }
        self.table.resize(asked as usize);
        Ok(())
    }

    #[cfg(test)]
    const fn table(&self) -> &Dynamic {
        &self.table
    }
}

#[inline]
fn entry(table: &Dynamic, index: u32) -> Result<(&[u8], &[u8]), HpackError> {
    let none = HpackError::NoSuchEntry {
        index,
        entries: FIELDS.len() + table.len(),
    };
    match (index as usize).checked_sub(1) {
        None => Err(none),
        Some(at) => match FIELDS.get(at) {
            Some(field) => Ok(*field),
            None => table.get(at - FIELDS.len()).ok_or(none),
        },
    }
}

/// A string as it stands, or unpacked into `room`.
#[inline]
fn read_string<'a, 'b: 'a>(
    block: &mut &'b [u8],
    room: &'a mut Vec<u8>,
) -> Result<&'a [u8], HpackError> {
    let coded = block.first().is_some_and(|byte| byte & 0x80 != 0);
    let length = read(block, 7)? as usize;
    let (text, rest) = block
        .split_at_checked(length)
        .ok_or(HpackError::Truncated)?;
    *block = rest;
    if !coded {
        return Ok(text);
    }
    room.clear();
    crate::protocol::http2::hpack::static_table::decode(text, room)?;
    Ok(room)
}
