//! The products of a network on the CPU, of matrices that may be transposed.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2, s};

use crossover_arithmetic::rows::{LINE, columns_as_rows};

use crate::workload::prepare::{Threads, choose};
use crate::workload::product::{CpuPlan, LONG, Shape, candidates};

/// Values as a row-major matrix of `columns` columns.
pub(crate) fn matrix(values: &[f32], columns: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((values.len() / columns, columns), values).expect("whole rows")
}

/// Values as a row-major matrix of `columns` columns, to write to.
pub(crate) fn matrix_mut(values: &mut [f32], columns: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((values.len() / columns, columns), values).expect("whole rows")
}

/// The transpose of a row-major matrix with this number of columns.
pub(crate) fn transpose(threads: &Threads, from: &[f32], columns: usize, to: &mut [f32]) {
    let height = from.len() / columns;
    let tasks = to.chunks_mut(LINE * height).enumerate();
    threads.each(tasks.collect(), |(at, rows)| {
        columns_as_rows(from, columns, at * LINE, rows, height);
    });
}

/// A matrix in row-major order: the matrix itself, or a copy at the start of `spare`; and the rest of
/// `spare`.
fn row_major<'a>(
    threads: &Threads,
    x: ArrayView2<'a, f32>,
    spare: &'a mut [f32],
) -> (ArrayView2<'a, f32>, &'a mut [f32]) {
    if x.is_standard_layout() {
        return (x, spare);
    }
    let rows = x.reversed_axes();
    let from = rows.to_slice().expect("transposed is row-major");
    let (copy, rest) = spare.split_at_mut(from.len());
    transpose(threads, from, rows.ncols(), copy);
    (matrix(copy, rows.nrows()), rest)
}

/// How a product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProductPlan {
    plan: CpuPlan,
    /// Whether transposed operands are first copied into row-major order: blocks then read rows of both
    /// operands, and pack less.
    copies: bool,
}

impl fmt::Display for ProductPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = if self.copies {
            ", transposed first"
        } else {
            ""
        };
        write!(f, "{}{copies}", self.plan)
    }
}

impl ProductPlan {
    /// C = A B, of matrices that are row-major or transposed; the threads share the blocks out.
    /// Copies of transposed operands go to `spare`.
    ///
    /// # Panics
    /// Where `spare` is shorter than these operands.
    fn multiply(
        self,
        threads: &Threads,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        c: ArrayViewMut2<'_, f32>,
        spare: &mut [f32],
    ) {
        let (a, b) = if self.copies {
            let (a, rest) = row_major(threads, a, spare);
            (a, row_major(threads, b, rest).0)
        } else {
            (a, b)
        };
        self.plan.multiply(threads, a, b, c);
    }
}

/// The ways that are worth a try for A B into a row-major C.
fn plans(a: &ArrayView2<'_, f32>, b: &ArrayView2<'_, f32>, threads: usize) -> Vec<ProductPlan> {
    let (batch, m, n, k) = (1, a.nrows(), b.ncols(), a.ncols());
    let plans = |copies, row_major| {
        let plans = candidates::<f32>(Shape { batch, m, n, k }, row_major, threads).into_iter();
        plans.map(move |plan| ProductPlan { plan, copies })
    };
    let row_major = [a.is_standard_layout(), b.is_standard_layout()];
    let as_they_lie = plans(false, row_major);
    if row_major == [true; 2] {
        return as_they_lie.collect();
    }
    // With many threads, no operand is copied for a product on one thread.
    let copied = plans(true, [true; 2])
        .filter(|way| threads == 1 || !matches!(way.plan, CpuPlan::OneThread(_)));
    as_they_lie.chain(copied).collect()
}

/// The rows of A, and the terms of its sums, that the ways are tried on: all, or of a [`LONG`] product as many as
/// lie in one piece.
fn tried(a: &ArrayView2<'_, f32>, b: &ArrayView2<'_, f32>, threads: usize) -> (usize, usize) {
    let (m, k) = a.dim();
    let parts = (m * b.ncols() * k).div_ceil(LONG * threads).max(1);
    match (a.is_standard_layout(), b.is_standard_layout()) {
        (true, _) => (m.div_ceil(parts), k),
        (false, true) => (m, k.div_ceil(parts)),
        (false, false) => (m, k),
    }
}

/// The threads of a network's products, and how each is computed.
pub(crate) struct Products {
    pub(crate) threads: Threads,
    /// The network, for the names of choices.
    network: &'static str,
    /// By the name of the product, which several layers may share.
    plans: Vec<(&'static str, ProductPlan)>,
    /// For copies of transposed operands.
    spare: Vec<f32>,
}

impl Products {
    pub(crate) fn new(threads: Threads, network: &'static str) -> Self {
        Self {
            threads,
            network,
            plans: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// C = A B, the product of this name. The first time a short calibration, in which the operands
    /// must hold numbers, chooses the way.
    pub(crate) fn multiply(
        &mut self,
        name: &'static str,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        mut c: ArrayViewMut2<'_, f32>,
    ) {
        let mut known = self.plans.iter().filter(|(other, _)| *other == name);
        let known = known.next().map(|(_, plan)| *plan);
        let plan = known.unwrap_or_else(|| self.choose(name, a, b, c.view_mut()));
        plan.multiply(&self.threads, a, b, c, &mut self.spare);
    }

    /// The fastest way by a short calibration, which overwrites C.
    fn choose(
        &mut self,
        name: &'static str,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        mut c: ArrayViewMut2<'_, f32>,
    ) -> ProductPlan {
        let transposed = [a, b].into_iter().filter(|x| !x.is_standard_layout());
        let copies = transposed.map(|x| x.len()).sum::<usize>();
        self.spare.resize(copies.max(self.spare.len()), f32::NAN);
        let (threads, spare, count) = (&self.threads, &mut self.spare, self.threads.count());
        let (network, m, n, k) = (self.network, a.nrows(), b.ncols(), a.ncols());
        let choice =
            format!("{name} of {network}, {m} x {n} x {k}, on the CPU, {count} threads at most");
        let plans = plans(&a, &b, count);
        let (rows, terms) = tried(&a, &b, count);
        let (a, b) = (a.slice(s![..rows, ..terms]), b.slice(s![..terms, ..]));
        let plan = choose::on_cpu(threads, &choice, &plans, |plan, times| {
            let mut c = c.slice_mut(s![..rows, ..]);
            (0..times).for_each(|_| plan.multiply(threads, a, b, c.view_mut(), spare));
        });
        self.plans.push((name, plan));
        plan
    }

    /// A sentence for each way.
    pub(crate) fn notes(&self) -> Vec<String> {
        let chosen = self.plans.iter();
        chosen
            .map(|(name, plan)| format!("{name}: {plan}"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use ndarray::linalg::general_mat_mul;

    #[test]
    fn row_major_operands_are_not_copied() {
        let x = Array2::<f32>::zeros((64, 48));
        let copies = |a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>| {
            plans(&a, &b, 4).iter().any(|way| way.copies)
        };
        let y = Array2::<f32>::zeros((48, 64));
        assert!(!copies(x.view(), y.view()));
        assert!(copies(x.view(), x.t()) && copies(y.t(), y.view()));
    }

    #[test]
    fn every_way_multiplies_transposed_and_thin_matrices() {
        for (m, n, k) in [(1, 64, 33), (3, 512, 17), (130, 48, 5)] {
            let value = |(i, j): (usize, usize)| ((i * 7 + j * 3) % 11) as f32 - 5.0;
            let a = Array2::from_shape_fn((k, m), value);
            let b = Array2::from_shape_fn((n, k), value);
            let mut expected = Array2::zeros((m, n));
            general_mat_mul(1.0, &a.t(), &b.t(), 0.0, &mut expected);
            let rows = b.t().as_standard_layout().into_owned();
            let threads = Threads::up_to(4);
            let mut spare = vec![f32::NAN; a.len() + b.len()];
            for b in [b.t(), rows.view()] {
                let mut c = Array2::from_elem((m, n), f32::NAN);
                for way in plans(&a.t(), &b, 4) {
                    c.fill(f32::NAN);
                    way.multiply(&threads, a.t(), b, c.view_mut(), &mut spare);
                    // Sums of small whole numbers are exact.
                    assert_eq!(c, expected, "{way}");
                }
            }
        }
    }
}
