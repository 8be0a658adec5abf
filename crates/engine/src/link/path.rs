//! What becomes of each packet that is sent one way: a pure function of when packets come and how large they are.
//!
//! In this order, which is also netem's: loss by chance; a queue with room for so many packets (drop-tail); a bottleneck
//! that sends them one by one at its rate; a delay. A packet that is lost by chance takes no place in the queue.
//!
//! Whether a packet is lost by chance follows from the seed, the direction, the span, and its number in that span: not
//! from when it comes, how large it is, or what came before. The same seed loses the same numbers, whatever sends them.
//!
//! Packets keep their order, under jitter too, because jitter is a function of time and not of the packet: a random
//! number between -1 and 1 every two jitters of time, and straight lines between them. So the delay changes at most as
//! fast as time goes by, and no packet overtakes another. Over time the delay has the mean told and a standard deviation of
//! `jitter * sqrt(2) / 3`.

use std::collections::VecDeque;

use crate::chance::chance;
use crate::clock::Nanos;
use crate::link::Way;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It comes out at this moment.
    Arrives(Nanos),
    /// Lost by chance.
    Lost,
    /// The queue was full.
    Dropped,
}

/// Packets of a span have numbers of their own as long as there are fewer: at 10 million a second for a day.
const SPAN: u64 = 1 << 40;

/// One direction of a link.
#[derive(Debug)]
pub struct Path {
    way: Way,
    bottleneck: Option<Bottleneck>,
    seed: u64,
    /// Which of the numbers drawn from the seed are this direction's.
    draw: u64,
    /// The number of the next packet: spans so far × [`SPAN`], and packets in this one.
    next: u64,
    origin: Nanos,
    last: Nanos,
}

#[derive(Debug)]
struct Bottleneck {
    ns_per_byte: f64,
    /// The part of a nanosecond by which `free` is too early.
    rest: f64,
    /// When the last packet taken will have been sent.
    free: Nanos,
    room: usize,
    /// When each packet that waits begins to be sent.
    queue: VecDeque<Nanos>,
}

impl Path {
    /// A path that begins at `origin`; `number` tells the directions of a link apart (0 or 1).
    #[must_use]
    pub fn new(way: &Way, seed: u64, number: u64, origin: Nanos) -> Self {
        let bottleneck = way.rate_mbit.map(|rate| Bottleneck {
            ns_per_byte: 8e3 / rate,
            rest: 0.0,
            free: origin,
            room: way.queue_packets.unwrap_or(usize::MAX),
            queue: VecDeque::new(),
        });
        Self {
            way: way.clone(),
            bottleneck,
            seed,
            draw: 2 * number,
            next: 0,
            origin,
            last: origin,
        }
    }

    /// A span begins: its packets are numbered from 0, and it has draws of its own.
    pub fn begin_span(&mut self) {
        self.next = (self.next / SPAN + 1) * SPAN;
    }

    /// A packet of `bytes` is sent at `now`, which never decreases.
    pub fn send(&mut self, now: Nanos, bytes: usize) -> Fate {
        let number = self.next;
        self.next += 1;
        if self.way.loss > 0.0 && chance(self.seed, number, self.draw) < self.way.loss {
            return Fate::Lost;
        }
        let through = match &mut self.bottleneck {
            None => Some(now),
            Some(bottleneck) => bottleneck.take(now, bytes),
        };
        let Some(through) = through else {
            return Fate::Dropped;
        };
        // Rounding may put a packet a nanosecond before the last.
        self.last = self.last.max(through + self.delay(through));
        Fate::Arrives(self.last)
    }

    /// How long a packet that leaves the bottleneck at `moment` travels.
    fn delay(&self, moment: Nanos) -> Nanos {
        let (delay, jitter) = (self.way.delay_ns, self.way.jitter_ns);
        if jitter == 0 {
            return delay;
        }
        let (since, step) = (moment - self.origin, 2 * jitter);
        let (knot, share) = (since / step, (since % step) as f64 / step as f64);
        let [from, to] = [knot, knot + 1].map(|n| 2.0 * chance(self.seed, n, self.draw + 1) - 1.0);
        let deviation = (from + (to - from) * share) * jitter as f64;
        delay.saturating_add_signed(deviation.round() as i64)
    }
}

impl Bottleneck {
    /// When a packet that comes at `now` will have been sent; None: there is no room for it.
    fn take(&mut self, now: Nanos, bytes: usize) -> Option<Nanos> {
        while self.queue.front().is_some_and(|begins| *begins <= now) {
            self.queue.pop_front();
        }
        if self.free <= now {
            (self.free, self.rest) = (now, 0.0);
        } else if self.queue.len() >= self.room {
            return None;
        } else {
            self.queue.push_back(self.free);
        }
        let takes = bytes as f64 * self.ns_per_byte + self.rest;
        self.free += takes as Nanos;
        self.rest = takes.fract();
        Some(self.free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MILLISECOND, SECOND};
    use proptest::prelude::*;

    const START: Nanos = 77 * SECOND;

    fn way(delay_ns: Nanos) -> Way {
        Way {
            delay_ns,
            ..Way::default()
        }
    }

    fn path(way: &Way) -> Path {
        Path::new(way, 4711, 0, START)
    }

    #[test]
    fn without_a_bottleneck_every_packet_takes_the_delay() {
        let mut path = path(&way(80 * MILLISECOND));
        for at in [START, START, START + 3, START + SECOND] {
            assert_eq!(path.send(at, 1500), Fate::Arrives(at + 80 * MILLISECOND));
        }
    }

    #[test]
    fn a_bottleneck_sends_one_after_the_other_at_its_rate() {
        let mut path = path(&Way {
            rate_mbit: Some(12.0),
            ..way(MILLISECOND)
        });
        // 1 500 bytes at 12 Mbit/s take 1 ms.
        let arrivals: Vec<Fate> = (0..3).map(|_| path.send(START, 1500)).collect();
        let wanted: Vec<Fate> = (2..5)
            .map(|ms| Fate::Arrives(START + ms * MILLISECOND))
            .collect();
        assert_eq!(arrivals, wanted);
        let later = START + SECOND;
        assert_eq!(
            path.send(later, 750),
            Fate::Arrives(later + MILLISECOND * 3 / 2),
            "it had been idle"
        );
    }

    #[test]
    fn parts_of_nanoseconds_are_not_lost() {
        // 40 bytes at 3 Mbit/s take 106 666.67 ns: 30 000 of them 3.2 s.
        let mut path = path(&Way {
            rate_mbit: Some(3.0),
            ..way(0)
        });
        let last = (0..30_000).map(|_| path.send(START, 40)).last().unwrap();
        let Fate::Arrives(last) = last else {
            panic!("{last:?}")
        };
        assert!(
            (last - START).abs_diff(3_200_000_000) <= 1,
            "{}",
            last - START
        );
    }

    #[test]
    fn the_queue_holds_so_many_besides_the_one_that_is_sent() {
        let limited = Way {
            rate_mbit: Some(12.0),
            queue_packets: Some(2),
            ..way(0)
        };
        let mut path = path(&limited);
        let fates: Vec<bool> = (0..5)
            .map(|_| path.send(START, 1500) == Fate::Dropped)
            .collect();
        assert_eq!(fates, [false, false, false, true, true]);
        let next = START + MILLISECOND; // the first has been sent, the second is begun: one place is free
        assert_eq!(
            path.send(next, 1500),
            Fate::Arrives(START + 4 * MILLISECOND)
        );
        assert_eq!(path.send(next, 1500), Fate::Dropped);
    }

    #[test]
    fn so_many_are_lost_as_told_and_the_same_ones_for_the_same_seed() {
        let lossy = Way {
            loss: 0.01,
            ..way(0)
        };
        let fates = |seed, number| -> Vec<Fate> {
            let mut path = Path::new(&lossy, seed, number, START);
            (0..100_000).map(|n| path.send(START + n, 100)).collect()
        };
        let lost = |fates: &[Fate]| fates.iter().filter(|fate| **fate == Fate::Lost).count();
        let first = fates(1, 0);
        // Binomial: mean 1 000, standard deviation 31.
        assert!((875..1125).contains(&lost(&first)), "{}", lost(&first));
        assert_eq!(first, fates(1, 0));
        assert_ne!(first, fates(2, 0));
        assert_ne!(first, fates(1, 1), "the way back has its own chances");
        let pairs = first
            .windows(2)
            .filter(|two| two[0] == Fate::Lost && two[1] == Fate::Lost);
        assert!(
            pairs.count() < 40,
            "losses are independent: 10 pairs are to be expected"
        );
    }

    #[test]
    fn a_span_has_draws_of_its_own_whatever_came_before_it() {
        let lossy = Way {
            loss: 0.1,
            ..way(0)
        };
        let spans = |before: u64| -> [Vec<Fate>; 2] {
            let mut path = path(&lossy);
            for n in 0..before {
                path.send(START + n, 60);
            }
            [(); 2].map(|()| {
                path.begin_span();
                (0..2000).map(|_| path.send(START + SECOND, 100)).collect()
            })
        };
        let [first, second] = spans(0);
        assert_ne!(first, second);
        for before in [1, 2, 777] {
            assert_eq!(spans(before), [first.clone(), second.clone()]);
        }
    }

    #[test]
    fn what_is_lost_by_chance_takes_no_place_in_the_queue() {
        let all = Way {
            loss: 1.0,
            rate_mbit: Some(1.0),
            queue_packets: Some(1),
            ..way(0)
        };
        let mut path = path(&all);
        assert!((0..100).all(|_| path.send(START, 1500) == Fate::Lost));
    }

    #[test]
    fn jitter_varies_the_delay_around_its_mean() {
        let (delay, jitter) = (20 * MILLISECOND, 4 * MILLISECOND);
        let mut path = path(&Way {
            jitter_ns: jitter,
            ..way(delay)
        });
        let travelled: Vec<f64> = (0..200_000_u64)
            .map(|n| START + n * 100_000)
            .map(|at| match path.send(at, 100) {
                Fate::Arrives(out) => (out - at) as f64,
                other => panic!("{other:?}"),
            })
            .collect();
        let count = travelled.len() as f64;
        let mean = travelled.iter().sum::<f64>() / count;
        let deviation = (travelled
            .iter()
            .map(|one| (one - mean).powi(2))
            .sum::<f64>()
            / count)
            .sqrt();
        let (delay, jitter) = (delay as f64, jitter as f64);
        assert!((mean / delay - 1.0).abs() < 0.01, "{mean}");
        assert!(
            (deviation / jitter / (2.0_f64.sqrt() / 3.0) - 1.0).abs() < 0.05,
            "{deviation}"
        );
        assert!(
            travelled
                .iter()
                .all(|one| (one - delay).abs() <= jitter + 1.0)
        );
    }

    proptest! {
        #[test]
        fn packets_keep_their_order_and_none_arrives_before_it_is_sent(
            gaps in prop::collection::vec((0_u64..5_000_000, 20_usize..1500), 1..200),
            delay in 0_u64..50_000_000,
            part in 0.0_f64..=1.0,
            rate in prop::option::of(0.1_f64..10_000.0),
            queue in prop::option::of(1_usize..50),
            loss in 0.0_f64..0.5,
            seed: u64,
        ) {
            let jitter_ns = (delay as f64 * part) as u64;
            let way = Way { delay_ns: delay, jitter_ns, rate_mbit: rate, queue_packets: queue, loss };
            let mut path = Path::new(&way, seed, 1, START);
            let (mut now, mut last) = (START, 0);
            for (gap, bytes) in gaps {
                now += gap;
                if let Fate::Arrives(out) = path.send(now, bytes) {
                    prop_assert!(out >= last && out >= now && out + jitter_ns + 1 >= now + delay);
                    last = out;
                }
            }
        }

        #[test]
        fn packet_k_is_lost_or_not_by_its_number_alone(
            gaps in prop::collection::vec((0_u64..5_000_000, 20_usize..1500), 1..200),
            delay in 0_u64..50_000_000,
            rate in prop::option::of(0.1_f64..10_000.0),
            queue in prop::option::of(1_usize..50),
            seed: u64,
        ) {
            let plain = Way { loss: 0.3, ..Way::default() };
            let way = Way { delay_ns: delay, rate_mbit: rate, queue_packets: queue, ..plain.clone() };
            let mut alone = Path::new(&plain, seed, 1, START);
            let mut path = Path::new(&way, seed, 1, START + 1);
            let mut now = START + 1;
            for (gap, bytes) in gaps {
                now += gap;
                let (lost, fate) = (alone.send(START, 1), path.send(now, bytes));
                prop_assert_eq!(fate == Fate::Lost, lost == Fate::Lost);
            }
        }

        #[test]
        fn a_bottleneck_never_sends_faster_than_its_rate(
            bursts in prop::collection::vec((0_u64..3_000_000, 1_usize..60), 1..50),
            rate in 1.0_f64..1000.0,
        ) {
            let mut path = Path::new(&Way { rate_mbit: Some(rate), ..way(0) }, 1, 0, START);
            let (mut now, mut sent) = (START, Vec::new());
            for (gap, count) in bursts {
                now += gap;
                for _ in 0..count {
                    if let Fate::Arrives(out) = path.send(now, 1500) {
                        sent.push(out);
                    }
                }
            }
            let takes = 1500.0 * 8e3 / rate;
            for pair in sent.windows(2) {
                prop_assert!((pair[1] - pair[0]) as f64 + 1.0 >= takes);
            }
        }
    }
}
