//! What `cpu/best` chooses from.

use super::Matmul;
use super::cpu::Method;
use crate::workload::calibrate;

/// Larger products are calibrated on a corner of this order: by then the methods have
/// settled, and the calibration takes a second or two where the product takes minutes.
const LARGEST_ORDER: usize = 2048;

/// The fastest of `methods` for `problem`; `output` is overwritten.
pub(super) fn fastest(methods: &[Method], problem: &Matmul, output: &mut [f32]) -> Method {
    let n = problem.order().min(LARGEST_ORDER);
    calibrate::fastest(methods, |method, times| {
        for _ in 0..times {
            method.multiply(n, problem.order(), &problem.a, &problem.b, output);
        }
    })
}

/// What is worth a try at order `n` on at most `threads` threads. One thread is left out
/// where several share the work of a large product, and several where waking them costs more
/// than the product.
pub(super) fn candidates(n: usize, threads: usize) -> Vec<Method> {
    let mut methods = Vec::new();
    if n <= 32 {
        methods.push(Method::Naive);
    }
    if n < 1024 || threads == 1 {
        methods.extend([Method::Ndarray, Method::Gemm { threads: 1 }]);
    }
    if n >= 32 && threads > 1 {
        methods.push(Method::RowBlocks);
        // All, half, a quarter: hyper-threads and a second socket can do harm.
        let mut split = threads;
        while split > 1 {
            methods.push(Method::Gemm { threads: split });
            split /= 2;
        }
    }
    methods
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_by_order_and_threads() {
        assert!(candidates(4, 16).contains(&Method::Naive));
        assert!(!candidates(4, 16).contains(&Method::RowBlocks));
        assert!(!candidates(2048, 16).contains(&Method::Ndarray));
        let splits = [16, 8, 4, 2].map(|threads| Method::Gemm { threads });
        assert!(splits.iter().all(|m| candidates(2048, 16).contains(m)));
        assert_eq!(
            candidates(2048, 1),
            [Method::Ndarray, Method::Gemm { threads: 1 }]
        );
    }
}
