//! HPACK (RFC 7541): header fields in few bytes. A full decoder, and what a client needs to write one request head.

mod decoder;
mod dynamic;
mod error;
mod huffman;
mod integer;
mod literal;
mod static_table;
#[cfg(test)]
mod tests;

pub use decoder::Decoder;
pub use error::HpackError;
pub use literal::{indexed, literal, resize};
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
