use super::*;
use crate::clock::SECOND;
use proptest::prelude::*;

fn walk(count: usize, mut arrivals: Arrivals) -> Vec<Nanos> {
    (0..count)
        .map(|_| {
            let due = arrivals.due();
            arrivals.advance();
            due
        })
        .collect()
}

fn first(count: usize, spread: Spread, rate: f64, thread: u64, threads: u64) -> Vec<Nanos> {
    let schedule = Schedule::constant(rate);
    walk(count, Arrivals::new(spread, schedule, 7, thread, threads))
}

fn step(from: f64, to: f64, length_s: f64) -> Step {
    Step {
        from,
        to,
        length: (length_s * 1e9).round() as Nanos,
    }
}

fn dues(count: usize, steps: &[Step]) -> Vec<Nanos> {
    let schedule = Schedule::new(steps);
    walk(count, Arrivals::new(Spread::Constant, schedule, 7, 0, 1))
}

#[test]
fn a_constant_pace_is_a_table() {
    let rows: [(&str, f64, u64, u64, &[Nanos]); 5] = [
        (
            "four a second, alone",
            4.0,
            0,
            1,
            &[0, 250_000_000, 500_000_000],
        ),
        (
            "the second of two threads takes the odd ones",
            4.0,
            1,
            2,
            &[250_000_000, 750_000_000],
        ),
        (
            "three a second rounds to the nearest ns, without drift",
            3.0,
            0,
            1,
            &[0, 333_333_333, 666_666_667, SECOND],
        ),
        (
            "less than one a second",
            0.5,
            0,
            1,
            &[0, 2 * SECOND, 4 * SECOND],
        ),
        ("a million a second", 1e6, 3, 4, &[3_000, 7_000]),
    ];
    for (what, rate, thread, threads, wanted) in rows {
        assert_eq!(
            first(wanted.len(), Spread::Constant, rate, thread, threads),
            wanted,
            "{what}"
        );
    }
}

#[test]
fn a_schedule_is_a_table() {
    const MS: Nanos = 1_000_000;
    let rows: [(&str, &[Step], &[Nanos]); 6] = [
        (
            "two steps: the first request of the second is due as it begins",
            &[step(2.0, 2.0, 1.0), step(4.0, 4.0, 1.0)],
            &[0, 500 * MS, 1_000 * MS, 1_250 * MS, 1_500 * MS, 1_750 * MS],
        ),
        (
            "the last rate goes on",
            &[step(2.0, 2.0, 1.0)],
            &[0, 500 * MS, 1_000 * MS, 1_500 * MS],
        ),
        (
            "a ramp up from nothing: t² requests by t",
            &[step(0.0, 4.0, 2.0)],
            &[
                0,
                1_000 * MS,
                1_414_213_562,
                1_732_050_808,
                2_000 * MS,
                2_250 * MS,
            ],
        ),
        (
            "a ramp down to nothing: the last due a moment before the end, and none after it",
            &[step(4.0, 0.0, 2.0)],
            &[0, 267_949_192, 585_786_438, 1_000 * MS, NEVER],
        ),
        (
            "a pause",
            &[
                step(2.0, 2.0, 1.0),
                step(0.0, 0.0, 3.0),
                step(1.0, 1.0, 1.0),
            ],
            &[0, 500 * MS, 4_000 * MS, 5_000 * MS],
        ),
        (
            "a step that ends between two requests hands on the fraction",
            &[step(1.0, 1.0, 0.5), step(10.0, 10.0, 1.0)],
            &[0, 550 * MS, 650 * MS],
        ),
    ];
    for (what, steps, wanted) in rows {
        assert_eq!(dues(wanted.len(), steps), wanted, "{what}");
    }
}

#[test]
fn a_poisson_pace_has_the_mean_and_the_deviation_of_an_exponential() {
    let dues = first(200_001, Spread::Poisson, 1000.0, 0, 1);
    let gaps: Vec<f64> = dues
        .windows(2)
        .map(|w| (w[1] - w[0]) as f64 / 1e6)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Standard error of the mean of 200 000 exponential gaps is 0.22 %; four of them.
    assert!((mean - 1.0).abs() < 0.009, "{mean}");
    assert!((variance.sqrt() - 1.0).abs() < 0.02, "{}", variance.sqrt());
}

/// Given their number, the arrivals of a Poisson process are spread as if each were drawn by itself from the rate
/// (Çinlar 1975, chapter 4): Kolmogorov–Smirnov against the integral of the rate, at 0.1 %.
#[test]
fn a_poisson_ramp_follows_its_rate() {
    let ramp = [step(0.0, 2_000.0, 10.0)];
    let arrivals = Arrivals::new(Spread::Poisson, Schedule::new(&ramp), 7, 0, 1);
    let mut dues = walk(12_000, arrivals);
    dues.retain(|&due| due < 10 * SECOND);
    let count = dues.len() as f64;
    // 10 000 are expected, with a deviation of 100.
    assert!((9_600.0..10_400.0).contains(&count), "{count}");
    let distance = dues
        .iter()
        .zip(1..)
        .map(|(&due, rank)| {
            let wanted = (due as f64 / (10.0 * SECOND as f64)).powi(2);
            (f64::from(rank) / count - wanted).abs()
        })
        .fold(0.0, f64::max);
    assert!(distance < 1.95 / count.sqrt(), "{distance}");
}

#[test]
fn a_seed_repeats_itself_and_another_differs() {
    let at = |seed| unit_gap(seed, 12).to_bits();
    assert_eq!(at(4711), at(4711));
    assert_ne!(at(4711), at(4712));
}

/// Twice the integral of the rates up to `offset`, in requests × 10⁹, and what that is to be divided by:
/// whole numbers, since the rates are whole, and nothing is rounded. A ramp of `length` from `a` to `b` has `a·t + (b − a)·t² / (2·length)` requests by `t`.
fn twice_expected(steps: &[Step], offset: Nanos) -> (i128, i128) {
    let (mut whole, mut start) = (0_i128, 0);
    for step in steps {
        let t = i128::from(offset.saturating_sub(start).min(step.length));
        let (a, b, length) = (step.from as i128, step.to as i128, i128::from(step.length));
        if t == length {
            whole += (a + b) * length;
        } else {
            // This is the piece the offset lies in: what is before it, and the piece over its length.
            return (
                whole * length + 2 * a * t * length + (b - a) * t * t,
                length,
            );
        }
        start += step.length;
    }
    let rate = steps.last().map_or(0, |step| step.to as i128);
    (whole + 2 * rate * i128::from(offset - start), 1)
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let one = (1_u32..5_000, 1_u32..5_000, any::<bool>(), 1_u64..3_000).prop_map(
        |(from, to, is_ramp, length_ms)| Step {
            from: f64::from(from),
            to: f64::from(if is_ramp { to } else { from }),
            length: length_ms * 1_000_000,
        },
    );
    prop::collection::vec(one, 1..8)
}

proptest! {
    /// The inverse is right to the nanosecond: by half a nanosecond before a request's due time fewer than its number
    /// are due, by half a nanosecond after it no fewer. In whole numbers; far into the load, where sums would drift.
    #[test]
    fn a_request_of_a_schedule_is_due_when_its_number_is_reached(
        steps in any_steps(), repeats in 1_usize..400, n in 0_u64..5_000_000
    ) {
        let steps: Vec<Step> = steps.iter().copied().cycle().take(steps.len() * repeats).collect();
        let schedule = Schedule::new(&steps);
        let mut at = 0;
        let due = schedule.due(Count::from(n) * ONE, &mut at);
        let wanted = 2 * i128::from(n) * 1_000_000_000;
        let (early, scale) = twice_expected(&steps, due.saturating_sub(1));
        prop_assert!(due == 0 || early <= wanted * scale, "due too late: {n} at {due}");
        let (late, scale) = twice_expected(&steps, due + 1);
        prop_assert!(late >= wanted * scale, "due too early: {n} at {due}");
    }

    #[test]
    fn threads_together_make_the_same_arrivals_as_one(
        steps in any_steps(), threads in 1_u64..7, poisson in any::<bool>()
    ) {
        let spread = if poisson { Spread::Poisson } else { Spread::Constant };
        let schedule = Schedule::new(&steps);
        let alone = walk(60, Arrivals::new(spread, schedule.clone(), 7, 0, 1));
        for thread in 0..threads {
            let share = walk(8, Arrivals::new(spread, schedule.clone(), 7, thread, threads));
            for (k, due) in share.into_iter().enumerate() {
                prop_assert_eq!(due, alone[thread as usize + k * threads as usize]);
            }
        }
    }

    #[test]
    fn nothing_is_due_before_its_predecessor(steps in any_steps(), poisson in any::<bool>()) {
        let spread = if poisson { Spread::Poisson } else { Spread::Constant };
        let dues = walk(2_000, Arrivals::new(spread, Schedule::new(&steps), 7, 0, 1));
        prop_assert!(dues.windows(2).all(|w| w[0] <= w[1]));
    }

    /// A ramp told in ten parts is the same ramp.
    #[test]
    fn a_ramp_in_parts_is_the_ramp(from in 0_u32..1_000, to in 0_u32..1_000, tenth_ms in 100_u64..2_000) {
        let (from, to) = (f64::from(from), f64::from(to));
        let whole = Step { from, to, length: 10 * tenth_ms * 1_000_000 };
        let parts: Vec<Step> = (0..10)
            .map(|part| Step {
                from: whole.rate_at(part * tenth_ms * 1_000_000),
                to: whole.rate_at((part + 1) * tenth_ms * 1_000_000),
                length: tenth_ms * 1_000_000,
            })
            .collect();
        let count = (whole.requests() as usize).min(3_000);
        for (one, ten) in dues(count, &[whole]).into_iter().zip(dues(count, &parts)) {
            prop_assert!(one.abs_diff(ten) <= 1, "{one} {ten}");
        }
    }
}
