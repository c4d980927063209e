//! One part of a result that is compared with float64.

use rayon::prelude::*;

use crate::workload::matmul::worse;

/// One part of a result that was compared.
pub(in crate::workload) struct Part {
    pub(in crate::workload) name: &'static str,
    pub(in crate::workload) error: f64,
    pub(in crate::workload) bound: f64,
}

impl Part {
    /// The error over its bound; infinite for a NaN.
    pub(in crate::workload) fn used(&self) -> f64 {
        let used = self.error / self.bound;
        if used.is_nan() { f64::INFINITY } else { used }
    }
}

/// An error relative to a scale. Zero relative to zero is zero.
pub(in crate::workload) fn relative(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

/// The largest difference, on all threads.
pub(in crate::workload) fn largest(found: &[f32], expected: impl Fn(usize) -> f64 + Sync) -> f64 {
    const CHUNK: usize = 1 << 14;
    (found.par_chunks(CHUNK))
        .enumerate()
        .map(|(at, found)| largest_of(found, |i| expected(at * CHUNK + i)))
        .reduce(|| 0.0, worse)
}

pub(in crate::workload) fn largest_of(found: &[f32], expected: impl Fn(usize) -> f64) -> f64 {
    let errors = found.iter().enumerate();
    let errors = errors.map(|(i, &v)| (f64::from(v) - expected(i)).abs());
    errors.fold(0.0, worse)
}

pub(in crate::workload) fn rms(values: &[f64]) -> f64 {
    let squares = values
        .par_chunks(1 << 14)
        .map(|v| v.iter().map(|x| x * x).sum::<f64>());
    (squares.collect::<Vec<_>>().iter().sum::<f64>() / values.len() as f64).sqrt()
}
