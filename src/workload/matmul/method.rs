//! How the CPU computes a square product.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};

use crate::workload::matmul::blocks::{Grid, Library};
use crate::workload::prepare::threads::Threads;

/// How a product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Naive,
    OneThread(Library),
    Blocks(Library, Grid),
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Naive => write!(f, "three nested loops"),
            Method::OneThread(library) => write!(f, "{library}"),
            Method::Blocks(library, grid) => {
                write!(f, "{library} over {grid} blocks of C")
            }
        }
    }
}

impl Method {
    /// How many of `threads` threads have work.
    pub(super) fn threads(self, threads: usize) -> usize {
        match self {
            Method::Naive | Method::OneThread(_) => 1,
            Method::Blocks(_, grid) => grid.blocks().min(threads),
        }
    }

    /// One block of rows per thread.
    pub(super) fn row_blocks(threads: usize) -> Self {
        let grid = Grid {
            rows: threads,
            columns: 1,
        };
        Self::Blocks(Library::Matrixmultiply, grid)
    }

    /// C = A B for the leading `n` x `n` corners of row-major matrices whose rows are
    /// `stride` elements apart. The threads share the blocks out.
    pub(super) fn multiply(
        self,
        threads: &Threads,
        n: usize,
        stride: usize,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
    ) {
        let len = (n - 1) * stride + n;
        assert!(n <= stride && a.len() >= len && b.len() >= len && c.len() >= len);
        let corner = || (n, n).strides((stride, 1));
        let fits = "the slices were found long enough above";
        let views = |c| {
            (
                ArrayView2::from_shape(corner(), a).expect(fits),
                ArrayView2::from_shape(corner(), b).expect(fits),
                ArrayViewMut2::from_shape(corner(), c).expect(fits),
            )
        };
        match self {
            Method::Naive => {
                for i in 0..n {
                    for j in 0..n {
                        let mut sum = 0.0;
                        for k in 0..n {
                            sum += a[i * stride + k] * b[k * stride + j];
                        }
                        c[i * stride + j] = sum;
                    }
                }
            }
            Method::OneThread(library) => {
                let (a, b, c) = views(c);
                library.multiply(a, b, c);
            }
            Method::Blocks(library, grid) => {
                let (a, b, c) = views(c);
                grid.multiply(library, threads, a, b, c);
            }
        }
    }
}
