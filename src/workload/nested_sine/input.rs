//! Inputs: random ones, and those that a sine is likely to get wrong.

use std::f64::consts::FRAC_PI_2;

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::workload::number::Number;
use crate::workload::prepare::seed;

const SEED: u64 = 0x6e65_7374_6564;
/// Elements of one random stream. Part of what the seed means.
const STREAM: usize = 1 << 16;

/// Inputs uniform in [-3, 3).
pub(super) fn uniform<T: Number>(n: usize) -> Vec<T> {
    let mut x = vec![T::zero(); n];
    let first = seed(SEED);
    x.par_chunks_mut(STREAM).enumerate().for_each(|(i, chunk)| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(first + i as u64);
        T::fill_uniform(chunk, 3.0, &mut random);
    });
    x
}

/// The inputs that [`crate::workload::nested_sine::problem::NestedSine::adversarial`] describes,
/// 4,096 of them, one of each kind first.
pub(super) fn adversarial() -> Vec<f32> {
    let neighbours = |x: f32| [x, x.next_up(), x.next_down()];
    let mut all = vec![
        f32::NAN,
        f32::INFINITY,
        f32::MAX,
        f32::from_bits(1),
        std::f32::consts::PI,
        // Of all float32, the nearest to a multiple of π/2.
        16_367_173.0 * 2f32.powi(72),
        0.0,
        f32::MIN_POSITIVE.next_down(),
        f32::NAN.copysign(-1.0),
    ];
    all.extend(neighbours(crossover_arithmetic::sine::LARGE));
    for exponent in -149..=127 {
        all.extend(neighbours(2f64.powi(exponent) as f32));
        all.push((1.618_034 * 2f64.powi(exponent)) as f32);
    }
    let magnitudes = 4096 / 2;
    // Multiples of π/2, first one by one, then ever further apart up to 2^60.
    let mut multiple = 1.0f64;
    while all.len() < magnitudes {
        all.extend(neighbours((multiple * FRAC_PI_2) as f32));
        multiple = (multiple * 1.15).max(multiple + 1.0).floor();
    }
    all.truncate(magnitudes);
    all.iter().flat_map(|&x| [x, -x]).collect()
}
