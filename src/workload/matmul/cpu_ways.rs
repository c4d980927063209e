//! The ways to compute a product of any shape, or a batch of them, on the CPU, and the choice among
//! them.

use std::fmt;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::workload::matmul::blocks::{Grid, Library};
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::rectangular::views;
use crate::workload::matmul::shape::Shape;
use crate::workload::prepare::calibrate;
use crate::workload::prepare::threads::Threads;

/// How the products of a batch are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The batch in this many parts, each on one thread. One part is a loop over all products.
    Parts(Library, usize),
    /// One product after the other, each over blocks of C.
    Blocks(Library, Grid),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Parts(library, 1) => write!(f, "{library}, one product after the other"),
            Way::Parts(library, parts) => write!(f, "{library} over {parts} parts of the batch"),
            Way::Blocks(library, grid) => write!(f, "{library} over {grid} blocks of C"),
        }
    }
}

impl Way {
    /// How many of `threads` threads have work.
    pub(super) fn threads(self, shape: Shape, threads: usize) -> usize {
        match self {
            Way::Parts(_, parts) => parts.min(shape.batch).min(threads),
            Way::Blocks(_, grid) => grid.blocks().min(threads),
        }
    }

    /// C = A B of each product of the batch.
    pub(super) fn multiply(
        self,
        threads: &Threads,
        shape: Shape,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
    ) {
        let Shape { batch, m, n, k } = shape;
        match self {
            Way::Parts(library, parts) => {
                let part = batch.div_ceil(parts);
                let parts = (c.chunks_mut(part * m * n))
                    .zip(a.chunks(part * m * k).zip(b.chunks(part * k * n)));
                threads.each(parts.collect(), |(c, (a, b))| {
                    for (a, b, c) in products(shape, a, b, c) {
                        library.multiply(a, b, c);
                    }
                });
            }
            Way::Blocks(library, grid) => {
                for (a, b, c) in products(shape, a, b, c) {
                    grid.multiply(library, threads, a, b, c);
                }
            }
        }
    }
}

/// A, B and C of each product of the batch.
fn products<'a, 'c>(
    shape: Shape,
    a: &'a [f32],
    b: &'a [f32],
    c: &'c mut [f32],
) -> impl Iterator<
    Item = (
        ArrayView2<'a, f32>,
        ArrayView2<'a, f32>,
        ArrayViewMut2<'c, f32>,
    ),
> {
    let Shape { m, n, k, .. } = shape;
    (c.chunks_exact_mut(m * n))
        .zip(a.chunks_exact(m * k).zip(b.chunks_exact(k * n)))
        .map(move |(c, (a, b))| views(shape, a, b, c))
}

/// The fastest way for `problem` on all or some of these threads.
pub(super) fn fastest(problem: &Matmul, threads: &Threads) -> Way {
    let (shape, count) = (problem.shape, threads.count());
    let Shape { batch, m, n, k } = shape;
    let choice = format!("{batch} products of {m} x {n} x {k} on the CPU, {count} threads at most");
    let mut output = Vec::new();
    calibrate::fastest(threads, &choice, &candidates(shape, count), |way, times| {
        output.resize(shape.c_len(), f32::NAN);
        let mut multiply = || way.multiply(threads, shape, &problem.a, &problem.b, &mut output);
        (0..times).for_each(|_| multiply());
    })
}

/// From this many multiply-adds on one thread is not tried: the calibration would take seconds.
const LONG: usize = 1 << 32;

/// Parts, or blocks, per thread. With several, the others take over those of a thread that the
/// system holds up.
const PER_THREAD: [usize; 3] = [1, 4, 8];

fn candidates(shape: Shape, threads: usize) -> Vec<Way> {
    let Shape { batch, m, n, k } = shape;
    let libraries = Library::for_product(m * k, true);
    let mut ways = Vec::new();
    if threads == 1 || shape.multiply_adds() < LONG {
        ways.extend(libraries.iter().map(|&library| Way::Parts(library, 1)));
    }
    if threads > 1 {
        for count in PER_THREAD.map(|each| each * threads) {
            for &library in &libraries {
                if count <= batch || count == threads && batch > 1 {
                    ways.push(Way::Parts(library, count));
                }
                let columns = Grid {
                    rows: 1,
                    columns: count,
                };
                // In small products of a batch the threads would wait for each other too often.
                let shares = batch == 1 || m * n * k >= 1 << 21;
                for grid in [Grid::for_shape(m, n, count), Some(columns)] {
                    let grid =
                        grid.filter(|g| shares && g.rows <= m && g.columns <= n.div_ceil(16));
                    let way = grid.map(|grid| Way::Blocks(library, grid));
                    ways.extend(way.filter(|way| !ways.contains(way)));
                }
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

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
            let ways = candidates(shape, 3);
            assert!(ways.len() > 1, "{shape:?}");
            for way in ways {
                let mut c = vec![f32::NAN; shape.c_len()];
                way.multiply(&threads, shape, problem.a(), problem.b(), &mut c);
                let verified = problem.verified(problem.error_of_rows(0, &c));
                assert!(verified.passed(), "{way} of {shape:?}: {verified:?}");
            }
        }
    }

    #[test]
    fn a_loop_is_always_worth_a_try_where_it_is_short() {
        let shape = |batch, n| Shape {
            batch,
            ..Shape::square(n)
        };
        for threads in [1, 2, 16] {
            let ways = candidates(shape(64, 8), threads);
            assert!(ways.contains(&Way::Parts(Library::Gemm, 1)));
            assert!(!ways.iter().any(|way| matches!(way, Way::Blocks(..))));
        }
        let long = candidates(shape(64, 1024), 16);
        assert!(!long.contains(&Way::Parts(Library::Gemm, 1)));
        assert!(long.iter().any(|way| matches!(way, Way::Blocks(..))));
    }
}
