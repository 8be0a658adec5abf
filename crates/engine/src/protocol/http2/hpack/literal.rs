//! The writing end: single representations of fields.

use super::{huffman, integer, static_table};

/// A field by its place in the tables (RFC 7541, section 6.1).
pub fn indexed(out: &mut Vec<u8>, index: usize) {
    integer::write(out, 0x80, 7, index);
}

/// A field spelt out; `keep`: the reader puts it into its dynamic table (section 6.2.1), else it does not (6.2.2).
pub fn literal(out: &mut Vec<u8>, name: &[u8], value: &[u8], keep: bool) {
    let (pattern, prefix) = if keep { (0x40, 6) } else { (0x00, 4) };
    match static_table::find(name, value) {
        Some((index, _)) => integer::write(out, pattern, prefix, index),
        None => {
            out.push(pattern);
            string(out, name);
        }
    }
    string(out, value);
}

/// A new size of the writer's dynamic table (section 6.3).
pub fn resize(out: &mut Vec<u8>, size: usize) {
    integer::write(out, 0x20, 5, size);
}

fn string(out: &mut Vec<u8>, text: &[u8]) {
    let coded = huffman::coded_len(text);
    if coded < text.len() {
        integer::write(out, 0x80, 7, coded);
        huffman::encode(text, out);
    } else {
        integer::write(out, 0, 7, text.len());
        out.extend_from_slice(text);
    }
}
