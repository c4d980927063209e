//! How the CPU computes products, and the choice among the methods.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2, ShapeBuilder};

use crate::workload::matmul::blocks::{FOR_MANY_THREADS, Grid, Library, PER_THREAD, fewer_threads};
use crate::workload::matmul::element::Element;
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::shape::Shape;
use crate::workload::number::in_format;
use crate::workload::prepare::{Threads, choose};

/// How a product, or each of a batch, is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Of square matrices.
    Naive,
    OneThread(Library),
    /// The batch in this many parts, each on one thread. One part is a loop over all products.
    Parts(Library, usize),
    /// One product after the other, each over blocks of C.
    Blocks(Library, Grid),
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Method::Naive => write!(f, "three nested loops"),
            Method::OneThread(library) => write!(f, "{library}"),
            Method::Parts(library, 1) => write!(f, "{library}, one product after the other"),
            Method::Parts(library, parts) => write!(f, "{library} over {parts} parts of the batch"),
            Method::Blocks(library, grid) => write!(f, "{library} over {grid} blocks of C"),
        }
    }
}

impl Method {
    /// How many of `threads` threads have work.
    pub(super) fn threads(self, shape: Shape, threads: usize) -> usize {
        match self {
            Method::Naive | Method::OneThread(_) => 1,
            Method::Parts(_, parts) => parts.min(shape.batch).min(threads),
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

    /// C = A B of each product of the batch. Computes only the leading corners, of the sizes of `part`,
    /// of row-major matrices of the sizes of `whole`. The threads share the work.
    pub(super) fn multiply<T: Element>(
        self,
        threads: &Threads,
        part: Shape,
        whole: Shape,
        a: &[T],
        b: &[T],
        c: &mut [T],
    ) {
        match self {
            Method::Naive => loops(part.n, whole.n, a, b, c),
            Method::OneThread(library) => {
                for (a, b, c) in products(part, whole, a, b, c) {
                    library.multiply(a, b, c);
                }
            }
            Method::Parts(library, parts) => {
                let Shape { batch, m, n, k } = whole;
                let each = batch.div_ceil(parts);
                let parts = (c.chunks_mut(each * m * n))
                    .zip(a.chunks(each * m * k).zip(b.chunks(each * k * n)));
                threads.each(parts.collect(), |(c, (a, b))| {
                    for (a, b, c) in products(part, whole, a, b, c) {
                        library.multiply(a, b, c);
                    }
                });
            }
            Method::Blocks(library, grid) => {
                for (a, b, c) in products(part, whole, a, b, c) {
                    grid.multiply(library, threads, a, b, c);
                }
            }
        }
    }
}

/// As a beginner writes it.
#[inline]
pub(super) fn loops<T: Element>(n: usize, stride: usize, a: &[T], b: &[T], c: &mut [T]) {
    let len = (n - 1) * stride + n;
    assert!(n <= stride && a.len() >= len && b.len() >= len && c.len() >= len);
    for i in 0..n {
        for j in 0..n {
            let mut sum = T::zero();
            for k in 0..n {
                sum = sum + a[i * stride + k] * b[k * stride + j];
            }
            c[i * stride + j] = sum;
        }
    }
}

/// The corners of A, B and C of each product of the batch.
///
/// # Panics
/// Where a part is larger than the whole.
#[inline]
pub(super) fn products<'a, 'c, T>(
    part: Shape,
    whole: Shape,
    a: &'a [T],
    b: &'a [T],
    c: &'c mut [T],
) -> impl Iterator<Item = (ArrayView2<'a, T>, ArrayView2<'a, T>, ArrayViewMut2<'c, T>)> {
    let Shape { m, n, k, .. } = whole;
    assert!(m * n > 0 && part.m <= m && part.n <= n && part.k <= k);
    let (mut a, mut b, mut c) = (a, b, c);
    // `chunks` would divide three times, and views of slices would check lengths again. Both are
    // visible in the time of the smallest products.
    std::iter::from_fn(move || {
        let c = c.split_off_mut(..m * n)?;
        let (a, b) = (a.split_off(..m * k)?, b.split_off(..k * n)?);
        // SAFETY: each slice has as many elements as the whole matrix, and the part is a corner of it.
        Some(unsafe {
            (
                ArrayView2::from_shape_ptr((part.m, part.k).strides((k, 1)), a.as_ptr()),
                ArrayView2::from_shape_ptr((part.k, part.n).strides((n, 1)), b.as_ptr()),
                ArrayViewMut2::from_shape_ptr((part.m, part.n).strides((n, 1)), c.as_mut_ptr()),
            )
        })
    })
}

/// Larger products are calibrated on a corner of this order: by then the methods have
/// settled, and the calibration takes a second or two where the product takes minutes.
const LARGEST_ORDER: usize = 2048;

/// The fastest method for a square product on all or some of these threads.
pub(super) fn fastest_of_order<T: Element>(problem: &Matmul<T>, threads: &Threads) -> Method {
    let (order, count) = (problem.order(), threads.count());
    let choice = format!(
        "product of order {order}{} on the CPU, {count} threads at most",
        in_format::<T>()
    );
    let part = Shape::square(order.min(LARGEST_ORDER));
    let candidates = of_order::<T>(order, count);
    fastest(
        problem,
        threads,
        &choice,
        (part, problem.shape),
        &candidates,
    )
}

/// The fastest method for a product of any shape, or a batch of them.
pub(super) fn fastest_of_shape(problem: &Matmul, threads: &Threads) -> Method {
    let (shape, count) = (problem.shape, threads.count());
    let Shape { batch, m, n, k } = shape;
    let choice = format!("{batch} products of {m} x {n} x {k} on the CPU, {count} threads at most");
    let tried = Shape {
        batch: tried_of_a_batch(shape, count),
        ..shape
    };
    let candidates = of_shape(shape, count);
    fastest(problem, threads, &choice, (tried, tried), &candidates)
}

/// Products of a batch that the methods are tried on. A long batch is cut to the number of parts of its
/// finest division, so that each thread has the same share of the work as in the whole batch.
fn tried_of_a_batch(shape: Shape, threads: usize) -> usize {
    match shape.multiply_adds() < LONG {
        true => shape.batch,
        false => shape
            .batch
            .min(PER_THREAD.into_iter().max().unwrap_or(1) * threads),
    }
}

fn fastest<T: Element>(
    problem: &Matmul<T>,
    threads: &Threads,
    choice: &str,
    (part, whole): (Shape, Shape),
    candidates: &[Method],
) -> Method {
    // Allocated only where something is measured.
    let mut c = Vec::new();
    choose::on_cpu(threads, choice, candidates, |method, times| {
        c.resize(whole.c_len(), T::NAN);
        for _ in 0..times {
            method.multiply(threads, part, whole, &problem.a, &problem.b, &mut c);
        }
    })
}

/// The methods to try at order `n` on up to `threads` threads. Large products are not tried on few
/// threads, nor products on several threads that take less time than handing work over.
pub(super) fn of_order<T: Element>(n: usize, threads: usize) -> Vec<Method> {
    let libraries = Library::for_product::<T>(n * n, true);
    let multiply_adds = n.pow(3);
    let mut methods = Vec::new();
    if n <= 32 {
        methods.push(Method::Naive);
    }
    if threads == 1 || multiply_adds < FOR_MANY_THREADS {
        methods.extend(libraries.iter().copied().map(Method::OneThread));
    }
    if n >= 32 && threads > 1 {
        methods.push(Method::row_blocks(threads));
        let all = PER_THREAD.map(|blocks| blocks * threads);
        for blocks in all.into_iter().chain(fewer_threads(threads, multiply_adds)) {
            // Rows of a block of all columns lie in one piece.
            let bands = Grid {
                rows: blocks,
                columns: 1,
            };
            for &library in &libraries {
                match library {
                    Library::Matrixmultiply if blocks < threads => {}
                    Library::Direct => {
                        methods.push(Method::Blocks(library, Grid::of(blocks)));
                        methods.push(Method::Blocks(library, bands));
                    }
                    _ => methods.push(Method::Blocks(library, Grid::of(blocks))),
                }
            }
        }
    }
    methods.retain(|method| !matches!(method, Method::Blocks(_, grid) if !grid.fits(n)));
    methods
}

/// From this many multiply-adds on, only a part of a batch is tried, because the calibration would take
/// seconds.
const LONG: usize = 1 << 32;

/// The methods to try at a shape.
fn of_shape(shape: Shape, threads: usize) -> Vec<Method> {
    let Shape { batch, m, n, k } = shape;
    let libraries = Library::for_product::<f32>(m * k, true);
    let mut methods = Vec::new();
    if threads == 1 || shape.multiply_adds() < FOR_MANY_THREADS {
        methods.extend(libraries.iter().map(|&library| Method::Parts(library, 1)));
    }
    if threads == 1 {
        return methods;
    }
    for count in PER_THREAD.map(|each| each * threads) {
        for &library in &libraries {
            if count <= batch || count == threads && batch > 1 {
                methods.push(Method::Parts(library, count));
            }
            let columns = Grid {
                rows: 1,
                columns: count,
            };
            // In small products of a batch the threads would wait for each other too often.
            let shares = batch == 1 || m * n * k >= 1 << 21;
            for grid in [Grid::for_shape(m, n, count), Some(columns)] {
                let grid = grid.filter(|g| shares && g.rows <= m && g.columns <= n.div_ceil(16));
                let method = grid.map(|grid| Method::Blocks(library, grid));
                methods.extend(method.filter(|method| !methods.contains(method)));
            }
        }
    }
    methods
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn of_order(n: usize, threads: usize) -> Vec<Method> {
        super::of_order::<f32>(n, threads)
    }

    #[test]
    fn candidates_by_order_and_threads() {
        let over = |blocks| Method::Blocks(Library::Gemm, Grid::of(blocks));
        let several = |m: &Method| matches!(m, Method::Blocks(..));
        let unpacked = |m: &Method| matches!(m, Method::OneThread(l) | Method::Blocks(l, _) if *l == Library::Direct);
        assert!(of_order(4, 16).contains(&Method::Naive));
        assert!(!of_order(4, 16).iter().any(several));
        assert!(!of_order(2048, 16).contains(&Method::OneThread(Library::Gemm)));
        for blocks in [128, 64, 16, 8, 4] {
            assert!(of_order(2048, 16).contains(&over(blocks)), "{blocks}");
        }
        assert!(of_order(256, 16).contains(&over(2)) && !of_order(2048, 16).contains(&over(2)));
        assert!(of_order(64, 16).contains(&over(16)) && !of_order(64, 16).contains(&over(64)));
        assert_eq!(
            of_order(2048, 1),
            [Library::Gemm, Library::Matrixmultiply].map(Method::OneThread)
        );
        assert!(!of_order(2048, 16).iter().any(unpacked));
        if cfg!(target_arch = "x86_64")
            && Library::for_product::<f32>(1, true).contains(&Library::Direct)
        {
            assert!(of_order(64, 16).iter().any(unpacked));
        }
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
            let ways = of_shape(shape, 3);
            assert!(ways.len() > 1, "{shape:?}");
            for way in ways {
                let mut c = vec![f32::NAN; shape.c_len()];
                way.multiply(&threads, shape, shape, problem.a(), problem.b(), &mut c);
                let verified = problem.verified(problem.error_of_rows(0, &c));
                assert!(verified.passed(), "{way} of {shape:?}: {verified:?}");
            }
        }
    }
}
