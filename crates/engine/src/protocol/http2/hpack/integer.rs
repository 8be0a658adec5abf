//! Numbers with a prefix of some bits (RFC 7541, section 5.1).

use super::error::HpackError;

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
