//! Products of any shape on the CPU, of matrices that may be transposed.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::workload::calibrate;
use crate::workload::matmul::blocks::{Grid, Library};

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
    /// C = A B.
    pub(in crate::workload) fn multiply(
        self,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        c: ArrayViewMut2<'_, f32>,
    ) {
        match self {
            Way::OneThread(library) => library.multiply(a, b, c),
            Way::Blocks(library, grid) => grid.multiply(library, a, b, c),
        }
    }

    /// The fastest for A B on the threads of the pool that this runs in, by a short calibration
    /// that overwrites C. `name` says what the product is, such as `gradient of W1`.
    pub(in crate::workload) fn fastest(
        name: &str,
        a: ArrayView2<'_, f32>,
        b: ArrayView2<'_, f32>,
        mut c: ArrayViewMut2<'_, f32>,
    ) -> Self {
        let threads = rayon::current_num_threads();
        let (m, n, k) = (a.nrows(), b.ncols(), a.ncols());
        let choice = format!("{name}, {m} x {n} x {k}, on the CPU, {threads} threads at most");
        calibrate::fastest(&choice, &candidates(m, n, threads), |way, times| {
            for _ in 0..times {
                way.multiply(a, b, c.view_mut());
            }
        })
    }
}

/// Blocks per thread, as for square products: with several, a thread that the system holds up
/// leaves some of its own to the others.
const BLOCKS_PER_THREAD: [usize; 3] = [1, 4, 8];

fn candidates(m: usize, n: usize, threads: usize) -> Vec<Way> {
    let mut ways = vec![Way::OneThread(Library::Gemm)];
    if threads == 1 {
        ways.push(Way::OneThread(Library::Matrixmultiply));
        return ways;
    }
    let grids = BLOCKS_PER_THREAD.map(|blocks| Grid::for_shape(m, n, blocks * threads));
    for grid in grids.into_iter().flatten() {
        for library in [Library::Gemm, Library::Matrixmultiply] {
            let way = Way::Blocks(library, grid);
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
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
        assert!(candidates(64, 64, 1).iter().all(on_one));
        assert!(!candidates(64, 64, 4).iter().all(on_one));
    }

    #[test]
    fn every_way_multiplies_transposed_and_thin_matrices() {
        for (m, n, k) in [(1, 64, 33), (3, 512, 17), (130, 48, 5)] {
            let value = |(i, j): (usize, usize)| ((i * 7 + j * 3) % 11) as f32 - 5.0;
            let a = Array2::from_shape_fn((k, m), value);
            let b = Array2::from_shape_fn((n, k), value);
            let mut expected = Array2::zeros((m, n));
            general_mat_mul(1.0, &a.t(), &b.t(), 0.0, &mut expected);
            for way in candidates(m, n, 4) {
                let mut c = Array2::from_elem((m, n), f32::NAN);
                way.multiply(a.t(), b.t(), c.view_mut());
                // Sums of small whole numbers are exact.
                assert_eq!(c, expected, "{way}");
            }
        }
    }
}
