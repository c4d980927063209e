//! The memory of the group, its cost, and the error that tensor cores may add.

use crate::device::kernel::Source;
use crate::model::Cost;
use crate::workload::matmul::family::Family;
use crate::workload::matmul::problem::{self, UNIT_ROUNDOFF};
use crate::workload::matmul::shape::Shape;
use crate::workload::prepare::{CUBLAS_WORKSPACE, kernels};

/// The kernels of this module.
pub static PRECISION: Source = kernels!("precision.cu");

/// Square products whose operands are converted from f32 to other formats.
pub struct Precision;

impl Family for Precision {
    fn shape(n: u64) -> Shape {
        Shape::square(n as usize)
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&PRECISION] }
    }

    fn host_bytes(n: u64) -> u64 {
        problem::host_bytes(n)
    }

    fn device_bytes(n: u64) -> u64 {
        // A, B and C in f32, and at most three bf16 parts of A and of B.
        24 * n * n + 2 * CUBLAS_WORKSPACE
    }
}

/// As [`matmul::cost`](crate::workload::matmul::cost), with operands of 2 bytes per element and a
/// result of 4.
pub fn cost_half(n: u64) -> Cost {
    with_bytes(n, 8.0)
}

/// As [`cost_half`], with operands of 1 byte per element.
pub fn cost_quarter(n: u64) -> Cost {
    with_bytes(n, 6.0)
}

/// `per_element` bytes for one element of A, one of B and one of C together.
fn with_bytes(n: u64, per_element: f64) -> Cost {
    let n2 = (n as f64).powi(2);
    problem::cost(n).bytes(per_element * n2)
}

/// The largest error that adding `k` terms may cause where runs of `in_tensor_core` of them are
/// added in a tensor core, relative to the root mean square of the sums.
///
/// Rounding to nearest gives 8 u sqrt(k) as in
/// [`Matmul::verified`](crate::workload::matmul::Matmul::verified), u = 2^-24. A tensor core adds
/// blocks of 8 terms or more and cuts off what does not fit instead of rounding it, up to 2 u each
/// time and always towards zero, so that these errors add up: 2 u `in_tensor_core` / 8. (M. Fasi,
/// N. J. Higham, M. Mikaitis and S. Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ
/// Computer Science 7:e330, 2021.)
pub(super) fn accumulation_bound(k: usize, in_tensor_core: usize) -> f64 {
    problem::bound(k) + 0.25 * UNIT_ROUNDOFF * in_tensor_core as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures of an H200 at order 8192: three TF32 products 2.3e-5, SGEMM 1.8e-6.
    #[test]
    fn the_bound_holds_for_what_was_measured() {
        let whole = accumulation_bound(8192, 8192);
        assert!(2.3e-5 < whole && whole < 10.0 * 2.3e-5, "{whole}");
    }
}
