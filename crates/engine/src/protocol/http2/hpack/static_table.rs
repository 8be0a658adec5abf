//! The static table (RFC 7541, appendix A).

use crate::protocol::http2::hpack::HpackError;
/// Entry 1 comes first; there is no entry 0.
#[rustfmt::skip]
pub const FIELDS: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Where a field stands: its index, and whether its value is there as well as its name.
#[must_use]
pub fn find(name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
    let whole = FIELDS.iter().position(|field| *field == (name, value));
    let named = || FIELDS.iter().position(|field| field.0 == name);
    whole
        .map(|at| (at + 1, true))
        .or_else(|| named().map(|at| (at + 1, false)))
}

/// Bits of the word of each byte value, and of the end of string.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const LONGEST: usize = 30;
const END: u16 = 256;

/// The words of one length: the first of them, where its symbol stands in the sorted order, how many there are.
#[derive(Clone, Copy)]
struct Group {
    word: u32,
    at: u16,
    count: u16,
}

struct Code {
    words: [u32; 257],
    sorted: [u16; 257],
    groups: [Group; LONGEST + 1],
    /// By the next eight bits: a symbol whose word is these bits or fewer, and its length; length 0: it is longer.
    short: [(u8, u8); 256],
}

static CODE: Code = code();

const fn code() -> Code {
    let none = Group {
        word: 0,
        at: 0,
        count: 0,
    };
    let mut code = Code {
        words: [0; 257],
        sorted: [0; 257],
        groups: [none; LONGEST + 1],
        short: [(0, 0); 256],
    };
    let (mut word, mut at, mut length) = (0_u32, 0_usize, 1_usize);
    while length <= LONGEST {
        word <<= 1;
        code.groups[length].word = word;
        code.groups[length].at = at as u16;
        let mut symbol = 0;
        while symbol < 257 {
            if LENGTHS[symbol] as usize == length {
                code.words[symbol] = word;
                code.sorted[at] = symbol as u16;
                code.groups[length].count += 1;
                fill(&mut code.short, word, length, symbol);
                word += 1;
                at += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    code
}

/// All bytes that begin with this word lead to its symbol.
const fn fill(short: &mut [(u8, u8); 256], word: u32, length: usize, symbol: usize) {
    if length > 8 {
        return;
    }
    let first = (word as usize) << (8 - length);
    let mut rest = 0;
    while rest < 1 << (8 - length) {
        short[first + rest] = (symbol as u8, length as u8);
        rest += 1;
    }
}

/// Appends what `coded` says.
pub fn decode(coded: &[u8], plain: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut rest = coded.iter();
    // The low `bits` bits of the window are unread.
    let (mut window, mut bits) = (0_u64, 0_u32);
    loop {
        while bits <= 56 {
            let Some(&byte) = rest.next() else { break };
            window = window << 8 | u64::from(byte);
            bits += 8;
        }
        if bits == 0 {
            return Ok(());
        }
        // What is missing at the end reads as ones, as the padding does.
        let next = ((window << (64 - bits)) >> 32) as u32 | ones_below(bits);
        let (short, length) = CODE.short[(next >> 24) as usize];
        let (symbol, length) = match length {
            0 => long(next),
            _ => (u16::from(short), u32::from(length)),
        };
        if length > bits {
            // Section 5.2: the padding is less than a byte, and all ones.
            return match bits < 8 && symbol == END {
                true => Ok(()),
                false => Err(HpackError::BadHuffman),
            };
        }
        if symbol == END {
            return Err(HpackError::BadHuffman);
        }
        bits -= length;
        plain.push(symbol as u8);
    }
}

/// Ones in all of 32 bits but the first `bits`.
const fn ones_below(bits: u32) -> u32 {
    if bits >= 32 { 0 } else { u32::MAX >> bits }
}

/// The symbol and length of a word of more than eight bits that `next` begins with.
fn long(next: u32) -> (u16, u32) {
    for length in 9..=LONGEST {
        let group = CODE.groups[length];
        let offset = (next >> (32 - length)).wrapping_sub(group.word);
        if offset < u32::from(group.count) {
            // Both casts are exact: an offset is below 257, a length at most 30.
            return (
                CODE.sorted[usize::from(group.at) + offset as usize],
                length as u32,
            );
        }
    }
    // The code is complete: every sequence of bits begins with one of its words.
    (END, LONGEST as u32)
}

/// How many bytes `plain` takes coded.
pub fn coded_len(plain: &[u8]) -> usize {
    let bits: usize = plain
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends `plain` coded.
pub fn encode(plain: &[u8], coded: &mut Vec<u8>) {
    let (mut window, mut bits) = (0_u64, 0_u32);
    for &byte in plain {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        window = window << length | u64::from(CODE.words[usize::from(byte)]);
        bits += length;
        while bits >= 8 {
            bits -= 8;
            coded.push((window >> bits) as u8);
        }
    }
    if bits > 0 {
        coded.push((window << (8 - bits)) as u8 | 0xff >> bits);
    }
}
