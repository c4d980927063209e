//! Softmax, cross-entropy and their gradient on the CPU.

use rayon::prelude::*;

use crate::workload::mlp_training::model::CLASSES;
use crate::workload::network::operations::rows_per_task;
use crate::workload::network::wide::wide;

/// e^x for x from -87 to 0, within 2 ulp: x = n ln 2 + r, 2^n by its bits and e^r by its series
/// up to r^7, in operations that vectors have.
#[inline(always)]
fn exp(x: f32) -> f32 {
    /// Added, it leaves the nearest whole number in the lowest bits: 1.5 * 2^23.
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

wide! {
    /// The logits of some rows in, their gradient out. Gives the sum of the rows' losses.
    fn rows(logits: &[f32], labels: &[u32], share: f32, gradient: &mut [f32]) -> f64 {
        let mut losses = 0.0;
        let rows = logits.chunks_exact(CLASSES).zip(gradient.chunks_exact_mut(CLASSES));
        for ((z, g), &label) in rows.zip(labels) {
            let mut largest = [f32::NEG_INFINITY; LANES];
            for z in z.chunks_exact(LANES) {
                for i in 0..LANES {
                    largest[i] = if z[i] > largest[i] { z[i] } else { largest[i] };
                }
            }
            let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
            let mut sums = [0.0f32; LANES];
            for (z, g) in z.chunks_exact(LANES).zip(g.chunks_exact_mut(LANES)) {
                for i in 0..LANES {
                    g[i] = exp(z[i] - largest);
                    sums[i] += g[i];
                }
            }
            let sum: f32 = sums.iter().sum();
            let factor = share / sum;
            for g in g.iter_mut() {
                *g *= factor;
            }
            g[label as usize] -= share;
            losses += f64::from(largest + sum.ln() - z[label as usize]);
        }
        losses
    }
}

/// The mean loss of the rows, and its gradient with respect to the logits.
pub(super) fn cross_entropy(logits: &[f32], labels: &[u32], gradient: &mut [f32]) -> f32 {
    let share = 1.0 / labels.len() as f32;
    let task = rows_per_task(CLASSES);
    let sums: Vec<f64> = (logits.par_chunks(task * CLASSES))
        .zip(gradient.par_chunks_mut(task * CLASSES))
        .zip(labels.par_chunks(task))
        .map(|((logits, gradient), labels)| rows(logits, labels, share, gradient))
        .collect();
    (sums.iter().sum::<f64>() * f64::from(share)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_right_within_two_ulp() {
        for i in 0..=870_000 {
            let x = -1e-4 * i as f32;
            let expected = f64::from(x).exp();
            let error = (f64::from(exp(x)) / expected - 1.0).abs();
            assert!(error <= 4.0 * 2f64.powi(-24), "{x}: {error:e}");
        }
    }
}
