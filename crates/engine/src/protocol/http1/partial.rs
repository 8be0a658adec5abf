//! The beginning of a head that came in several segments.

/// The longest head that is gathered. Servers and proxies refuse heads beyond 8 to 32 kB; twice the
/// largest of these is generous, and 10 000 connections cannot fill the memory with unfinished heads.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Keeps a head until its end is there, so that it is parsed once: a peer that sends single bytes costs no more
/// than one that sends lines. Holds memory only while a head is incomplete.
#[derive(Debug, Default)]
pub(crate) struct Partial(Vec<u8>);

/// The head is longer than [`MAX_HEAD_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Partial {
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What there is of the head.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Gives the memory back.
    pub fn forget(&mut self) {
        if self.0.capacity() > 0 {
            self.0 = Vec::new();
        }
    }

    #[cfg(test)]
    pub const fn memory(&self) -> usize {
        self.0.capacity()
    }

    /// Keeps what `bytes` has of the head; returns how many of them that were, and the head if it is complete.
    pub fn gather(&mut self, bytes: &[u8]) -> Result<(usize, Option<Vec<u8>>), TooLong> {
        let before = self.0.len();
        let fits = bytes.len().min(MAX_HEAD_BYTES + 1 - before);
        self.0.extend_from_slice(&bytes[..fits]);
        match end(&self.0, before) {
            Some(end) => {
                let mut head = std::mem::take(&mut self.0);
                head.truncate(end);
                Ok((end - before, Some(head)))
            }
            None if self.0.len() > MAX_HEAD_BYTES => Err(TooLong),
            None => Ok((fits, None)),
        }
    }
}

/// Finds the end of a head (one past its empty line) in what was gathered, of which the first `searched`
/// bytes hold none. Lines may end with a bare LF: two servers in the field write them.
fn end(gathered: &[u8], searched: usize) -> Option<usize> {
    // The line end before the empty line may be up to two bytes back: "\n\r" came, "\n" comes.
    let from = searched.saturating_sub(2);
    memchr::memchr_iter(b'\n', &gathered[from..])
        .map(|offset| from + offset + 1)
        .find_map(|after| match gathered[after..] {
            [b'\n', ..] => Some(after + 1),
            [b'\r', b'\n', ..] => Some(after + 2),
            _ => None,
        })
}
