//! The sine itself, written once for every vector width.
//!
//! The first pass takes any float32. With k = round(x / π) it computes
//!
//! ```text
//! sin x = (-1)^k sin r,   r = ((x - k π₀) - k π₁) - k π₂
//! ```
//!
//! where π₀ + π₁ + π₂ is π in three float32 (Cody and Waite, *Software Manual for the
//! Elementary Functions*, 1980), each step a fused multiply-add. The first is exact, since
//! its result is a multiple of 2⁻²² below 2; the other two round relative to the result, so
//! that r is good to an ulp right beside the multiples of π. Above [`LARGE`] in magnitude
//! [`sine_large`] reduces in integers instead.
//!
//! The later passes see results of a sine only. They need no reduction, and from the third
//! on, with |x| ≤ sin 1, one coefficient less.
//!
//! `kernels/nested_sine.cu` uses the same constants in the same order of operations, so a test of
//! the paths here is a test of that kernel's arithmetic.

use pulp::{Scalar, Simd, WithSimd};

use crate::isa::{Isa, fence, stream};

/// Largest magnitude that the float32 reduction takes. Here |k| < 2¹⁵, for which every
/// float32 was compared with float64.
pub const LARGE: f32 = 65536.0;

/// π in three float32, of which this is the first.
pub const PI_0: f32 = std::f32::consts::PI;
/// The second.
pub const PI_1: f32 = -8.742_278e-8;
/// The third.
pub const PI_2: f32 = -3.430_249e-15;
/// 1.5 · 2²³: adding it rounds to an integer and leaves that integer's parity in bit 0.
const ROUND: f32 = 12_582_912.0;

// Minimax in relative error, sin x = x + x³ P(x²): Lawson's iteratively reweighted least
// squares at 600 Chebyshev nodes, the coefficients rounded to float32 one after the other
// from the lowest, those left fitted again each time; then a random search over the last
// bits for the smallest error as evaluated in float32, with no result above 1. The two
// polynomials are good to 7e-9, a tenth of an ulp; evaluation makes that 1.7 ulp beside ±π/2,
// where the terms are largest, and 0.9 on [-1, 1].
/// For |x| ≤ π/2.
pub const HALF_PI: [f32; 4] = [-0.16666657, 0.008333054, -0.00019809735, 2.6061723e-6];
/// For |x| ≤ sin 1.
pub const SIN_1: [f32; 3] = [-0.16666648, 0.008331754, -0.00019463318];

/// FLOP per element of the four passes: 27 instructions, 18 of them fused multiply-adds.
pub const FLOP: u32 = 9 + 2 * polynomial(HALF_PI.len()) + 2 * polynomial(SIN_1.len());

/// FLOP of a polynomial with this number of coefficients.
const fn polynomial(terms: usize) -> u32 {
    2 * terms as u32 + 2
}

/// Vectors handled together, step by step: enough independent work to hide the latency of
/// an operation. On a Zen 3 with AVX2, Gelem/s of one thread for 4, 5, 6 and 8: 1.41, 1.46,
/// 1.52 and 1.66, where its multiply-add units allow 2.0.
const UNROLL: usize = 8;
/// Longest block, in elements, of any instruction set.
const LONGEST_BLOCK: usize = 16 * UNROLL;

// Loops instead of closures: a closure passed to the standard library is compiled without the
// instruction set of the function into which all this is inlined.

/// x + x³ P(x²) by Horner's rule, in place.
#[inline(always)]
fn odd_polynomial<S: Simd, const N: usize, const TERMS: usize>(
    simd: S,
    x: &mut [S::f32s; N],
    coefficients: [f32; TERMS],
) {
    let mut square = *x;
    for s in &mut square {
        *s = simd.mul_f32s(*s, *s);
    }
    let mut p = [simd.splat_f32s(coefficients[TERMS - 1]); N];
    for &c in coefficients[..TERMS - 1].iter().rev() {
        for (p, &s) in p.iter_mut().zip(&square) {
            *p = simd.mul_add_f32s(*p, s, simd.splat_f32s(c));
        }
    }
    for ((x, s), p) in x.iter_mut().zip(square).zip(p) {
        *x = simd.mul_add_f32s(simd.mul_f32s(*x, s), p, *x);
    }
}

/// The sine of |x| ≤ [`LARGE`], and of NaN, in place.
#[inline(always)]
fn sine_moderate<S: Simd, const N: usize>(simd: S, x: &mut [S::f32s; N]) {
    let (per_pi, round) = (std::f32::consts::FRAC_1_PI, simd.splat_f32s(ROUND));
    let mut shifted = *x;
    for s in &mut shifted {
        *s = simd.mul_add_f32s(*s, simd.splat_f32s(per_pi), round);
    }
    let mut k = shifted;
    for k in &mut k {
        *k = simd.sub_f32s(*k, round);
    }
    for part in [PI_0, PI_1, PI_2] {
        for (x, &k) in x.iter_mut().zip(&k) {
            *x = simd.mul_add_f32s(k, simd.splat_f32s(-part), *x);
        }
    }
    // The lowest bit of the rounded number becomes the sign.
    for (x, &s) in x.iter_mut().zip(&shifted) {
        let bits = simd.transmute_u32s_f32s(s);
        let sign = simd.wrapping_dyn_shl_u32s(bits, simd.splat_u32s(31));
        *x = simd.xor_f32s(*x, simd.transmute_f32s_u32s(sign));
    }
    odd_polynomial(simd, x, HALF_PI);
}

/// The binary digits of 1/π, after 32 zeros.
const INVERSE_PI: [u32; 8] = [
    0x0000_0000,
    0x517c_c1b7,
    0x2722_0a94,
    0xfe13_abe8,
    0xfa9a_6ee0,
    0x6db1_4acc,
    0x9e21_c820,
    0xff28_b1d5,
];

/// π / 2⁶⁴.
const PI_BY_2_64: f64 = std::f64::consts::PI / (u64::MAX as f64);

/// The sine of any |x| > 1, infinities and NaN: the slow path.
///
/// Payne and Hanek, *Radian Reduction for Trigonometric Functions* (1983): with x = m 2ᵉ
/// and m an integer, the digits of 2ᵉ/π from 2¹ up only add even numbers to x/π. Of those
/// below, 96 are kept, so that x/π modulo 2 comes out to within 2⁻⁶² in integers.
pub fn sine_large(x: f32) -> f32 {
    if !x.is_finite() {
        return f32::NAN;
    }
    let bits = x.to_bits();
    let mantissa = u64::from(bits & 0x007f_ffff | 0x0080_0000);
    // x = mantissa · 2^(exponent - 150). Digit 31 + i of the table weighs 2^-i, so this is
    // the digit that the exponent moves to 2^0.
    let offset = 31 + (bits >> 23 & 0xff) - 150;
    let (word, shift) = ((offset / 32) as usize, offset % 32);
    let digits = |i: usize| {
        let pair = u64::from(INVERSE_PI[word + i]) << 32 | u64::from(INVERSE_PI[word + i + 1]);
        pair << shift >> 32
    };
    let high = digits(0) << 32 | digits(1);
    // In units of 2^-63, modulo 2.
    let turns = mantissa
        .wrapping_mul(high)
        .wrapping_add((mantissa * digits(2)) >> 32);
    // Without the integer part, the digits below it read as a signed fraction.
    let odd = turns.wrapping_add(1 << 62) >> 63;
    let fraction = (turns << 1) as i64;
    let r = (fraction as f64 * PI_BY_2_64) as f32;
    let r = f32::from_bits(r.to_bits() ^ (odd as u32) << 31 ^ bits & 0x8000_0000);
    let mut sine = [r];
    odd_polynomial(Scalar::new(), &mut sine, HALF_PI);
    sine[0]
}

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Through the caches: a line is read from memory before it is written.
    Cached,
    /// Past the caches, where the instruction set can: less traffic where the results exceed them.
    Streamed,
}

/// `PASSES` sines per element, of any float32; the last block is padded. The slices must be of
/// equal length.
struct Sines<'a, const PASSES: usize> {
    x: &'a [f32],
    y: &'a mut [f32],
    stores: Stores,
}

impl<const PASSES: usize> WithSimd for Sines<'_, PASSES> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            mut x,
            mut y,
            stores,
        } = self;
        assert_eq!(x.len(), y.len());
        if stores == Stores::Streamed {
            // Streamed stores need addresses that are multiples of a vector's size.
            let ahead = y.as_ptr().align_offset(size_of::<S::f32s>()).min(y.len());
            let (first, rest) = y.split_at_mut(ahead);
            padded::<S, PASSES>(simd, &x[..ahead], first);
            (x, y) = (&x[ahead..], rest);
        }
        let whole = x.len() - x.len() % (UNROLL * S::F32_LANES);
        let (y, rest) = y.split_at_mut(whole);
        let vectors = S::as_simd_f32s(&x[..whole]).0.as_chunks::<UNROLL>().0;
        let targets = S::as_mut_simd_f32s(y).0.as_chunks_mut::<UNROLL>().0;
        match stores {
            Stores::Cached => {
                for (x, y) in vectors.iter().zip(targets) {
                    *y = block::<S, PASSES>(simd, x);
                }
            }
            Stores::Streamed => {
                for (x, y) in vectors.iter().zip(targets) {
                    for (to, value) in y.iter_mut().zip(block::<S, PASSES>(simd, x)) {
                        // SAFETY: the targets begin at a multiple of a vector's size.
                        unsafe { stream(to, value) };
                    }
                }
                fence();
            }
        }
        padded::<S, PASSES>(simd, &x[whole..], rest);
    }
}

/// Less than a block.
#[inline(always)]
fn padded<S: Simd, const PASSES: usize>(simd: S, x: &[f32], y: &mut [f32]) {
    if !x.is_empty() {
        let mut padded = [0.0; LONGEST_BLOCK];
        padded[..x.len()].copy_from_slice(x);
        let (blocks, _) = S::as_simd_f32s(&padded).0.as_chunks::<UNROLL>();
        let result = block::<S, PASSES>(simd, &blocks[0]);
        y.copy_from_slice(&pulp::bytemuck::cast_slice(&result)[..x.len()]);
    }
}

/// A whole block.
#[inline(always)]
fn block<S: Simd, const PASSES: usize>(simd: S, x: &[S::f32s; UNROLL]) -> [S::f32s; UNROLL] {
    let above = |x| simd.greater_than_f32s(simd.abs_f32s(x), simd.splat_f32s(LARGE));
    let mut value = *x;
    let mut large = above(x[0]);
    for &x in &x[1..] {
        large = simd.or_m32s(large, above(x));
    }
    sine_moderate(simd, &mut value);
    if simd.first_true_m32s(large) < S::F32_LANES {
        let mut first = value;
        let (x, first_values) = (&x[..], &mut first[..]);
        replace_large(
            pulp::bytemuck::cast_slice(x),
            pulp::bytemuck::cast_slice_mut(first_values),
        );
        value = first;
    }
    const { assert!(PASSES == 1 || PASSES == 4) };
    if PASSES == 4 {
        odd_polynomial(simd, &mut value, HALF_PI);
        odd_polynomial(simd, &mut value, SIN_1);
        odd_polynomial(simd, &mut value, SIN_1);
    }
    value
}

// Out of line: a value passed through memory is not kept in registers.
#[cold]
#[inline(never)]
fn replace_large(x: &[f32], first: &mut [f32]) {
    for (&x, first) in x.iter().zip(first) {
        if x.abs() > LARGE {
            *first = sine_large(x);
        }
    }
}

impl Isa {
    /// y = sin x, each within 2 ulp, on the calling thread.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn sine(self, x: &[f32], y: &mut [f32]) {
        let stores = Stores::Cached;
        self.run(Sines::<1> { x, y, stores });
    }

    /// y = sin(sin(sin(sin x))) on the calling thread, stored as `stores` says.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn nested_sine(self, x: &[f32], y: &mut [f32], stores: Stores) {
        self.run(Sines::<4> { x, y, stores });
    }
}
