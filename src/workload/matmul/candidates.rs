//! The methods that `cpu/best` chooses from.

use crate::workload::matmul::blocks::{Grid, Library};
use crate::workload::matmul::method::Method;
use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::calibrate;
use crate::workload::prepare::threads::Threads;

/// Larger products are calibrated on a corner of this order: by then the methods have
/// settled, and the calibration takes a second or two where the product takes minutes.
const LARGEST_ORDER: usize = 2048;

/// The fastest method for `problem` on all or some of these threads.
pub(super) fn fastest(problem: &Matmul, threads: &Threads) -> Method {
    let order = problem.order();
    let count = threads.count();
    let choice = format!("product of order {order} on the CPU, {count} threads at most");
    let n = order.min(LARGEST_ORDER);
    // Allocated only where something is measured.
    let mut output = Vec::new();
    calibrate::fastest(
        threads,
        &choice,
        &candidates(order, count),
        |method, times| {
            output.resize(problem.shape.c_len(), f32::NAN);
            let mut multiply =
                || method.multiply(threads, n, order, &problem.a, &problem.b, &mut output);
            (0..times).for_each(|_| multiply());
        },
    )
}

/// Blocks per thread in the grids that keep all threads busy. One block is the least work in all;
/// with several, the others take over blocks of a thread that the system holds up, which on a
/// shared host is worth more.
const BLOCKS_PER_THREAD: [usize; 3] = [1, 4, 8];

/// The methods to try at order `n` on up to `threads` threads. One thread is left out for large
/// products, and several for products that take less time than handing work over.
pub(super) fn candidates(n: usize, threads: usize) -> Vec<Method> {
    let libraries = Library::for_product(n * n, true);
    let mut methods = Vec::new();
    if n <= 32 {
        methods.push(Method::Naive);
    }
    if n < 1024 || threads == 1 {
        methods.extend(libraries.iter().copied().map(Method::OneThread));
    }
    if n >= 32 && threads > 1 {
        methods.push(Method::row_blocks(threads));
        // Also fewer threads: hyper-threads and a second socket can slow a product down, and a small
        // one has work for a few threads only.
        let fewer = std::iter::successors(Some(threads / 2), |&fewer| Some(fewer / 2));
        let all = BLOCKS_PER_THREAD.map(|blocks| blocks * threads);
        for blocks in all.into_iter().chain(fewer.take_while(|&fewer| fewer > 1)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_by_order_and_threads() {
        let over = |blocks| Method::Blocks(Library::Gemm, Grid::of(blocks));
        let several = |m: &Method| matches!(m, Method::Blocks(..));
        let unpacked = |m: &Method| matches!(m, Method::OneThread(l) | Method::Blocks(l, _) if *l == Library::Direct);
        assert!(candidates(4, 16).contains(&Method::Naive));
        assert!(!candidates(4, 16).iter().any(several));
        assert!(!candidates(2048, 16).contains(&Method::OneThread(Library::Gemm)));
        for blocks in [128, 64, 16, 8, 4, 2] {
            assert!(candidates(2048, 16).contains(&over(blocks)), "{blocks}");
        }
        assert!(candidates(64, 16).contains(&over(16)) && !candidates(64, 16).contains(&over(64)));
        assert_eq!(
            candidates(2048, 1),
            [Library::Gemm, Library::Matrixmultiply].map(Method::OneThread)
        );
        assert!(!candidates(2048, 16).iter().any(unpacked));
        if cfg!(target_arch = "x86_64") && Library::for_product(1, true).contains(&Library::Direct)
        {
            assert!(candidates(64, 16).iter().any(unpacked));
        }
    }
}
