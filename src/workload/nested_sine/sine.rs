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
//! `kernels/nested_sine.cu` uses the same constants in the same order of operations, so a
//! test of the fused multiply-add paths here is a test of that kernel's arithmetic.

use crate::workload::nested_sine::vector::{Scalar, Vector};

/// Largest magnitude that the float32 reduction takes. Here |k| < 2¹⁵, for which every
/// float32 was compared with float64.
pub(super) const LARGE: f32 = 65536.0;

pub(super) const PI_0: f32 = std::f32::consts::PI;
pub(super) const PI_1: f32 = -8.742_278e-8;
pub(super) const PI_2: f32 = -3.430_249e-15;
/// 1.5 · 2²³: adding it rounds to an integer and leaves that integer's parity in bit 0.
const ROUND: f32 = 12_582_912.0;

// Minimax in relative error, sin x = x + x³ P(x²): Lawson's iteratively reweighted least
// squares at 600 Chebyshev nodes, the coefficients rounded to float32 one after the other
// from the lowest, those left fitted again each time; then a random search over the last
// bits for the smallest error as evaluated in float32, with no result above 1. The two
// polynomials are good to 7e-9, a tenth of an ulp; evaluation makes that 1.7 ulp beside ±π/2,
// where the terms are largest, and 0.9 on [-1, 1].
/// For |x| ≤ π/2.
pub(super) const HALF_PI: [f32; 4] = [-0.16666657, 0.008333054, -0.00019809735, 2.6061723e-6];
/// For |x| ≤ sin 1.
pub(super) const SIN_1: [f32; 3] = [-0.16666648, 0.008331754, -0.00019463318];

/// Vectors handled together, step by step: enough independent work to hide the latency of
/// an operation. On a Zen 3 with AVX2, Gelem/s of one thread for 4, 5, 6 and 8: 1.41, 1.46,
/// 1.52 and 1.66, where its multiply-add units allow 2.0.
const UNROLL: usize = 8;
/// Longest block, in elements, of any instruction set.
const LONGEST_BLOCK: usize = 16 * UNROLL;

// Loops in place of closures: a closure handed to the standard library is compiled without
// the instruction set of the function that all this is inlined into.

/// x + x³ P(x²) by Horner's rule, in place.
#[inline(always)]
fn odd_polynomial<V: Vector, const N: usize, const TERMS: usize>(
    x: &mut [V; N],
    coefficients: [f32; TERMS],
) {
    let mut square = *x;
    for s in &mut square {
        *s = s.mul(*s);
    }
    let mut p = [V::splat(coefficients[TERMS - 1]); N];
    for &c in coefficients[..TERMS - 1].iter().rev() {
        for (p, &s) in p.iter_mut().zip(&square) {
            *p = p.mul_add(s, V::splat(c));
        }
    }
    for ((x, s), p) in x.iter_mut().zip(square).zip(p) {
        *x = x.mul(s).mul_add(p, *x);
    }
}

/// The sine of |x| ≤ [`LARGE`], and of NaN, in place.
#[inline(always)]
fn sine_moderate<V: Vector, const N: usize>(x: &mut [V; N]) {
    let mut shifted = *x;
    for s in &mut shifted {
        *s = s.fused(V::splat(std::f32::consts::FRAC_1_PI), V::splat(ROUND));
    }
    let mut k = shifted;
    for k in &mut k {
        *k = k.sub(V::splat(ROUND));
    }
    for part in [PI_0, PI_1, PI_2] {
        for (x, &k) in x.iter_mut().zip(&k) {
            *x = k.fused(V::splat(-part), *x);
        }
    }
    for (x, &s) in x.iter_mut().zip(&shifted) {
        *x = x.flip_if_odd(s);
    }
    odd_polynomial(x, HALF_PI);
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
pub(super) fn sine_large(x: f32) -> f32 {
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
    // Without the whole number, the digits below it read as a signed fraction.
    let odd = turns.wrapping_add(1 << 62) >> 63;
    let fraction = (turns << 1) as i64;
    let r = (fraction as f64 * PI_BY_2_64) as f32;
    let r = f32::from_bits(r.to_bits() ^ (odd as u32) << 31 ^ bits & 0x8000_0000);
    let mut sine = [Scalar(r)];
    odd_polynomial(&mut sine, HALF_PI);
    sine[0].0
}

/// `PASSES` sines per element, of any float32; the last block is padded. The slices must be of
/// equal length.
#[inline(always)]
pub(super) fn sines<V: Vector, const PASSES: usize>(x: &[f32], y: &mut [f32], stores: Stores) {
    assert_eq!(x.len(), y.len());
    let (mut x, mut y) = (x, y);
    if stores == Stores::Streamed {
        // Streamed stores need addresses that are multiples of a vector's size.
        let ahead = y.as_ptr().align_offset(size_of::<f32>() * V::LANES);
        let ahead = ahead.min(y.len());
        let (first, rest) = y.split_at_mut(ahead);
        padded::<V, PASSES>(&x[..ahead], first);
        (x, y) = (&x[ahead..], rest);
    }
    let length = UNROLL * V::LANES;
    let mut sources = x.chunks_exact(length);
    let mut targets = y.chunks_exact_mut(length);
    match stores {
        Stores::Cached => {
            for (x, y) in (&mut sources).zip(&mut targets) {
                block::<V, PASSES, false>(x, y);
            }
        }
        Stores::Streamed => {
            for (x, y) in (&mut sources).zip(&mut targets) {
                block::<V, PASSES, true>(x, y);
            }
            V::fence();
        }
    }
    padded::<V, PASSES>(sources.remainder(), targets.into_remainder());
}

/// [`sines`] of less than a block.
#[inline(always)]
fn padded<V: Vector, const PASSES: usize>(x: &[f32], y: &mut [f32]) {
    if !x.is_empty() {
        let length = UNROLL * V::LANES;
        let mut padded = [0.0; LONGEST_BLOCK];
        padded[..x.len()].copy_from_slice(x);
        let mut result = [0.0; LONGEST_BLOCK];
        block::<V, PASSES, false>(&padded[..length], &mut result[..length]);
        y.copy_from_slice(&result[..x.len()]);
    }
}

/// How results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// Through the caches: a line is read from memory before it is written.
    Cached,
    /// Past the caches, where the instruction set can: less traffic where the results exceed them.
    Streamed,
}

/// A whole block. With `STREAMS`, `y` must lie at a multiple of a vector's size.
#[inline(always)]
fn block<V: Vector, const PASSES: usize, const STREAMS: bool>(x: &[f32], y: &mut [f32]) {
    assert!(x.len() == UNROLL * V::LANES && y.len() == x.len());
    let mut value = [V::splat(0.0); UNROLL];
    let mut large = false;
    for (i, value) in value.iter_mut().enumerate() {
        // SAFETY: vector `i` of UNROLL lies within the slice, whose length was just checked.
        *value = unsafe { V::load(x.as_ptr().add(i * V::LANES)) };
        large |= value.any_above(LARGE);
    }
    sine_moderate(&mut value);
    if large {
        let mut first = [0.0; LONGEST_BLOCK];
        for (i, value) in value.iter().enumerate() {
            // SAFETY: `first` holds the longest block.
            unsafe { value.store(first.as_mut_ptr().add(i * V::LANES)) };
        }
        replace_large(x, &mut first);
        for (i, value) in value.iter_mut().enumerate() {
            // SAFETY: as above.
            *value = unsafe { V::load(first.as_ptr().add(i * V::LANES)) };
        }
    }
    const { assert!(PASSES == 1 || PASSES == 4) };
    if PASSES == 4 {
        odd_polynomial(&mut value, HALF_PI);
        odd_polynomial(&mut value, SIN_1);
        odd_polynomial(&mut value, SIN_1);
    }
    for (i, value) in value.into_iter().enumerate() {
        // SAFETY: as for the loads; `sines` streams from a multiple of the vector's size on.
        unsafe {
            let at = y.as_mut_ptr().add(i * V::LANES);
            match STREAMS {
                true => value.stream(at),
                false => value.store(at),
            }
        }
    }
}

#[cold]
#[inline(never)]
fn replace_large(x: &[f32], first: &mut [f32]) {
    for (&x, first) in x.iter().zip(first) {
        if x.abs() > LARGE {
            *first = sine_large(x);
        }
    }
}
