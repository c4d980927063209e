//! The inputs of a product, their cost, and the check of its result against references in float64, or for float64
//! in two of them.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crossover_arithmetic::error::worse;

use crate::device::Gpu;
use crate::device::kernel::Source;
use crate::model::{Cost, Verified};
use crate::timing::CudaError;
use crate::workload::prepare::{Device, Memory, in_blocks, seed};
use crate::workload::product::{CUBLAS_WORKSPACE, Element, MATMUL, Shape};
use crate::workload::routine::{Number, Wide, Workload, in_f64, visit_numbers};

/// Largest order: at 2^15 each matrix takes 4 GiB.
pub const LARGEST: u64 = 1 << 15;

/// The inputs of C = A B of one shape, and what its result is checked against.
pub struct Matmul<T: Element = f32> {
    pub(super) shape: Shape,
    pub(super) a: Vec<T>,
    pub(super) b: Vec<T>,
    reference: OnceCell<Reference<T>>,
    inputs: RefCell<Option<Inputs<T>>>,
}

impl Matmul {
    /// Two matrices of `n` x `n` elements, uniform in [-1, 1), the same in every run.
    ///
    /// # Panics
    /// If `n` is 0 or above [`LARGEST`].
    pub fn new(n: u64) -> Self {
        Self::square(n)
    }

    /// Matrices of any shape, uniform in [-1, 1), the same in every run.
    ///
    /// # Panics
    /// If a length of `shape` is 0.
    pub fn of(shape: Shape) -> Self {
        Self::with(shape)
    }
}

impl<T: Element> Matmul<T> {
    fn square(n: u64) -> Self {
        assert!(
            (1..=LARGEST).contains(&n),
            "the order of a product is from 1 to {LARGEST}, not {n}"
        );
        Self::with(Shape::square(n as usize))
    }

    fn with(shape: Shape) -> Self {
        assert!(
            shape.multiply_adds() > 0,
            "{shape:?} is the shape of no product: each length is 1 at least"
        );
        Self {
            shape,
            a: uniform(shape.a_len(), 1),
            b: uniform(shape.b_len(), 2),
            reference: OnceCell::new(),
            inputs: RefCell::default(),
        }
    }

    /// The sizes of the matrices.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The order of a square product: rows, and columns, of each matrix.
    pub(super) fn order(&self) -> usize {
        debug_assert_eq!(self.shape, Shape::square(self.shape.n));
        self.shape.n
    }

    /// A, row by row.
    pub fn a(&self) -> &[T] {
        &self.a
    }

    /// B, row by row.
    pub fn b(&self) -> &[T] {
        &self.b
    }

    /// The error of consecutive rows of a result, from row `first` on (the rows of a batch
    /// counted through); see [`Self::verified`] for the metric. NaN where an element is NaN.
    ///
    /// # Panics
    /// If `rows` is not whole rows of the result.
    pub fn error_of_rows(&self, first: usize, rows: &[T]) -> f64 {
        self.reference().error_of_rows(first, rows)
    }

    /// The verdict on a whole result, given the largest of its rows' errors.
    ///
    /// Up to 256^3 multiply-adds every element is compared with a float64 product, and the
    /// error is the largest difference relative to the root mean square of the product.
    /// Above, the check is Freivalds': for two vectors x of random signs, C x is compared
    /// with A (B x), all in float64, relative to the root mean square of A (B x). It costs
    /// O(n^2) and sees every element. What it cannot see at a large order n is a single
    /// element off by less than `bound * sqrt(n)` times the root mean square of C, 1.6 % at
    /// order 2^15.
    /// (R. Freivalds, Probabilistic machines can use less running time, IFIP 1977.)
    ///
    /// The bound is 8 u sqrt(k) with u = 2^-24. Rounding errors behave as independent random
    /// variables, so those of a sum of k terms grow as sqrt(k), not k (N. J. Higham and
    /// T. Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci.
    /// Comput. 41, 2019). Operands rounded to TF32 err by 3e-4 at any order and are
    /// rejected at every one of them.
    ///
    /// A product in float64 has u = 2^-53, and its references are computed in two float64
    /// ([`DoubleDouble`](crate::workload::DoubleDouble)), which err by 2^-50 of that bound. Operands
    /// of f32, or sums in it, are rejected at every order.
    pub fn verified(&self, error: f64) -> Verified {
        Verified {
            error,
            bound: bound_of::<T>(self.shape.k),
            method: self.reference().method(),
        }
    }

    /// The largest error of a result in device memory. It is fetched in pieces of 64 or 128 MiB: at the
    /// largest order the whole would take 4 GiB more of host memory.
    pub(super) fn error_of(&self, memory: &Memory, c: Device<T>) -> Result<f64, CudaError> {
        self.error_from(memory, c, 0)
    }

    /// As [`error_of`](Self::error_of), of a part of the result from the row `begin` on.
    pub(crate) fn error_from(
        &self,
        memory: &Memory,
        c: Device<T>,
        begin: usize,
    ) -> Result<f64, CudaError> {
        const VALUES: usize = 1 << 24;
        let n = self.shape.n;
        let total = c.bytes() / size_of::<T>() / n;
        let rows = (VALUES / n).clamp(1, total);
        let mut error = 0.0;
        for first in (0..total).step_by(rows) {
            let values = memory.read_part(c, first * n..(first + rows).min(total) * n)?;
            error = worse(error, self.error_of_rows(begin + first, &values));
        }
        Ok(error)
    }

    /// A and B in device memory, uploaded once for all implementations without transfers.
    pub(super) fn device_inputs(&self, gpu: &Rc<Gpu>) -> Result<Inputs<T>, CudaError> {
        let mut cached = self.inputs.borrow_mut();
        let known = cached.as_ref();
        if let Some(inputs) = known.filter(|inputs| Rc::ptr_eq(&inputs.memory.gpu, gpu)) {
            return Ok(inputs.clone());
        }
        let mut memory = Memory::new(gpu);
        let matrices = [memory.upload(&self.a)?, memory.upload(&self.b)?];
        let memory = Rc::new(memory);
        Ok(cached.insert(Inputs { memory, matrices }).clone())
    }

    fn reference(&self) -> &Reference<T> {
        self.reference
            .get_or_init(|| Reference::new(self.shape, &self.a, &self.b))
    }
}

/// Unit roundoff of f32, 2^-24.
pub(crate) const UNIT_ROUNDOFF: f64 = <f32 as crossover_arithmetic::Number>::UNIT_ROUNDOFF;

/// The largest error that is accepted of sums of `k` terms in f32.
pub(super) fn bound(k: usize) -> f64 {
    bound_of::<f32>(k)
}

fn bound_of<T: Number>(k: usize) -> f64 {
    8.0 * T::UNIT_ROUNDOFF * (k as f64).sqrt()
}

impl<T: Element> Workload for Matmul<T> {
    fn new(n: u64) -> Self {
        Self::square(n)
    }

    fn host_bytes(n: u64) -> u64 {
        // The inputs, and all three once more in pinned memory.
        5 * size_of::<T>() as u64 * n * n
    }

    fn device_bytes(n: u64) -> u64 {
        // The inputs that implementations share, and all three matrices for one with transfers.
        5 * size_of::<T>() as u64 * n * n + CUBLAS_WORKSPACE
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&MATMUL] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_numbers(&self.a, visit);
        visit_numbers(&self.b, visit);
    }
}

/// Values uniform in [-1, 1), the same in every run; another `stream` gives others.
pub(crate) fn uniform<T: Number>(len: usize, stream: u64) -> Vec<T> {
    let stream = seed(stream);
    in_blocks(len, 1.0, |block| stream << 32 | block)
}

/// Cost of one product of order `n` whose operands lie where it computes: 2 n^3 FLOP, and each
/// matrix moved once.
pub fn cost(n: u64) -> Cost {
    Shape::square(n as usize).cost()
}

/// As [`cost`], in float64.
pub fn cost_f64(n: u64) -> Cost {
    in_f64(cost(n))
}

/// Host memory that an implementation at order `n` without transfers needs, in bytes: the
/// three matrices.
pub(crate) fn host_bytes(n: u64) -> u64 {
    12 * n * n
}

/// A and B of one problem, which all implementations without transfers read.
#[derive(Clone)]
pub(super) struct Inputs<T> {
    pub(super) memory: Rc<Memory>,
    pub(super) matrices: [Device<T>; 2],
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "from 1 to 32768, not 0")]
    fn order_zero_is_refused() {
        Matmul::new(0);
    }
}
