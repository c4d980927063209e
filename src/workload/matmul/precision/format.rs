//! Number formats: their errors and their names in cuBLAS.

use cudarc::cublas::sys::{cublasComputeType_t, cudaDataType_t};

use crate::device::{Absence, Gpu};
use crate::model::role;
use crate::workload::matmul::precision::problem::accumulation_bound;

/// A number format that operands are rounded to before they are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TF32, 10 bits of fraction; sums in f32.
    Tf32,
    /// FP16, 10 bits of fraction; sums in f32.
    Fp16,
    /// BF16, 7 bits of fraction; sums in f32.
    Bf16,
    /// FP8 (e4m3: 4 bits of exponent, 3 of fraction) of operands scaled by 256; sums in f32,
    /// not with the library's fast accumulation. The scale leaves through the factor of the
    /// product.
    Fp8,
}

impl From<Format> for role::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Tf32 => role::Format::Tf32,
            Format::Fp16 => role::Format::Fp16,
            Format::Bf16 => role::Format::Bf16,
            Format::Fp8 => role::Format::Fp8,
        }
    }
}

/// The factor of FP8 operands, as in `kernels/precision.cu`.
pub(super) const FP8_SCALE: f32 = 256.0;

/// The properties of a format.
pub(crate) struct Properties {
    /// Half the distance of neighbouring numbers, relative to the number.
    unit_roundoff: f64,
    /// Oldest compute capability whose tensor cores take the format, and what an older device lacks.
    oldest: (u32, u32),
    tensor_cores: &'static str,
    /// The kernel that converts f32 to it.
    pub(crate) kernel: &'static str,
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// The numbers of rows and columns must be multiples of this for cuBLAS to take the product.
    pub(crate) multiple: usize,
    /// The library's name of the operands' type.
    pub(crate) data_type: cudaDataType_t,
}

impl Format {
    #[rustfmt::skip]
    pub(crate) fn facts(self) -> Properties {
        use cudaDataType_t::*;
        let (unit_roundoff, oldest, tensor_cores, kernel, bytes, multiple, data_type) = match self {
            Format::Tf32 => (1.0 / 2048.0, (8, 0), "TF32 tensor cores", "to_tf32", 4, 1, CUDA_R_32F),
            Format::Fp16 => (1.0 / 2048.0, (7, 5), "FP16 tensor cores", "to_f16", 2, 1, CUDA_R_16F),
            Format::Bf16 => (1.0 / 256.0, (8, 0), "BF16 tensor cores", "to_bf16", 2, 1, CUDA_R_16BF),
            Format::Fp8 => (1.0 / 16.0, (8, 9), "FP8 tensor cores", "to_e4m3", 1, 16, CUDA_R_8F_E4M3),
        };
        Properties { unit_roundoff, oldest, tensor_cores, kernel, bytes, multiple, data_type }
    }

    /// The largest error that is accepted of a product of order `n`, relative to the root mean
    /// square of C.
    ///
    /// Rounding both operands, uniform in [-1, 1), to a floating format of unit roundoff u
    /// gives each element an error that is nearly normal with a standard deviation of
    /// 0.54 u: sqrt(2) times that of one operand, 0.22 u, relative to its root mean square,
    /// 0.58. The largest of a hundred million lies at 5.8 deviations: 3.1 u, bound 4 u.
    pub(super) fn bound(self, n: usize) -> f64 {
        4.0 * self.facts().unit_roundoff + accumulation_bound(n, n)
    }

    /// Requires a device whose tensor cores take the format.
    pub(super) fn require(self, gpu: &Gpu) -> Result<(), Absence> {
        gpu.require(self.facts().oldest, self.facts().tensor_cores)
    }

    /// Whether B is stored by columns: the library's 8-bit kernels sum along rows of both operands.
    pub(crate) fn transposes_b(self) -> bool {
        self.facts().bytes == 1
    }

    /// How the library is to compute.
    pub(crate) fn compute_type(self) -> cublasComputeType_t {
        match self {
            Format::Tf32 => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::matmul::blocks::Library;
    use crate::workload::matmul::method::Method;
    use crate::workload::matmul::precision::problem::PRECISION;
    use crate::workload::matmul::problem::Matmul;
    use crate::workload::matmul::shape::Shape;
    use crate::workload::prepare::Threads;

    /// To nearest, ties to even, `bits` bits of fraction (no operand is subnormal enough to
    /// matter).
    fn round_to(value: f32, bits: u32) -> f32 {
        let drop = 23 - bits;
        let u = value.to_bits();
        let half = (1 << (drop - 1)) - 1 + (u >> drop & 1);
        f32::from_bits((u + half) >> drop << drop)
    }

    fn rounded(format: Format, value: f32) -> f32 {
        match format {
            Format::Tf32 | Format::Fp16 => round_to(value, 10),
            Format::Bf16 => round_to(value, 7),
            Format::Fp8 => round_to(value, 3),
        }
    }

    /// The error of a product of rounded operands.
    fn error(problem: &Matmul, format: Format) -> f64 {
        let round = |m: &[f32]| -> Vec<f32> { m.iter().map(|&v| rounded(format, v)).collect() };
        let mut c = vec![f32::NAN; problem.shape().c_len()];
        let (a, b) = (round(problem.a()), round(problem.b()));
        let (shape, method) = (problem.shape(), Method::OneThread(Library::Gemm));
        method.multiply(&Threads::One, shape, shape, &a, &b, &mut c);
        problem.error_of_rows(0, &c)
    }

    #[test]
    fn each_bound_accepts_its_own_rounding_and_rejects_the_next_coarser() {
        for n in [256, 512, 1024] {
            let problem = Matmul::of(Shape::square(n));
            for (format, coarser) in [
                (Format::Tf32, Some(Format::Bf16)),
                (Format::Fp16, Some(Format::Bf16)),
                (Format::Bf16, Some(Format::Fp8)),
                (Format::Fp8, None),
            ] {
                let (error, bound) = (error(&problem, format), format.bound(n));
                assert!(error <= bound, "{format:?} at {n}: {error} over {bound}");
                assert!(error > bound / 4.0, "{format:?} at {n}: {error} of {bound}");
                if let Some(coarser) = coarser {
                    let wrong = super::tests::error(&problem, coarser);
                    assert!(
                        wrong > bound,
                        "{coarser:?} passes as {format:?} at {n}: {wrong}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_scale_is_that_of_the_source() {
        assert!(PRECISION.text.contains(&format!("v * {FP8_SCALE:.1}f")));
    }
}
