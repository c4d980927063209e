//! One part of a result that is compared with float64.

use rayon::prelude::*;

use crossover_arithmetic::error;

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

/// Values that a thread takes.
const CHUNK: usize = 1 << 14;

/// [`error::largest`] on all threads.
pub(crate) fn largest(found: &[f32], expected: &[f64], least: f64) -> f64 {
    let chunks = (found.par_chunks(CHUNK)).zip(expected.par_chunks(CHUNK));
    chunks
        .map(|(found, expected)| error::largest(found, expected, least))
        .reduce(|| 0.0, error::worse)
}

pub(crate) fn rms(values: &[f64]) -> f64 {
    let squares = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>();
    let squares: Vec<f64> = values.par_chunks(CHUNK).map(squares).collect();
    (squares.iter().sum::<f64>() / values.len() as f64).sqrt()
}
