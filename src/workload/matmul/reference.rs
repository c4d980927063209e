//! The float64 references that a product is checked against.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

/// Up to this order every element is compared.
const FULL_UP_TO: usize = 256;

/// What a product of order `n` is compared with.
pub(super) enum Reference {
    /// Every element of A B.
    Full {
        n: usize,
        product: Vec<f64>,
        rms: f64,
    },
    /// A (B x) for random vectors x.
    Freivalds { n: usize, probes: [Probe; 2] },
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
    pub(super) fn new(n: usize, a: &[f32], b: &[f32]) -> Self {
        if n <= FULL_UP_TO {
            Self::full(n, a, b)
        } else {
            Self::freivalds(n, a, b)
        }
    }

    fn full(n: usize, a: &[f32], b: &[f32]) -> Self {
        let mut product = vec![0.0; n * n];
        product
            .par_chunks_mut(n)
            .zip(a.par_chunks(n))
            .for_each(|(row, a)| {
                for (&a, b) in a.iter().zip(b.chunks(n)) {
                    for (sum, &b) in row.iter_mut().zip(b) {
                        *sum += f64::from(a) * f64::from(b);
                    }
                }
            });
        let rms = rms(&product);
        Self::Full { n, product, rms }
    }

    fn freivalds(n: usize, a: &[f32], b: &[f32]) -> Self {
        let probes = [3, 4].map(|seed| {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed << 32);
            let x: Vec<f64> = (0..n)
                .map(|_| if rng.random() { 1.0 } else { -1.0 })
                .collect();
            let product = times(a, &times(b, &x));
            let rms = rms(&product);
            Probe { x, product, rms }
        });
        Self::Freivalds { n, probes }
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
        let n = self.order();
        assert!(
            rows.len().is_multiple_of(n) && first + rows.len() / n <= n,
            "{} values from row {first} on are not rows of a result of order {n}",
            rows.len()
        );
        rows.par_chunks(n)
            .enumerate()
            .map(|(i, row)| self.error_of_row(first + i, row))
            .reduce(|| 0.0, worse)
    }

    fn error_of_row(&self, i: usize, row: &[f32]) -> f64 {
        match self {
            Self::Full { n, product, rms } => row
                .iter()
                .zip(&product[i * n..])
                .map(|(&c, &reference)| (f64::from(c) - reference).abs() / rms)
                .fold(0.0, worse),
            Self::Freivalds { probes, .. } => probes
                .iter()
                .map(|probe| (dot(row, &probe.x) - probe.product[i]).abs() / probe.rms)
                .fold(0.0, worse),
        }
    }

    fn order(&self) -> usize {
        match self {
            Self::Full { n, .. } | Self::Freivalds { n, .. } => *n,
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
    use super::super::{Matmul, bound, cpu};
    use super::*;

    type Make = fn(usize, &[f32], &[f32]) -> Reference;
    const BOTH: [(Make, &str); 2] = [
        (Reference::full, "full"),
        (Reference::freivalds, "freivalds"),
    ];

    fn product(n: usize, a: &[f32], b: &[f32]) -> Vec<f32> {
        let mut c = vec![f32::NAN; n * n];
        cpu::Method::Gemm { threads: 1 }.multiply(n, n, a, b, &mut c);
        c
    }

    /// A few orders below and above the switch, odd ones included.
    fn each(check: impl Fn(&Matmul, &Reference, &[f32], &str)) {
        for n in [2, 7, 64, 127, 257, 512] {
            let problem = Matmul::new(n);
            let c = product(n as usize, problem.a(), problem.b());
            for (make, name) in BOTH {
                let reference = make(n as usize, problem.a(), problem.b());
                check(&problem, &reference, &c, &format!("{name} at {n}"));
            }
        }
    }

    #[test]
    fn a_right_product_passes_with_room() {
        each(|problem, reference, c, what| {
            let error = reference.error_of_rows(0, c);
            assert!(error <= bound(problem.n) / 2.0, "{what}: {error}");
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
                c[i] += 0.01 * (problem.n as f32).sqrt();
                let error = reference.error_of_rows(0, &c);
                assert!(error > bound(problem.n), "{what}: {error}");
            }
        });
    }

    #[test]
    fn a_transposed_operand_and_swapped_operands_are_rejected() {
        each(|problem, reference, _, what| {
            let (n, a, b) = (problem.n, problem.a(), problem.b());
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
            let n = problem.n;
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
            let n = problem.n;
            let blocks = c
                .chunks(3 * n)
                .enumerate()
                .map(|(i, rows)| reference.error_of_rows(3 * i, rows))
                .fold(0.0, worse);
            assert_eq!(blocks, reference.error_of_rows(0, c), "{what}");
        });
    }

    #[test]
    fn the_switch_between_the_references() {
        for (n, method) in [(256, "every element"), (257, "Freivalds")] {
            let problem = Matmul::new(n);
            assert!(problem.verified(0.0).method.contains(method));
        }
    }
}
