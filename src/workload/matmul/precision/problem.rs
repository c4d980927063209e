//! The memory of the group, its cost, and the error that tensor cores may add.

use crate::device::kernel::Source;
use crate::model::{Cost, Format};
use crate::workload::matmul::family::Family;
use crate::workload::matmul::problem::{self, UNIT_ROUNDOFF};
use crate::workload::prepare::kernels;
use crate::workload::product::{CUBLAS_WORKSPACE, Shape, properties};

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

/// As [`matmul::cost`](crate::workload::matmul::cost), with operands in this format and a result in f32.
pub fn cost(n: u64, format: Format) -> Cost {
    let bytes = 2 * properties(format).bytes + 4;
    problem::cost(n).bytes(bytes as f64 * (n as f64).powi(2))
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

/// The largest error that is accepted of a product of order `n` of operands in a format, relative to the
/// root mean square of C.
///
/// Rounding both operands, uniform in [-1, 1), to a floating format of unit roundoff u gives each element
/// an error that is nearly normal with a standard deviation of 0.54 u: sqrt(2) times that of one operand,
/// 0.22 u, relative to its root mean square, 0.58. The largest of a hundred million lies at 5.8
/// deviations: 3.1 u, bound 4 u.
pub(super) fn bound(format: Format, n: usize) -> f64 {
    4.0 * properties(format).unit_roundoff + accumulation_bound(n, n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::matmul::Matmul;
    use crate::workload::network::tensor::rounded::to_nearest;
    use crate::workload::prepare::Threads;
    use crate::workload::product::{CpuPlan, FP8_SCALE, Library};

    /// Figures of an H200 at order 8192: three TF32 products 2.3e-5, SGEMM 1.8e-6.
    #[test]
    fn the_bound_holds_for_what_was_measured() {
        let whole = accumulation_bound(8192, 8192);
        assert!(2.3e-5 < whole && whole < 10.0 * 2.3e-5, "{whole}");
    }

    /// The error of a product of operands with this number of bits of fraction: no operand is subnormal enough to
    /// matter.
    fn error(problem: &Matmul, bits: u32) -> f64 {
        let round = |m: &[f32]| -> Vec<f32> { m.iter().map(|&v| to_nearest(v, bits)).collect() };
        let mut c = vec![f32::NAN; problem.shape().c_len()];
        let (a, b) = (round(problem.a()), round(problem.b()));
        let plan = CpuPlan::OneThread(Library::Gemm);
        plan.multiply_each(&Threads::One, problem.shape(), &a, &b, &mut c);
        problem.error_of_rows(0, &c)
    }

    #[test]
    fn each_bound_accepts_its_own_rounding_and_rejects_the_next_coarser() {
        for n in [256, 1024] {
            let problem = Matmul::of(Shape::square(n));
            let [ten, seven, three] = [10, 7, 3].map(|bits| error(&problem, bits));
            for (format, own, coarser) in [
                (Format::Tf32, ten, seven),
                (Format::Fp16, ten, seven),
                (Format::Bf16, seven, three),
                (Format::Fp8, three, f64::INFINITY),
            ] {
                let bound = bound(format, n);
                let is_near = own <= bound && own > bound / 4.0;
                assert!(is_near, "{format:?} at {n}: {own} of {bound}");
                assert!(coarser > bound, "{format:?} at {n}: {coarser} passes");
            }
        }
    }

    #[test]
    fn the_scale_is_that_of_the_source() {
        assert!(PRECISION.text.contains(&format!("v * {FP8_SCALE:.1}f")));
    }
}
