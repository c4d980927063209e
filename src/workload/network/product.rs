//! Products of any shape on the CPU, of matrices that may be transposed.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::workload::calibrate;
use crate::workload::matmul::blocks::{Grid, Library, in_one_piece};
use crate::workload::threads::Threads;

/// A row-major matrix of so many columns.
pub(in crate::workload) fn matrix(values: &[f32], columns: usize) -> ArrayView2<'_, f32> {
    ArrayView2::from_shape((values.len() / columns, columns), values).expect("whole rows")
}

/// The same to write to.
pub(in crate::workload) fn matrix_mut(
    values: &mut [f32],
    columns: usize,
) -> ArrayViewMut2<'_, f32> {
    ArrayViewMut2::from_shape((values.len() / columns, columns), values).expect("whole rows")
}

/// How a product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::workload) enum Way {
    OneThread(Library),
    Blocks(Library, Grid),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::OneThread(library) => write!(f, "{library} on 1 thread"),
            Way::Blocks(library, grid) => write!(f, "{library} over {grid} blocks"),
        }
    }
}

impl Way {
    /// C = A B; blocks are shared out among the threads.
    pub(in crate::workload) fn multiply(
        self,
        threads: &Threads,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        c: ArrayViewMut2<'_, f32>,
    ) {
        match self {
            Way::OneThread(library) => library.multiply(a, b, c),
            Way::Blocks(library, grid) => grid.multiply(library, threads, a, b, c),
        }
    }

    /// The fastest for A B on these threads at most, by a short calibration that overwrites C. `name` says what the product is, such as `gradient of W1`.
    pub(in crate::workload) fn fastest(
        threads: &Threads,
        name: &str,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        mut c: ArrayViewMut2<'_, f32>,
    ) -> Self {
        let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
        let count = threads.count();
        let choice = format!("{name}, {m} x {n} x {k}, on the CPU, {count} threads at most");
        let libraries = Library::for_product(m * k, in_one_piece(&b, &c.view_mut()));
        let candidates = candidates(&libraries, m, n, count);
        calibrate::fastest(threads, &choice, &candidates, |way, times| {
            let mut multiply = || way.multiply(threads, a, b, c.view_mut());
            (0..times).for_each(|_| multiply());
        })
    }
}

/// Blocks per thread, as for square products: with several, a thread that the system holds up
/// leaves some of its own to the others.
const BLOCKS_PER_THREAD: [usize; 3] = [1, 4, 8];

fn candidates(libraries: &[Library], m: usize, n: usize, threads: usize) -> Vec<Way> {
    let mut ways: Vec<Way> = libraries.iter().copied().map(Way::OneThread).collect();
    if threads == 1 {
        return ways;
    }
    // A small product has work for a few threads only.
    let fewer = std::iter::successors(Some(threads / 2), |&fewer| Some(fewer / 2));
    let all = BLOCKS_PER_THREAD.map(|blocks| blocks * threads);
    let counts = all.into_iter().chain(fewer.take_while(|&fewer| fewer > 1));
    for grid in counts.filter_map(|blocks| Grid::for_shape(m, n, blocks)) {
        let by = libraries.iter().map(|&library| Way::Blocks(library, grid));
        ways.extend(by);
    }
    ways
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, linalg::general_mat_mul};

    use super::*;

    #[test]
    fn one_thread_is_offered_no_blocks() {
        let on_one = |way: &Way| matches!(way, Way::OneThread(_));
        let libraries = [Library::Gemm, Library::Matrixmultiply];
        assert!(candidates(&libraries, 64, 64, 1).iter().all(on_one));
        assert!(!candidates(&libraries, 64, 64, 4).iter().all(on_one));
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
            for b in [b.t(), rows.view()] {
                let mut c = Array2::from_elem((m, n), f32::NAN);
                let libraries = Library::for_product(m * k, in_one_piece(&b, &c.view_mut()));
                for way in candidates(&libraries, m, n, 4) {
                    c.fill(f32::NAN);
                    way.multiply(&threads, a.t(), b, c.view_mut());
                    // Sums of small whole numbers are exact.
                    assert_eq!(c, expected, "{way}");
                }
            }
        }
    }
}
