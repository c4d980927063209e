//! Products on the CPU by a library, on one thread, or in blocks of C that threads share out.

use std::fmt;

use gemm_common::Parallelism;
use ndarray::{ArrayView2, ArrayViewMut2, Axis, linalg::general_mat_mul, s};

use crate::model::Format;
use crate::workload::prepare::Threads;
use crate::workload::routine::Number;
use crossover_arithmetic::direct;

/// C = A B on the calling thread.
pub(super) type Direct<T> = fn(ArrayView2<'_, T>, ArrayView2<'_, T>, ArrayViewMut2<'_, T>);

/// A format that products are computed in.
pub trait Element: Number {
    /// The name of the format.
    const FORMAT: Format;
    /// The product without packing, where there is one.
    const DIRECT: Option<Direct<Self>>;
    /// C = A B by the crate gemm, on the calling thread.
    fn gemm(a: ArrayView2<'_, Self>, b: ArrayView2<'_, Self>, c: ArrayViewMut2<'_, Self>);
}

macro_rules! gemm {
    ($of_type:path) => {
        fn gemm(a: ArrayView2<'_, Self>, b: ArrayView2<'_, Self>, mut c: ArrayViewMut2<'_, Self>) {
            let ((m, k), n) = (a.dim(), b.ncols());
            assert!(b.nrows() == k && c.dim() == (m, n));
            let (a_rows, a_columns) = (a.strides()[0], a.strides()[1]);
            let (b_rows, b_columns) = (b.strides()[0], b.strides()[1]);
            let (c_rows, c_columns) = (c.strides()[0], c.strides()[1]);
            let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            let (multiply, on) = ($of_type(), Parallelism::None);
            // Its kernels write columns, and the rows of C are the columns of the transposed product,
            // which is that of B and A transposed. C is not read and nothing is conjugated.
            // SAFETY: the views have these shapes and strides, and `c` was borrowed for writing.
            unsafe {
                multiply(
                    n, m, k, c, c_rows, c_columns, false, b, b_rows, b_columns, a, a_rows,
                    a_columns, 0.0, 1.0, false, false, false, on,
                );
            }
        }
    };
}

impl Element for f32 {
    const FORMAT: Format = Format::F32;
    const DIRECT: Option<Direct<Self>> = Some(direct::multiply);

    gemm!(gemm_f32::gemm::f32::get_gemm_fn);
}

impl Element for f64 {
    const FORMAT: Format = Format::F64;
    const DIRECT: Option<Direct<Self>> = None;

    gemm!(gemm_f64::gemm::f64::get_gemm_fn);
}

/// A library, or code of our own, that multiplies on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Gemm,
    /// Through ndarray.
    Matrixmultiply,
    /// Without packing, for small matrices.
    Direct,
    /// Three nested loops, as a beginner writes them, of square matrices.
    Loops,
}

/// Elements of A up to which a product without packing is tried: the more rows A has, the more
/// often packed operands are read, and the more packing pays.
const UNPACKED: usize = 1 << 18;

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Library::Gemm => "gemm",
            Library::Matrixmultiply => "matrixmultiply",
            Library::Direct => "multiply-adds without packing",
            Library::Loops => "three nested loops",
        })
    }
}

impl Library {
    /// The libraries to try for A B, given the elements of A and whether the rows of B and C are
    /// contiguous.
    pub(crate) fn for_product<T: Element>(a_len: usize, in_one_piece: bool) -> Vec<Self> {
        let mut libraries = vec![Library::Gemm, Library::Matrixmultiply];
        let direct = T::DIRECT.is_some() && direct::is_available();
        if a_len <= UNPACKED && in_one_piece && direct {
            libraries.push(Library::Direct);
        }
        libraries
    }

    /// C = A B on this thread.
    ///
    /// # Panics
    /// Without packing where [`for_product`](Self::for_product) does not say so; by loops, of matrices
    /// that are not square and row-major.
    pub(crate) fn multiply<T: Element>(
        self,
        a: ArrayView2<'_, T>,
        b: ArrayView2<'_, T>,
        mut c: ArrayViewMut2<'_, T>,
    ) {
        match self {
            Library::Gemm => T::gemm(a, b, c),
            Library::Matrixmultiply => general_mat_mul(T::one(), &a, &b, T::zero(), &mut c),
            Library::Direct => T::DIRECT.expect("it is one of the format's")(a, b, c),
            Library::Loops => {
                let [a, b] = [&a, &b].map(|x| x.to_slice().expect("whole rows"));
                loops(c.ncols(), a, b, c.as_slice_mut().expect("whole rows"));
            }
        }
    }
}

/// As a beginner writes it.
#[inline]
pub(crate) fn loops<T: Element>(n: usize, a: &[T], b: &[T], c: &mut [T]) {
    assert!([a.len(), b.len(), c.len()] == [n * n; 3]);
    for i in 0..n {
        for j in 0..n {
            let mut sum = T::zero();
            for k in 0..n {
                sum = sum + a[i * n + k] * b[k * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

/// How many blocks C is cut into each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.rows, self.columns)
    }
}

/// Elements of f32 in a cache line of 64 bytes, and of f64 in two.
const LINE: usize = 16;

impl Grid {
    /// Blocks of all columns.
    pub(crate) fn bands(rows: usize) -> Self {
        Self { rows, columns: 1 }
    }

    /// A grid of `blocks` blocks for a C of `m` x `n`, each as square as the number allows: a square
    /// block reads the least of A and B for what it computes. `None` where a block would have less than
    /// a row and a cache line.
    pub(crate) fn for_shape(m: usize, n: usize, blocks: usize) -> Option<Self> {
        let height = |rows: usize| m as f64 / rows as f64;
        let width = |columns: usize| n as f64 / columns as f64;
        (1..=blocks)
            .filter(|rows| blocks.is_multiple_of(*rows))
            .map(|rows| Self {
                rows,
                columns: blocks / rows,
            })
            .filter(|grid| grid.fits(m, n))
            .min_by(|x, y| {
                let skew = |g: &Self| (height(g.rows) / width(g.columns)).ln().abs();
                skew(x).total_cmp(&skew(y))
            })
    }

    /// Whether each block of a C of `m` x `n` has at least a row and a cache line.
    pub(crate) fn fits(self, m: usize, n: usize) -> bool {
        self.rows <= m && self.columns * LINE <= n
    }

    pub(crate) fn blocks(self) -> usize {
        self.rows * self.columns
    }

    /// C = A B, each block by `library` on one of the threads, which meet once per product.
    pub(crate) fn multiply<T: Element>(
        self,
        library: Library,
        threads: &Threads,
        a: ArrayView2<'_, T>,
        b: ArrayView2<'_, T>,
        c: ArrayViewMut2<'_, T>,
    ) {
        self.for_each(threads, c, |row, column, c| {
            let a = a.slice(s![row..row + c.nrows(), ..]);
            let b = b.slice(s![.., column..column + c.ncols()]);
            library.multiply(a, b, c);
        });
    }

    /// Shares the blocks of C out among the threads, each with the row and column where it
    /// begins.
    fn for_each<T: Element>(
        self,
        threads: &Threads,
        mut c: ArrayViewMut2<'_, T>,
        work: impl Fn(usize, usize, ArrayViewMut2<'_, T>) + Sync,
    ) {
        let height = c.nrows().div_ceil(self.rows);
        // In steps of a cache line, so that two threads rarely write the same one.
        let width = c.ncols().div_ceil(self.columns).next_multiple_of(LINE);
        let mut bands: Vec<_> = c.axis_chunks_iter_mut(Axis(0), height).collect();
        let mut blocks = Vec::with_capacity(self.blocks());
        for (i, band) in bands.iter_mut().enumerate() {
            for (j, block) in band.axis_chunks_iter_mut(Axis(1), width).enumerate() {
                blocks.push((i * height, j * width, block));
            }
        }
        threads.each(blocks, |(row, column, block)| work(row, column, block));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn blocks_follow_the_shape() {
        let grid = |rows, columns| Some(Grid { rows, columns });
        assert_eq!(Grid::for_shape(1024, 1024, 16), grid(4, 4));
        assert_eq!(Grid::for_shape(16, 2048, 16), grid(1, 16));
        assert_eq!(Grid::for_shape(2048, 256, 16), grid(8, 2));
        assert_eq!(Grid::for_shape(1, 512, 64), None);
        let fits = |n| grid(8, 8).unwrap().fits(n, n);
        assert!(fits(128) && !fits(127));
    }

    #[test]
    fn blocks_cover_every_element_once() {
        for n in [1, 2, 15, 16, 17, 63, 64, 100] {
            for (rows, columns) in [(1, 1), (1, 2), (1, 3), (2, 2), (2, 4), (8, 8)] {
                let grid = Grid { rows, columns };
                let mut c = ndarray::Array2::<f32>::zeros((n, n));
                let blocks = AtomicUsize::new(0);
                grid.for_each(&Threads::Rayon, c.view_mut(), |row, column, mut block| {
                    blocks.fetch_add(1, Relaxed);
                    for ((i, j), x) in block.indexed_iter_mut() {
                        *x += 1.0 + ((row + i) * n + column + j) as f32;
                    }
                });
                assert!(blocks.into_inner() <= grid.blocks());
                for (i, x) in c.iter().enumerate() {
                    assert_eq!(*x, 1.0 + i as f32, "element {i} of order {n}, {grid}");
                }
            }
        }
    }
}
