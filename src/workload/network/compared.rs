//! One part of a result that is compared with float64.

use rayon::prelude::*;

use crate::workload::matmul::worse;

/// One part of a result that was compared.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) error: f64,
    pub(crate) bound: f64,
}

impl Part {
    pub(crate) fn new(name: &'static str, error: f64, bound: f64) -> Self {
        Self { name, error, bound }
    }

    /// The error over its bound; infinite for a NaN.
    pub(crate) fn used(&self) -> f64 {
        let used = self.error / self.bound;
        if used.is_nan() { f64::INFINITY } else { used }
    }
}

/// An error relative to a scale. Zero relative to zero is zero.
pub(crate) fn relative(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

/// The largest difference, on all threads.
pub(crate) fn largest(found: &[f32], expected: impl Fn(usize) -> f64 + Sync) -> f64 {
    const CHUNK: usize = 1 << 14;
    (found.par_chunks(CHUNK))
        .enumerate()
        .map(|(at, found)| largest_of(found, |i| expected(at * CHUNK + i)))
        .reduce(|| 0.0, worse)
}

pub(crate) fn largest_of(found: &[f32], expected: impl Fn(usize) -> f64) -> f64 {
    let errors = found.iter().enumerate();
    let errors = errors.map(|(i, &v)| (f64::from(v) - expected(i)).abs());
    errors.fold(0.0, worse)
}

pub(crate) fn rms(values: &[f64]) -> f64 {
    let squares = values
        .par_chunks(1 << 14)
        .map(|v| v.iter().map(|x| x * x).sum::<f64>());
    (squares.collect::<Vec<_>>().iter().sum::<f64>() / values.len() as f64).sqrt()
}
