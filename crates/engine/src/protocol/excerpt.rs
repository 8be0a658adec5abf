//! A server's bytes, shown.

/// Enough of a server's bytes to recognise what it speaks, escaped so that no terminal obeys them.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const ENOUGH: usize = 48;
    let shown = bytes[..bytes.len().min(ENOUGH)].escape_ascii();
    let more = if bytes.len() > ENOUGH { "…" } else { "" };
    format!("{shown}{more}")
}
