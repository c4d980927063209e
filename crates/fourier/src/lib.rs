//! Plans of Fourier transforms on the CPU, by rustfft. Their generic code is larger than that of all
//! operations together; here it is compiled once, and not again after each edit of an operation.

#![warn(missing_docs)]

use std::sync::Arc;

pub use rustfft::{Fft, FftDirection, num_complex::Complex};
use rustfft::{FftPlanner, FftPlannerScalar};

/// A transform of `n` values in the widest vectors that the CPU has.
pub fn plan(n: usize, direction: FftDirection) -> Arc<dyn Fft<f32>> {
    FftPlanner::new().plan_fft(n, direction)
}

/// A forward transform of `n` values for references. It has no vector code, which would double the
/// time to compile this crate.
pub fn plan_f64(n: usize) -> Arc<dyn Fft<f64>> {
    FftPlannerScalar::new().plan_fft_forward(n)
}
