//! Randomness as pure functions: the same seed gives the same run. All of it is SplitMix64 (Steele, Lea, Flood 2014,
//! <https://doi.org/10.1145/2714064.2660195>).

/// A number in [0, 1): the `draw`-th of event `n`, so that any thread can tell it.
pub(crate) fn chance(seed: u64, n: u64, draw: u64) -> f64 {
    // Four draws for each event at most.
    let position = n.wrapping_mul(4).wrapping_add(draw).wrapping_add(1);
    let seeded = seed.wrapping_mul(0xd134_2543_de82_ef95);
    unit(finish(seeded.wrapping_add(position.wrapping_mul(STEP))))
}

/// All bits of a state, stirred: what follows a state that differs in any way has nothing to do with it.
pub(crate) fn mix(state: u64) -> u64 {
    finish(state.wrapping_add(STEP))
}

/// A number in [0, 1) of 53 of these bits.
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
