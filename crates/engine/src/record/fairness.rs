//! How evenly a server divides itself among the connections of a closed loop.
//!
//! Jain's index of n shares is (Σx)²/(n·Σx²): 1 when all are equal, k/n when k of them have equal parts and the others
//! nothing (R. Jain, D. Chiu and W. Hawe, «A Quantitative Measure of Fairness and Discrimination for Resource Allocation in
//! Shared Computer Systems», DEC-TR-301, 1984). A server may serve one connection a hundred times while all others wait,
//! then the next: over a long span all shares are equal, and still most requests seem quick and a few wait for ever. So the
//! index is also taken over windows of [`TURNS`] answers for each connection and averaged (short-term fairness: C. Koksal,
//! H. Kassab and H. Balakrishnan, «An Analysis of Short-Term Fairness in Wireless Media Access Protocols», SIGMETRICS 2000).
//!
//! An answer costs a few additions: its account lies in the slot that is read and written for it anyway, a window begins
//! by its number alone, and the sum of squares grows with each count, so that nothing is ever swept.

use crate::clock::Nanos;

/// Answers in a window for each slot, on average. If all had the same chance of each answer, the index of a window would
/// be about 1/(1 + 1/8) = 0.89; where a connection gets 8 in a row, the next one whoever it is, about 1/(1 + 8/8) = 0.5,
/// and of 8 requests 7 do not wait at all.
pub const TURNS: u64 = 8;

/// What came to one slot: right answers that arrived within the span.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    answers: u64,
    /// From due to done, all of them together.
    waited: Nanos,
    /// The window that `turns` are counted in.
    window: u32,
    turns: u32,
}

/// What came to one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    answers: u64,
    waited: Nanos,
}

/// See the module.
#[derive(Debug)]
pub struct Fairness {
    connections: Vec<Share>,
    /// Answers in a window.
    length: u64,
    slots: u64,
    /// Number of this window; accounts begin before the first.
    window: u32,
    left: u64,
    /// Of the counts in this window.
    squares: u64,
    /// Answers in windows that are full, and the sum of the indices of these, each weighted by its answers.
    counted: u64,
    indices: f64,
}

impl Fairness {
    /// Of so many slots, which belong to so many connections: slot s to connection s % connections.
    pub fn new(connections: usize, slots: usize) -> Fairness {
        let length = TURNS * slots as u64;
        Fairness {
            connections: vec![Share::default(); connections],
            length,
            slots: slots as u64,
            window: 1,
            left: length,
            squares: 0,
            counted: 0,
            indices: 0.0,
        }
    }

    /// A right answer arrived within the span, `waited` after its request was due.
    #[inline]
    pub fn answered(&mut self, account: &mut Account, waited: Nanos) {
        account.answers += 1;
        account.waited += waited;
        if account.window != self.window {
            account.window = self.window;
            account.turns = 0;
        }
        self.squares += 2 * u64::from(account.turns) + 1; // (n + 1)² - n²
        account.turns += 1;
        self.left -= 1;
        if self.left == 0 {
            self.turn();
        }
    }

    #[cold]
    fn turn(&mut self) {
        let answers = self.length as f64;
        self.indices += answers * (answers * answers / (self.slots as f64 * self.squares as f64));
        self.counted += self.length;
        self.window = self.window.wrapping_add(1);
        (self.left, self.squares) = (self.length, 0);
    }

    /// The load is over: takes in the accounts of all slots, in their order.
    pub fn close(&mut self, accounts: impl Iterator<Item = Account>) {
        let connections = self.connections.len();
        for (slot, account) in accounts.enumerate() {
            let share = &mut self.connections[slot % connections];
            share.answers += account.answers;
            share.waited += account.waited;
        }
    }

    /// Adds the connections of another thread.
    pub fn add(&mut self, other: Fairness) {
        self.connections.extend(other.connections);
        self.counted += other.counted;
        self.indices += other.indices;
    }

    /// How many connections there were.
    pub fn connections(&self) -> u64 {
        self.connections.len() as u64
    }

    /// Answers that came to each of them.
    pub fn shares(&self) -> impl Iterator<Item = u64> {
        self.connections.iter().map(|share| share.answers)
    }

    /// Jain's index of the whole span; None: there was no answer.
    pub fn index(&self) -> Option<f64> {
        jain(self.shares())
    }

    /// The mean of Jain's index over windows, each weighted by its answers; None: no window was full.
    pub fn short_term(&self) -> Option<f64> {
        (self.counted > 0).then(|| self.indices / self.counted as f64)
    }

    /// The mean over all answers of the time from due to done.
    pub fn mean(&self) -> Option<f64> {
        let whole = self.connections.iter().fold((0, 0u128), |sum, share| {
            (sum.0 + share.answers, sum.1 + u128::from(share.waited))
        });
        (whole.0 > 0).then(|| whole.1 as f64 / whole.0 as f64)
    }

    /// The median over connections of each one's own mean, so that each weighs the same, however many answers it got. One
    /// without an answer waited longer than any that had some; None: so did half of them.
    pub fn median(&self) -> Option<f64> {
        let mut means: Vec<f64> = self
            .connections
            .iter()
            .map(|share| match share.answers {
                0 => f64::INFINITY,
                answers => share.waited as f64 / answers as f64,
            })
            .collect();
        means.sort_by(f64::total_cmp);
        let upper = *means.get(means.len() / 2)?;
        let lower = means[(means.len() - 1) / 2];
        Some(f64::midpoint(lower, upper)).filter(|median| median.is_finite())
    }
}

/// Jain's index of these shares; None: there is nothing to share.
pub fn jain(shares: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for share in shares {
        let share = share as f64;
        count += 1;
        sum += share;
        squares += share * share;
    }
    (sum > 0.0).then(|| sum * sum / (count as f64 * squares))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A thread of so many connections with a slot each, to which answers come in this order, with these waits.
    fn heard(connections: usize, answers: &[(usize, Nanos)]) -> Fairness {
        let mut accounts = vec![Account::default(); connections];
        let mut fairness = Fairness::new(connections, connections);
        for &(slot, waited) in answers {
            fairness.answered(&mut accounts[slot], waited);
        }
        fairness.close(accounts.into_iter());
        fairness
    }

    fn close_to(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
    }

    proptest! {
        #[test]
        fn jains_index_is_between_one_share_and_all_and_knows_no_unit(
            shares in prop::collection::vec(0u64..1_000_000, 1..60),
            times in 1u64..1_000,
        ) {
            let index = jain(shares.iter().copied());
            let Some(index) = index else {
                prop_assert_eq!(shares.iter().sum::<u64>(), 0);
                return Ok(());
            };
            let count = shares.len() as f64;
            prop_assert!(index >= 1.0 / count - 1e-12 && index <= 1.0 + 1e-12, "{}", index);
            let scaled = jain(shares.iter().map(|share| share * times)).unwrap();
            prop_assert!(close_to(index, scaled));
            let mut shuffled = shares.clone();
            shuffled.reverse();
            prop_assert!(close_to(index, jain(shuffled.into_iter()).unwrap()));
        }

        #[test]
        fn equal_parts_for_some_and_nothing_for_the_others_are_their_share(
            served in 1usize..40, starved in 0usize..40, each in 1u64..1_000
        ) {
            let shares = std::iter::repeat_n(each, served).chain(std::iter::repeat_n(0, starved));
            let share = served as f64 / (served + starved) as f64;
            prop_assert!(close_to(jain(shares).unwrap(), share));
        }

        #[test]
        fn threads_together_are_what_one_would_have_counted(
            answers in prop::collection::vec((0usize..12, 1u64..1_000_000), 0..400),
            first in 1usize..12,
        ) {
            let whole = heard(12, &answers);
            let (mine, others): (Vec<_>, Vec<_>) = answers.iter().partition(|(slot, _)| *slot < first);
            let others: Vec<_> = others.iter().map(|(slot, waited)| (slot - first, *waited)).collect();
            let mut merged = heard(first, &mine);
            merged.add(heard(12 - first, &others));
            prop_assert_eq!(merged.shares().collect::<Vec<_>>(), whole.shares().collect::<Vec<_>>());
            prop_assert_eq!(merged.index(), whole.index());
            prop_assert_eq!(merged.mean(), whole.mean());
            prop_assert_eq!(merged.median(), whole.median());
        }

        #[test]
        fn the_squares_of_a_window_are_those_of_its_counts(
            answers in prop::collection::vec(0usize..5, 0..700)
        ) {
            let waits: Vec<_> = answers.iter().map(|slot| (*slot, 1)).collect();
            let window = TURNS as usize * 5;
            let indices: Vec<f64> = answers
                .chunks_exact(window)
                .map(|chunk| jain((0..5).map(|slot| chunk.iter().filter(|&&heard| heard == slot).count() as u64)).unwrap())
                .collect();
            let mean = indices.iter().sum::<f64>() / indices.len() as f64;
            match heard(5, &waits).short_term() {
                Some(found) => prop_assert!(close_to(found, mean), "{} {}", found, mean),
                None => prop_assert!(indices.is_empty()),
            }
        }
    }

    #[test]
    fn a_turn_of_a_hundred_for_each_is_fair_in_the_end_and_not_on_the_way() {
        let answers: Vec<(usize, Nanos)> = (0..64 * 100 * 20)
            .map(|number| {
                let wait = if number % 100 == 0 {
                    630_000_000
                } else {
                    100_000
                };
                (number / 100 % 64, wait)
            })
            .collect();
        let fairness = heard(64, &answers);
        assert!(close_to(fairness.index().unwrap(), 1.0));
        let short = fairness.short_term().unwrap();
        assert!((0.05..0.15).contains(&short), "{short}");
        let median = fairness.median().unwrap();
        assert!(
            close_to(median, fairness.mean().unwrap()) && median > 6_000_000.0,
            "{median}"
        );
    }

    #[test]
    fn streams_count_for_their_connection() {
        let mut accounts = [Account::default(); 6];
        let mut fairness = Fairness::new(2, 6);
        for slot in [0, 2, 4, 4, 1] {
            fairness.answered(&mut accounts[slot], 10);
        }
        fairness.close(accounts.into_iter());
        assert_eq!(fairness.shares().collect::<Vec<_>>(), [4, 1]);
        assert_eq!(fairness.short_term(), None, "no window was full");
    }

    #[test]
    fn a_connection_without_an_answer_waits_longer_than_any_other() {
        let some = [(0, 5), (1, 7), (1, 9)];
        assert_eq!(heard(3, &some).median(), Some(8.0));
        assert_eq!(heard(4, &some).median(), None);
        assert_eq!(heard(2, &[]).index(), None);
    }
}
