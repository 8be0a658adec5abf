//! What can be wrong with a header block.

use thiserror::Error;

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
