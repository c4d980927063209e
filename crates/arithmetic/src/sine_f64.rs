//! The sine in float64, in loops that the compiler vectorises.
//!
//! The method is that of [`sine`](crate::sine): the first pass subtracts k π in three
//! fused multiply-adds and evaluates x + x³ P(x²) on [-π/2, π/2], the later ones need no reduction, and
//! from the third on two coefficients less. Above [`LARGE`] the first pass is the C library's.
//! `kernels/nested_sine_f64.cu` uses the same constants in the same order of operations.

use std::f64::consts::{FRAC_1_PI, PI};

use crate::sine::polynomial;
use crate::wide;

/// Largest magnitude that the reduction here takes.
pub const LARGE: f64 = 65_536.0;
/// π in three float64.
pub const PARTS_OF_PI: [f64; 3] = [
    PI,
    1.224_646_799_147_353_2e-16,
    -2.994_769_809_718_339_7e-33,
];
/// 1.5 · 2⁵²: adding it rounds to an integer and leaves that integer's parity in bit 0.
const ROUND: f64 = 6_755_399_441_055_744.0;

// Minimax in relative error, by Lawson's iteratively reweighted least squares at 120 Chebyshev nodes in 200
// bits, the coefficients rounded one after the other from the lowest, those left fitted again each time.
/// For |x| ≤ π/2, good to 2⁻⁶¹.
pub const HALF_PI: [f64; 8] = [
    -0.16666666666666666,
    0.008333333333333207,
    -0.00019841269841212498,
    2.755731921157805e-6,
    -2.5052106905781365e-8,
    1.6058941100881238e-10,
    -7.643022721754522e-13,
    2.721462832299599e-15,
];
/// For |x| ≤ sin 1, good to 2⁻⁵⁶, a tenth of an ulp.
pub const SIN_1: [f64; 6] = [
    -0.16666666666666585,
    0.008333333333311098,
    -0.00019841269821053382,
    2.7557310767237687e-6,
    -2.5050318056930982e-8,
    1.5872313688151102e-10,
];

/// FLOP per element of the four passes: 41 instructions, 32 of them fused multiply-adds.
pub const FLOP: u32 = 9 + 2 * polynomial(HALF_PI.len()) + 2 * polynomial(SIN_1.len());

#[inline(always)]
fn odd_polynomial<const TERMS: usize>(x: f64, coefficients: [f64; TERMS]) -> f64 {
    let square = x * x;
    let mut p = coefficients[TERMS - 1];
    for &c in coefficients[..TERMS - 1].iter().rev() {
        p = p.mul_add(square, c);
    }
    (x * square).mul_add(p, x)
}

/// The sine of |x| ≤ [`LARGE`], and of NaN.
#[inline(always)]
fn moderate(x: f64) -> f64 {
    let shifted = x.mul_add(FRAC_1_PI, ROUND);
    let k = shifted - ROUND;
    let mut r = x;
    for part in PARTS_OF_PI {
        r = k.mul_add(-part, r);
    }
    let r = f64::from_bits(r.to_bits() ^ shifted.to_bits() << 63);
    odd_polynomial(r, HALF_PI)
}

/// The passes after the first.
#[inline(always)]
fn rest(first: f64) -> f64 {
    odd_polynomial(odd_polynomial(odd_polynomial(first, HALF_PI), SIN_1), SIN_1)
}

wide! {
    /// Four sines per element, each within 2 ulp, on the calling thread.
    pub fn nested_sine(x: &[f64], y: &mut [f64]) {
        const BLOCK: usize = 64;
        assert_eq!(x.len(), y.len());
        for (x, y) in x.chunks(BLOCK).zip(y.chunks_mut(BLOCK)) {
            let mut large = false;
            for (&x, y) in x.iter().zip(y.iter_mut()) {
                large |= x.abs() > LARGE;
                *y = rest(moderate(x));
            }
            if large {
                for (&x, y) in x.iter().zip(y).filter(|(x, _)| x.abs() > LARGE) {
                    *y = rest(x.sin());
                }
            }
        }
    }
}
