//! The float64 references that a product is checked against.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::Shape;

/// Up to so many multiply-adds every element is compared.
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

    fn full(shape: Shape, a: &[f32], b: &[f32]) -> Self {
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

    fn freivalds(shape: Shape, a: &[f32], b: &[f32]) -> Self {
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

/// The larger of two errors. `f64::max` would drop a NaN, and with it the elements that
/// nobody wrote.
pub(super) fn worse(x: f64, y: f64) -> f64 {
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

/// In eight partial sums, which the compiler turns into vector code.
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

#[cfg(test)]
mod tests {
    use super::super::blocks::Library;
    use super::super::{Matmul, bound, cpu};
    use super::*;

    type Make = fn(Shape, &[f32], &[f32]) -> Reference;
    const BOTH: [(Make, &str); 2] = [
        (Reference::full, "full"),
        (Reference::freivalds, "freivalds"),
    ];

    fn product(n: usize, a: &[f32], b: &[f32]) -> Vec<f32> {
        let mut c = vec![f32::NAN; n * n];
        cpu::Method::OneThread(Library::Gemm).multiply(n, n, a, b, &mut c);
        c
    }

    /// A few orders below and above the switch, odd ones included.
    fn each(check: impl Fn(&Matmul, &Reference, &[f32], &str)) {
        for n in [2, 7, 64, 127, 257, 512] {
            let problem = Matmul::new(n);
            let c = product(n as usize, problem.a(), problem.b());
            for (make, name) in BOTH {
                let reference = make(problem.shape(), problem.a(), problem.b());
                check(&problem, &reference, &c, &format!("{name} at {n}"));
            }
        }
    }

    #[test]
    fn a_right_product_passes_with_room() {
        each(|problem, reference, c, what| {
            let error = reference.error_of_rows(0, c);
            assert!(error <= bound(problem.order()) / 2.0, "{what}: {error}");
        });
    }

    #[test]
    fn an_element_that_nobody_wrote_is_rejected() {
        each(|problem, reference, c, what| {
            for i in [0, c.len() / 2, c.len() - 1] {
                let mut c = c.to_vec();
                c[i] = f32::NAN;
                assert!(reference.error_of_rows(0, &c).is_nan(), "{what}");
                assert!(!problem.verified(reference.error_of_rows(0, &c)).passed());
            }
        });
    }

    #[test]
    fn one_wrong_element_is_rejected() {
        each(|problem, reference, c, what| {
            for i in [0, c.len() / 2, c.len() - 1] {
                let mut c = c.to_vec();
                c[i] += 0.01 * (problem.order() as f32).sqrt();
                let error = reference.error_of_rows(0, &c);
                assert!(error > bound(problem.order()), "{what}: {error}");
            }
        });
    }

    #[test]
    fn a_transposed_operand_and_swapped_operands_are_rejected() {
        each(|problem, reference, _, what| {
            let (n, a, b) = (problem.order(), problem.a(), problem.b());
            let transposed =
                |m: &[f32]| -> Vec<f32> { (0..n * n).map(|i| m[i % n * n + i / n]).collect() };
            for wrong in [
                product(n, &transposed(a), b),
                product(n, a, &transposed(b)),
                product(n, b, a),
            ] {
                let error = reference.error_of_rows(0, &wrong);
                assert!(error > bound(n), "{what}: {error}");
            }
        });
    }

    /// TF32 keeps 10 of the 23 bits of the fraction.
    fn to_tf32(value: f32) -> f32 {
        f32::from_bits((value.to_bits() + 0x1000) & !0x1fff)
    }

    #[test]
    fn operands_rounded_to_tf32_are_rejected_at_every_order() {
        each(|problem, reference, _, what| {
            let round = |m: &[f32]| -> Vec<f32> { m.iter().map(|&v| to_tf32(v)).collect() };
            let n = problem.order();
            let c = product(n, &round(problem.a()), &round(problem.b()));
            let error = reference.error_of_rows(0, &c);
            assert!(error > bound(n), "{what}: {error}");
            // The error of TF32 does not shrink with the order, and even at the largest it
            // lies above the bound.
            if n >= 64 {
                let largest = bound(super::super::LARGEST as usize);
                assert!(error > 3.0 * largest, "{what}: {error} against {largest}");
            }
        });
    }

    #[test]
    fn rows_in_blocks_give_the_error_of_the_whole() {
        each(|problem, reference, c, what| {
            let n = problem.order();
            let blocks = c
                .chunks(3 * n)
                .enumerate()
                .map(|(i, rows)| reference.error_of_rows(3 * i, rows))
                .fold(0.0, worse);
            assert_eq!(blocks, reference.error_of_rows(0, c), "{what}");
        });
    }

    #[test]
    fn rectangular_products_and_batches() {
        let shapes = [(1, 1, 9, 40), (1, 3, 17, 5), (4, 2, 6, 3), (3, 8, 5, 64)];
        for (batch, m, n, k) in shapes {
            let problem = Matmul::of(Shape { batch, m, n, k });
            let mut c = vec![0.0f32; batch * m * n];
            for (i, c) in c.iter_mut().enumerate() {
                let (product, row, column) = (i / (m * n), i / n % m, i % n);
                let sum: f64 = (0..k)
                    .map(|j| {
                        let a = problem.a()[(product * m + row) * k + j];
                        let b = problem.b()[(product * k + j) * n + column];
                        f64::from(a) * f64::from(b)
                    })
                    .sum();
                *c = sum as f32;
            }
            for (make, name) in BOTH {
                let reference = make(problem.shape(), problem.a(), problem.b());
                let error = reference.error_of_rows(0, &c);
                assert!(
                    error < bound(k),
                    "{name} of {batch}, {m}, {n}, {k}: {error}"
                );
                let last = c.len() - 1;
                let mut wrong = c.clone();
                wrong[last] += 0.5;
                assert!(reference.error_of_rows(0, &wrong) > bound(k), "{name}");
            }
        }
    }

    #[test]
    fn the_switch_between_the_references() {
        for (n, method) in [(256, "every element"), (257, "Freivalds")] {
            let problem = Matmul::new(n);
            assert!(problem.verified(0.0).method.contains(method));
        }
    }
}
