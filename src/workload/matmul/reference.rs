//! The references that a product is checked against: in float64, or for float64 in two of them.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::workload::number::{Number, Wide};
use crate::workload::product::Shape;
use crossover_arithmetic::error::worse;

/// Up to this many multiply-adds every element is compared.
const FULL_UP_TO: usize = 256 * 256 * 256;

/// The values that products of a shape are compared with.
pub(super) struct Reference<T: Number = f32> {
    shape: Shape,
    values: Values<T>,
}

enum Values<T: Number> {
    /// Every element of A B.
    Full { product: Vec<T::Wide>, rms: f64 },
    /// A (B x) for random vectors x.
    Freivalds([Probe<T>; 2]),
}

/// One vector of Freivalds' check.
struct Probe<T: Number> {
    /// Random signs, 1 or -1.
    x: Vec<T::Wide>,
    /// A (B x).
    product: Vec<T::Wide>,
    rms: f64,
}

impl<T: Number> Reference<T> {
    pub(super) fn new(shape: Shape, a: &[T], b: &[T]) -> Self {
        if shape.multiply_adds() <= FULL_UP_TO {
            Self::full(shape, a, b)
        } else {
            Self::freivalds(shape, a, b)
        }
    }

    pub(super) fn full(shape: Shape, a: &[T], b: &[T]) -> Self {
        let Shape { m, n, k, .. } = shape;
        let mut product = vec![T::Wide::from(T::zero()); shape.c_len()];
        product
            .par_chunks_mut(n)
            .zip(a.par_chunks(k))
            .enumerate()
            .for_each(|(i, (row, a))| {
                let b = &b[i / m * k * n..][..k * n];
                for (&a, b) in a.iter().zip(b.chunks(n)) {
                    T::add_products(row, a, b);
                }
            });
        let rms = rms::<T>(&product);
        let values = Values::Full { product, rms };
        Self { shape, values }
    }

    pub(super) fn freivalds(shape: Shape, a: &[T], b: &[T]) -> Self {
        let probes = [3, 4].map(|seed| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed << 32);
            let one = T::one();
            let x: Vec<T::Wide> = (0..shape.n)
                .map(|_| T::Wide::from(if rng.random() { one } else { T::zero() - one }))
                .collect();
            // One product after the other: the rows of each are shared by all threads.
            let product: Vec<T::Wide> = a
                .chunks(shape.m * shape.k)
                .zip(b.chunks(shape.k * shape.n))
                .flat_map(|(a, b)| times(a, &times(b, &x)))
                .collect();
            let rms = rms::<T>(&product);
            Probe { x, product, rms }
        });
        let values = Values::Freivalds(probes);
        Self { shape, values }
    }

    pub(super) fn method(&self) -> String {
        let wide = match size_of::<T>() {
            4 => "float64",
            _ => "two float64",
        };
        match self.values {
            Values::Full { .. } => {
                format!("largest error relative to the rms of the product in {wide}, every element")
            }
            Values::Freivalds(_) => format!(
                "largest error of C x relative to the rms of A (B x) in {wide}, for 2 vectors of random signs (Freivalds)"
            ),
        }
    }

    /// The largest error of consecutive rows from `first` on, NaN where an element is NaN.
    pub(super) fn error_of_rows(&self, first: usize, rows: &[T]) -> f64 {
        let (shape, n) = (self.shape, self.shape.n);
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

    fn error_of_row(&self, i: usize, row: &[T]) -> f64 {
        match &self.values {
            Values::Full { product, rms } => row
                .iter()
                .zip(&product[i * self.shape.n..])
                .map(|(&c, &reference)| T::Wide::from(c).minus(reference).abs() / rms)
                .fold(0.0, worse),
            Values::Freivalds(probes) => probes
                .iter()
                .map(|probe| T::dot(row, &probe.x).minus(probe.product[i]).abs() / probe.rms)
                .fold(0.0, worse),
        }
    }
}

fn rms<T: Number>(values: &[T::Wide]) -> f64 {
    let squares = values.iter().map(|v| v.value() * v.value());
    (squares.sum::<f64>() / values.len() as f64).sqrt()
}

/// Matrix times vector, row by row: no wider copy of the matrix.
fn times<T: Number>(matrix: &[T], x: &[T::Wide]) -> Vec<T::Wide> {
    matrix
        .par_chunks(x.len())
        .map(|row| T::dot(row, x))
        .collect()
}
