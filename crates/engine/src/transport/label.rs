//! How a completion of io_uring names what it completes: generation, operation and slot in 64 bits.

use super::Token;

/// Slots have 24 of the bits.
pub const MAX_SLOTS: usize = 1 << 24;

/// What was asked of the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Connect.
    Connect,
    /// Receive, again and again.
    Receive,
    /// Send a request.
    Send,
    /// Send bytes of a flight; the slot is its number.
    Fly,
    /// Let another operation or a socket go; only a failure is told, and it means that there was nothing to let go.
    Release,
    /// Wait until another poller has something; once.
    Watch,
}

/// Packs.
pub fn label(operation: Operation, token: Token) -> u64 {
    u64::from(token.generation) << 32 | (operation as u64) << 24 | u64::from(token.slot)
}

/// Unpacks.
pub fn unlabel(label: u64) -> (Operation, Token) {
    let operation = match (label >> 24) as u8 {
        0 => Operation::Connect,
        1 => Operation::Receive,
        2 => Operation::Send,
        3 => Operation::Fly,
        4 => Operation::Release,
        _ => Operation::Watch,
    };
    (
        operation,
        Token {
            slot: label as u32 & (MAX_SLOTS as u32 - 1),
            generation: (label >> 32) as u32,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_comes_back_as_it_was() {
        for operation in [
            Operation::Connect,
            Operation::Receive,
            Operation::Send,
            Operation::Fly,
            Operation::Release,
            Operation::Watch,
        ] {
            let token = Token {
                slot: MAX_SLOTS as u32 - 1,
                generation: u32::MAX,
            };
            let (seen, same) = unlabel(label(operation, token));
            assert!(seen == operation && same == token);
        }
    }
}
