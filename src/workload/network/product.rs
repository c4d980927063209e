//! Products of any shape on the CPU, of matrices that may be transposed.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::workload::matmul::blocks::{FOR_MANY_THREADS, Grid, Library, PER_THREAD, fewer_threads};
use crate::workload::network::operations::transpose;
use crate::workload::prepare::{Threads, choose};

/// Values as a row-major matrix of `columns` columns.
pub(crate) fn matrix(values: &[f32], columns: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((values.len() / columns, columns), values).expect("whole rows")
}

/// Values as a row-major matrix of `columns` columns, to write to.
pub(crate) fn matrix_mut(values: &mut [f32], columns: usize) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((values.len() / columns, columns), values).expect("whole rows")
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
pub(crate) struct CpuPlan {
    by: Division,
    /// Whether transposed operands are first copied into row-major order: blocks then read rows of both
    /// operands, and pack less.
    copies: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    OneThread(Library),
    Blocks(Library, Grid),
}

impl fmt::Display for CpuPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            Division::OneThread(library) => write!(f, "{library} on 1 thread")?,
            Division::Blocks(library, grid) => write!(f, "{library} over {grid} blocks")?,
        }
        if self.copies {
            f.write_str(", transposed first")?;
        }
        Ok(())
    }
}

impl CpuPlan {
    /// C = A B, of matrices that are row-major or transposed; the threads share the blocks out.
    /// Copies of transposed operands go to `spare`.
    ///
    /// # Panics
    /// Where `spare` is shorter than these operands.
    pub(crate) fn multiply(
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
        match self.by {
            Division::OneThread(library) => library.multiply(a, b, c),
            Division::Blocks(library, grid) => grid.multiply(library, threads, a, b, c),
        }
    }

    /// The fastest way for A B on all or some of these threads, by a short calibration that overwrites
    /// C and `spare`. `name` describes the product, such as `gradient of W1`.
    ///
    /// # Panics
    /// As [`Self::multiply`].
    pub(crate) fn fastest(
        threads: &Threads,
        name: &str,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        mut c: ArrayViewMut2<'_, f32>,
        spare: &mut [f32],
    ) -> Self {
        let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
        let count = threads.count();
        let choice = format!("{name}, {m} x {n} x {k}, on the CPU, {count} threads at most");
        choose::on_cpu(
            threads,
            &choice,
            &candidates(&a, &b, count),
            |way, times| {
                let mut multiply = || way.multiply(threads, a, b, c.view_mut(), spare);
                (0..times).for_each(|_| multiply());
            },
        )
    }
}

/// The ways that are worth a try for A B into a row-major C.
fn candidates(a: &ArrayView2<'_, f32>, b: &ArrayView2<'_, f32>, threads: usize) -> Vec<CpuPlan> {
    let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
    let ways = |copies, in_one_piece| {
        let libraries = Library::for_product::<f32>(m * k, in_one_piece);
        candidates_by(&libraries, [m, n, k], threads)
            .into_iter()
            .map(move |by| CpuPlan { by, copies })
    };
    let as_they_lie = ways(false, b.is_standard_layout());
    if a.is_standard_layout() && b.is_standard_layout() {
        return as_they_lie.collect();
    }
    let copied = ways(true, true);
    // With many threads, no operand is copied for a product on one thread.
    let copied = copied.filter(|way| threads == 1 || !matches!(way.by, Division::OneThread(_)));
    as_they_lie.chain(copied).collect()
}

fn candidates_by(libraries: &[Library], [m, n, k]: [usize; 3], threads: usize) -> Vec<Division> {
    let multiply_adds = m * n * k;
    let mut ways = Vec::new();
    if threads == 1 || multiply_adds < FOR_MANY_THREADS {
        ways.extend(libraries.iter().copied().map(Division::OneThread));
    }
    if threads == 1 {
        return ways;
    }
    let all = PER_THREAD.map(|blocks| blocks * threads);
    let counts = all.into_iter().chain(fewer_threads(threads, multiply_adds));
    for grid in counts.filter_map(|blocks| Grid::for_shape(m, n, blocks)) {
        let by = libraries
            .iter()
            .map(|&library| Division::Blocks(library, grid));
        ways.extend(by);
    }
    ways
}

/// The threads and the ways of a network's products.
pub(crate) struct Products {
    pub(crate) threads: Threads,
    /// The network, for the names of choices.
    of: &'static str,
    /// By the name of the product, which several layers may share.
    ways: Vec<(&'static str, CpuPlan)>,
    /// For copies of transposed operands.
    spare: Vec<f32>,
}

impl Products {
    pub(crate) fn new(threads: Threads, of: &'static str) -> Self {
        Self {
            threads,
            of,
            ways: Vec::new(),
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
        let known = self.ways.iter().find(|(other, _)| *other == name);
        let way = match known {
            Some((_, way)) => *way,
            None => {
                let transposed = [a, b].into_iter().filter(|x| !x.is_standard_layout());
                let copies = transposed.map(|x| x.len()).sum::<usize>();
                self.spare.resize(copies.max(self.spare.len()), f32::NAN);
                let choice = format!("{name} of {}", self.of);
                let (threads, spare) = (&self.threads, &mut self.spare);
                let way = CpuPlan::fastest(threads, &choice, a, b, c.view_mut(), spare);
                self.ways.push((name, way));
                way
            }
        };
        way.multiply(&self.threads, a, b, c, &mut self.spare);
    }

    /// A sentence for each way.
    pub(crate) fn notes(&self) -> Vec<String> {
        let chosen = self.ways.iter();
        chosen.map(|(name, way)| format!("{name}: {way}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use ndarray::linalg::general_mat_mul;

    #[test]
    fn one_thread_is_offered_no_blocks() {
        let on_one = |way: &Division| matches!(way, Division::OneThread(_));
        let libraries = [Library::Gemm, Library::Matrixmultiply];
        assert!(candidates_by(&libraries, [64; 3], 1).iter().all(on_one));
        assert!(!candidates_by(&libraries, [64; 3], 4).iter().all(on_one));
    }

    #[test]
    fn a_long_product_is_tried_on_many_threads_alone() {
        let libraries = [Library::Gemm];
        let blocks = |length: usize| -> Vec<usize> {
            let ways = candidates_by(&libraries, [length; 3], 16).into_iter();
            ways.map(|way| match way {
                Division::OneThread(_) => 1,
                Division::Blocks(_, grid) => grid.blocks(),
            })
            .collect()
        };
        assert_eq!(blocks(256), [1, 16, 64, 128, 8, 4, 2]);
        assert_eq!(blocks(1024), [16, 64, 128, 8, 4]);
    }

    #[test]
    fn row_major_operands_are_not_copied() {
        let x = Array2::<f32>::zeros((64, 48));
        let copies = |a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>| {
            candidates(&a, &b, 4).iter().any(|way| way.copies)
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
                for way in candidates(&a.t(), &b, 4) {
                    c.fill(f32::NAN);
                    way.multiply(&threads, a.t(), b, c.view_mut(), &mut spare);
                    // Sums of small whole numbers are exact.
                    assert_eq!(c, expected, "{way}");
                }
            }
        }
    }
}
