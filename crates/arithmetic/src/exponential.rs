//! The exponentials of softmax, written so that the compiler can vectorise them.

use crate::wide;

/// e^x for x from -87 to 0, within 2 ulp: x = n ln 2 + r, 2^n by its bits and e^r by its series up to
/// r^7.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Adding it leaves the nearest whole number in the lowest bits: 1.5 * 2^23.
    const ROUND: f32 = 12_582_912.0;
    const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    let x = if x < -87.0 { -87.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * LN_2[0] - n * LN_2[1];
    let mut series = 1.0 / 5040.0;
    for coefficient in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        series = series * r + coefficient;
    }
    let power = (shifted.to_bits() << 23).wrapping_add(127 << 23);
    series * f32::from_bits(power)
}

/// Values that go through a step together.
const LANES: usize = 16;

/// Replaces each x by e^((x - largest) * scale), and returns the largest x and the sum of the results.
/// The number of values is a multiple of 16.
#[inline(always)]
pub fn exponentials(row: &mut [f32], scale: f32) -> (f32, f32) {
    let mut largest = [f32::NEG_INFINITY; LANES];
    for x in row.chunks_exact(LANES) {
        for i in 0..LANES {
            largest[i] = if x[i] > largest[i] { x[i] } else { largest[i] };
        }
    }
    let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
    let mut sums = [0.0f32; LANES];
    for x in row.chunks_exact_mut(LANES) {
        for i in 0..LANES {
            x[i] = exp((x[i] - largest) * scale);
            sums[i] += x[i];
        }
    }
    (largest, sums.iter().sum())
}

wide! {
    /// Scales rows of `width` values and replaces them by their softmax.
    pub fn softmax_of_rows(rows: &mut [f32], width: usize, scale: f32) {
        for row in rows.chunks_exact_mut(width) {
            let (_, sum) = exponentials(row, scale);
            let factor = sum.recip();
            for value in row.iter_mut() {
                *value *= factor;
            }
        }
    }
}
