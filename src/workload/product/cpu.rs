//! The ways to compute products on the CPU.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::workload::prepare::Threads;
use crate::workload::product::grid::{Element, Grid, Library};
use crate::workload::product::shape::Shape;

/// How a product, or each of a batch, is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CpuPlan {
    OneThread(Library),
    /// The batch in this many parts, each on one thread.
    Parts(Library, usize),
    /// One product after the other, each over blocks of C.
    Blocks(Library, Grid),
}

impl fmt::Display for CpuPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuPlan::OneThread(library) => write!(f, "{library}"),
            CpuPlan::Parts(library, parts) => {
                write!(f, "{library} over {parts} parts of the batch")
            }
            CpuPlan::Blocks(library, grid) => write!(f, "{library} over {grid} blocks of C"),
        }
    }
}

impl CpuPlan {
    /// How many of `threads` threads have work.
    pub(crate) fn threads(self, shape: Shape, threads: usize) -> usize {
        match self {
            CpuPlan::OneThread(_) => 1,
            CpuPlan::Parts(_, parts) => parts.min(shape.batch).min(threads),
            CpuPlan::Blocks(_, grid) => grid.blocks().min(threads),
        }
    }

    /// One block of rows per thread.
    pub(crate) fn row_blocks(threads: usize) -> Self {
        CpuPlan::Blocks(Library::Matrixmultiply, Grid::bands(threads))
    }

    /// C = A B of matrices that are row-major or transposed; the threads share the blocks out. One
    /// product is one part.
    pub(crate) fn multiply<T: Element>(
        self,
        threads: &Threads,
        a: ArrayView2<'_, T>,
        b: ArrayView2<'_, T>,
        c: ArrayViewMut2<'_, T>,
    ) {
        match self {
            CpuPlan::OneThread(library) | CpuPlan::Parts(library, _) => library.multiply(a, b, c),
            CpuPlan::Blocks(library, grid) => grid.multiply(library, threads, a, b, c),
        }
    }

    /// C = A B of each product of the batch, of row-major matrices. The threads share the work.
    pub(crate) fn multiply_each<T: Element>(
        self,
        threads: &Threads,
        shape: Shape,
        a: &[T],
        b: &[T],
        c: &mut [T],
    ) {
        let Shape { batch, m, n, k } = shape;
        let CpuPlan::Parts(library, parts) = self else {
            return products(shape, a, b, c).for_each(|(a, b, c)| self.multiply(threads, a, b, c));
        };
        let each = batch.div_ceil(parts);
        let parts =
            (c.chunks_mut(each * m * n)).zip(a.chunks(each * m * k).zip(b.chunks(each * k * n)));
        threads.each(parts.collect(), |(c, (a, b))| {
            products(shape, a, b, c).for_each(|(a, b, c)| library.multiply(a, b, c));
        });
    }
}

/// A, B and C of each product of a batch.
#[inline]
pub(crate) fn products<'a, 'c, T>(
    shape: Shape,
    mut a: &'a [T],
    mut b: &'a [T],
    mut c: &'c mut [T],
) -> impl Iterator<Item = (ArrayView2<'a, T>, ArrayView2<'a, T>, ArrayViewMut2<'c, T>)> {
    let Shape { m, n, k, .. } = shape;
    assert!(m * n > 0);
    // `chunks` would divide three times, and views of slices would check lengths again. Both are
    // visible in the time of the smallest products.
    std::iter::from_fn(move || {
        let c = c.split_off_mut(..m * n)?;
        let (a, b) = (a.split_off(..m * k)?, b.split_off(..k * n)?);
        // SAFETY: each slice has as many elements as the matrix.
        Some(unsafe {
            (
                ArrayView2::from_shape_ptr((m, k), a.as_ptr()),
                ArrayView2::from_shape_ptr((k, n), b.as_ptr()),
                ArrayViewMut2::from_shape_ptr((m, n), c.as_mut_ptr()),
            )
        })
    })
}

/// Numbers of blocks, or parts of a batch, per thread to try. One per thread is the least total work.
/// With several, other threads take over the blocks of a thread that was interrupted, which helps on a
/// shared host.
pub(crate) const PER_THREAD: [usize; 3] = [1, 4, 8];

/// From this many multiply-adds of each thread on, the ways are tried on a part of a product or batch: with few
/// threads a calibration would take seconds.
pub(crate) const LONG: usize = 1 << 28;

/// From this many multiply-adds on, a product takes one thread half a millisecond or more, while
/// handing work over takes microseconds. So it is not tried on few of many threads: a trial on one of
/// 16 threads takes as long as ten on all of them.
const FOR_MANY_THREADS: usize = 1 << 25;

/// From this many multiply-adds on, a quarter of up to [`FEW_THREADS`] takes a third of the calibration, and was the
/// fastest in none of 68 calibrations on the hosts of H100 and H200 (records of 38f947a0 to bad4b16e, and 5d9f35a6).
const FOR_HALF_OF_THE_THREADS: usize = 1 << 30;
/// With more threads, a quarter may be the cores of one of two sockets.
const FEW_THREADS: usize = 16;

/// Smaller products take less time than handing work over.
const FOR_SEVERAL_THREADS: usize = 1 << 15;

/// Numbers of threads to try beside all: half, a quarter, and so on down to two. Hyper-threads and a
/// second socket can slow a product down, and a small product has work for few threads only. Products
/// [`FOR_MANY_THREADS`] get at least a quarter, [`FOR_HALF_OF_THE_THREADS`] half.
fn fewer_threads(threads: usize, multiply_adds: usize) -> impl Iterator<Item = usize> {
    let fewer = std::iter::successors(Some(threads / 2), |&fewer| Some(fewer / 2));
    let least = match multiply_adds {
        FOR_HALF_OF_THE_THREADS.. if threads <= FEW_THREADS => (threads / 2).max(2),
        FOR_MANY_THREADS.. => (threads / 4).max(2),
        _ => 2,
    };
    fewer.take_while(move |&fewer| fewer >= least)
}

/// The ways to try for products of a shape on up to `threads` threads; A and B are row-major or not.
pub(crate) fn candidates<T: Element>(
    shape: Shape,
    row_major: [bool; 2],
    threads: usize,
) -> Vec<CpuPlan> {
    let Shape { batch, m, n, k } = shape;
    let libraries = Library::for_product::<T>(m * k, row_major[1]);
    let mut plans = Vec::new();
    if row_major == [true; 2] && n <= 32 && shape == Shape::square(n) {
        plans.push(CpuPlan::OneThread(Library::Loops));
    }
    if threads == 1 || shape.multiply_adds() < FOR_MANY_THREADS {
        plans.extend(libraries.iter().copied().map(CpuPlan::OneThread));
    }
    if threads == 1 || shape.multiply_adds() < FOR_SEVERAL_THREADS {
        return plans;
    }
    let fewer = fewer_threads(threads, shape.multiply_adds()).filter(|_| batch == 1);
    for count in PER_THREAD
        .map(|each| each * threads)
        .into_iter()
        .chain(fewer)
    {
        // In small products of a batch the threads would wait for each other too often.
        let shares = batch == 1 || m * n * k >= 1 << 21;
        for &library in &libraries {
            if count <= batch || count == threads && batch > 1 {
                plans.push(CpuPlan::Parts(library, count));
            }
            // The rows of a band lie in one piece, and each core reads its own columns of B.
            let in_bands = library == Library::Direct || count == threads;
            let bands = (in_bands && m >= n).then(|| Grid::bands(count));
            let columns = (batch > 1 || n >= 8 * m).then_some(Grid {
                rows: 1,
                columns: count,
            });
            for grid in [Grid::for_shape(m, n, count), bands, columns]
                .into_iter()
                .flatten()
            {
                let plan = CpuPlan::Blocks(library, grid);
                if shares && grid.fits(m, n) && !plans.contains(&plan) {
                    plans.push(plan);
                }
            }
        }
    }
    plans
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::workload::matmul::Matmul;

    fn of_shape(shape: Shape, threads: usize) -> Vec<CpuPlan> {
        candidates::<f32>(shape, [true; 2], threads)
    }

    fn of_order(n: usize, threads: usize) -> Vec<CpuPlan> {
        of_shape(Shape::square(n), threads)
    }

    #[test]
    fn candidates_by_order_and_threads() {
        let over = |blocks| {
            let grid = Grid::for_shape(2048, 2048, blocks);
            CpuPlan::Blocks(Library::Gemm, grid.unwrap())
        };
        let several = |plan: &CpuPlan| matches!(plan, CpuPlan::Blocks(..));
        assert!(of_order(4, 16).contains(&CpuPlan::OneThread(Library::Loops)));
        assert!(!of_order(4, 16).iter().any(several));
        assert!(!of_order(2048, 16).contains(&CpuPlan::OneThread(Library::Gemm)));
        for (n, few) in [(2048, 8), (512, 4), (256, 2)] {
            assert!(of_order(n, 16).contains(&over(few)), "{n}");
            assert!(!of_order(2048, 16).contains(&over(few)) || n == 2048, "{n}");
        }
        if Library::for_product::<f32>(1, true).contains(&Library::Direct) {
            assert!(of_order(64, 16).contains(&CpuPlan::OneThread(Library::Direct)));
        }
        // The blocks of the row `rayon`.
        assert!(of_order(2048, 16).contains(&CpuPlan::row_blocks(16)));
        assert_eq!(
            of_order(2048, 1),
            [Library::Gemm, Library::Matrixmultiply].map(CpuPlan::OneThread)
        );
    }

    #[test]
    fn every_candidate_is_right() {
        for (batch, m, n, k) in [
            (1, 1, 1, 1),
            (1, 1, 300, 70),
            (1, 16, 257, 129),
            (5, 7, 9, 11),
            (64, 17, 17, 17),
            (3, 130, 128, 128),
        ] {
            let shape = Shape { batch, m, n, k };
            let problem = Rc::new(Matmul::of(shape));
            let threads = Threads::up_to(3);
            let plans = of_shape(shape, 3);
            assert!(plans.len() > 1, "{shape:?}");
            for plan in plans {
                let mut c = vec![f32::NAN; shape.c_len()];
                plan.multiply_each(&threads, shape, problem.a(), problem.b(), &mut c);
                let verified = problem.verified(problem.error_of_rows(0, &c));
                assert!(verified.passed(), "{plan} of {shape:?}: {verified:?}");
            }
        }
    }
}
