//! UTF-8, checked however it is cut.

/// The checker of one message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utf8 {
    /// The beginning of a character that was cut.
    cut: [u8; 4],
    have: usize,
}

impl Utf8 {
    /// Whether the text may go on so.
    #[inline]
    pub fn take(&mut self, mut bytes: &[u8]) -> bool {
        while self.have > 0 {
            let Some((&byte, rest)) = bytes.split_first() else {
                return true;
            };
            self.cut[self.have] = byte;
            bytes = rest;
            match std::str::from_utf8(&self.cut[..=self.have]) {
                Ok(_) => self.have = 0,
                // At most three bytes can begin a character and not be one.
                Err(fault) if fault.error_len().is_none() && self.have < 3 => self.have += 1,
                Err(_) => return false,
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => true,
            Err(fault) if fault.error_len().is_none() => {
                let tail = &bytes[fault.valid_up_to()..];
                self.cut[..tail.len()].copy_from_slice(tail);
                self.have = tail.len();
                true
            }
            Err(_) => false,
        }
    }

    /// Whether the text may end here.
    pub const fn is_whole(self) -> bool {
        self.have == 0
    }
}
