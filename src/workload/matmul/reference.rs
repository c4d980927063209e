//! The float64 references that a product is checked against.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::workload::matmul::shape::Shape;

/// Up to this many multiply-adds every element is compared.
const FULL_UP_TO: usize = 256 * 256 * 256;

/// What a product is compared with.
pub(super) enum Reference {
    /// Every element of A B.
    Full {
        shape: Shape,
        product: Vec<f64>,
        rms: f64,
    },
    /// A (B x) for random vectors x.
    Freivalds { shape: Shape, probes: [Probe; 2] },
}

/// One vector of Freivalds' check.
pub(super) struct Probe {
    /// Random signs, 1 or -1.
    x: Vec<f64>,
    /// A (B x).
    product: Vec<f64>,
    rms: f64,
}

impl Reference {
    pub(super) fn new(shape: Shape, a: &[f32], b: &[f32]) -> Self {
        if shape.multiply_adds() <= FULL_UP_TO {
            Self::full(shape, a, b)
        } else {
            Self::freivalds(shape, a, b)
        }
    }

    pub(super) fn full(shape: Shape, a: &[f32], b: &[f32]) -> Self {
        let Shape { m, n, k, .. } = shape;
        let mut product = vec![0.0; shape.c_len()];
        product
            .par_chunks_mut(n)
            .zip(a.par_chunks(k))
            .enumerate()
            .for_each(|(i, (row, a))| {
                let b = &b[i / m * k * n..][..k * n];
                for (&a, b) in a.iter().zip(b.chunks(n)) {
                    for (sum, &b) in row.iter_mut().zip(b) {
                        *sum += f64::from(a) * f64::from(b);
                    }
                }
            });
        let rms = rms(&product);
        Self::Full {
            shape,
            product,
            rms,
        }
    }

    pub(super) fn freivalds(shape: Shape, a: &[f32], b: &[f32]) -> Self {
        let probes = [3, 4].map(|seed| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed << 32);
            let x: Vec<f64> = (0..shape.n)
                .map(|_| if rng.random() { 1.0 } else { -1.0 })
                .collect();
            // One product after the other: the rows of each are shared by all threads.
            let product: Vec<f64> = a
                .chunks(shape.m * shape.k)
                .zip(b.chunks(shape.k * shape.n))
                .flat_map(|(a, b)| times(a, &times(b, &x)))
                .collect();
            let rms = rms(&product);
            Probe { x, product, rms }
        });
        Self::Freivalds { shape, probes }
    }

    pub(super) fn method(&self) -> &'static str {
        match self {
            Self::Full { .. } => {
                "largest error relative to the rms of the float64 product, every element"
            }
            Self::Freivalds { .. } => {
                "largest error of C x relative to the rms of A (B x) in float64, for 2 vectors of random signs (Freivalds)"
            }
        }
    }

    /// The largest error of consecutive rows from `first` on, NaN where an element is NaN.
    pub(super) fn error_of_rows(&self, first: usize, rows: &[f32]) -> f64 {
        let shape = self.shape();
        let n = shape.n;
        assert!(
            rows.len().is_multiple_of(n) && first + rows.len() / n <= shape.rows(),
            "{} values from row {first} on are not rows of a result of {shape:?}",
            rows.len()
        );
        rows.par_chunks(n)
            .enumerate()
            .map(|(i, row)| self.error_of_row(first + i, row))
            .reduce(|| 0.0, worse)
    }

    fn error_of_row(&self, i: usize, row: &[f32]) -> f64 {
        match self {
            Self::Full {
                shape,
                product,
                rms,
            } => row
                .iter()
                .zip(&product[i * shape.n..])
                .map(|(&c, &reference)| (f64::from(c) - reference).abs() / rms)
                .fold(0.0, worse),
            Self::Freivalds { probes, .. } => probes
                .iter()
                .map(|probe| (dot(row, &probe.x) - probe.product[i]).abs() / probe.rms)
                .fold(0.0, worse),
        }
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Full { shape, .. } | Self::Freivalds { shape, .. } => *shape,
        }
    }
}

/// The larger of two errors. `f64::max` would drop a NaN, and with it elements that were never
/// written.
pub(crate) fn worse(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else {
        x.max(y)
    }
}

fn rms(values: &[f64]) -> f64 {
    (values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64).sqrt()
}

/// Matrix times vector, row by row: no float64 copy of the matrix.
fn times(matrix: &[f32], x: &[f64]) -> Vec<f64> {
    matrix.par_chunks(x.len()).map(|row| dot(row, x)).collect()
}

/// A dot product in eight partial sums, which the compiler turns into vector code.
fn dot(row: &[f32], x: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (rows, xs) = (row.chunks_exact(8), x.chunks_exact(8));
    let rest: f64 = rows
        .remainder()
        .iter()
        .zip(xs.remainder())
        .map(|(&c, &x)| f64::from(c) * x)
        .sum();
    for (c, x) in rows.zip(xs) {
        for i in 0..8 {
            sums[i] += f64::from(c[i]) * x[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}
