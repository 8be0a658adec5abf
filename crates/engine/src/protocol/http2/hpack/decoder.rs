//! Header blocks, read.

use super::dynamic::Dynamic;
use super::error::HpackError;
use super::static_table::FIELDS;
use super::{DEFAULT_TABLE_SIZE, cost, huffman, integer};

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
            let (name, value) = entry(&self.table, integer::read(block, 7)?)?;
            let cost = cost(name, value);
            if cost <= left {
                on(name, value);
            }
            return Ok(cost);
        }
        let keep = byte & 0x40 != 0;
        let index = integer::read(block, if keep { 6 } else { 4 })?;
        let Self { table, name, value } = self;
        let name = match index {
            0 => string(block, name)?,
            _ => {
                name.clear();
                name.extend_from_slice(entry(table, index)?.0);
                name.as_slice()
            }
        };
        let value = string(block, value)?;
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
        let asked = integer::read(block, 5)?;
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
    pub(super) const fn table(&self) -> &Dynamic {
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
fn string<'a, 'b: 'a>(block: &mut &'b [u8], room: &'a mut Vec<u8>) -> Result<&'a [u8], HpackError> {
    let coded = block.first().is_some_and(|byte| byte & 0x80 != 0);
    let length = integer::read(block, 7)? as usize;
    let (text, rest) = block
        .split_at_checked(length)
        .ok_or(HpackError::Truncated)?;
    *block = rest;
    if !coded {
        return Ok(text);
    }
    room.clear();
    huffman::decode(text, room)?;
    Ok(room)
}
