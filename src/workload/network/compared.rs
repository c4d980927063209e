//! The comparison of a network's results with float64.

use rayon::prelude::*;

use crate::model::Format;
use crate::workload::matmul::UNIT_ROUNDOFF;
use crate::workload::product::properties;

use crossover_arithmetic::error;

/// One part of a result that was compared.
pub(crate) struct Compared {
    pub(crate) name: &'static str,
    pub(crate) error: f64,
    pub(crate) bound: f64,
}

impl Compared {
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

/// The error of an operand of a product, relative to it, plus that of the sums, relative to what they
/// would be if their terms were independent.
///
/// An operand is rounded to nearest in BF16, by up to 2^-8. Sums of k terms in f32 err by sqrt(k) u,
/// u = 2^-24, as in [`Matmul::verified`](crate::workload::matmul::Matmul::verified), taken twice here for
/// those whose terms have a common sign; tensor cores cut off up to 2 u of each block of 8 terms. `terms`
/// are those of the longest sums.
pub(crate) fn unit(format: Format, terms: usize) -> f64 {
    let terms = terms as f64;
    let sums = 2.0 * UNIT_ROUNDOFF * terms.sqrt();
    if format == Format::F32 {
        return sums;
    }
    properties(format).unit_roundoff + sums + 0.25 * UNIT_ROUNDOFF * terms
}
