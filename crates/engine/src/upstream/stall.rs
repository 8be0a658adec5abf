//! Stalls: spans in which nothing is answered, as a pure function of time.
//!
//! Every 5 s for 1 s: nothing is answered in [5, 6), [10, 11), … seconds after the start.

/// Nanoseconds; `hold` is less than `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    pub every: u64,
    pub hold: u64,
}

impl Stall {
    /// When an answer due at `due` may go out; both since the start.
    pub const fn release(self, due: u64) -> u64 {
        let into = due % self.every;
        if due >= self.every && into < self.hold {
            due - into + self.hold
        } else {
            due
        }
    }

    /// How many stalls have begun.
    pub const fn begun(self, now: u64) -> u64 {
        now / self.every
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_due_in_a_stall_goes_out_at_its_end() {
        let stall = Stall {
            every: 5_000,
            hold: 1_000,
        };
        let rows = [
            (0, 0),
            (999, 999),
            (4_999, 4_999),
            (5_000, 6_000),
            (5_999, 6_000),
            (6_000, 6_000),
            (10_500, 11_000),
        ];
        for (due, released) in rows {
            assert_eq!(stall.release(due), released, "due at {due}");
        }
        assert_eq!(
            (stall.begun(4_999), stall.begun(5_000), stall.begun(10_500)),
            (0, 1, 2)
        );
    }
}
