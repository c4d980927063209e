//! One call of cuBLAS, with everything fixed beforehand.

use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublas::result::{dgemm, gemm_ex, sgemm, sgemm_strided_batched};
use cudarc::cublas::sys::{
    cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    cublasGemmAlgo_t::CUBLAS_GEMM_DFALT,
    cublasOperation_t::{self, CUBLAS_OP_N, CUBLAS_OP_T},
    cudaDataType_t::{CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F},
};
use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::device::gpu::cublas_error;
use crate::model::Format;
use crate::timing::CudaError;
use crate::workload::product::shape::{Product, Shape};
use crate::workload::routine::RoutineError;

/// A prepared call: running it costs no more than the library's own call.
pub(crate) struct CublasCall {
    blas: Rc<CudaBlas>,
    format: Format,
    operations: [cublasOperation_t; 2],
    /// Rows and columns of C, terms of a sum, products.
    sizes: [i32; 4],
    addresses: [CUdeviceptr; 3],
    pitches: [i32; 3],
    /// The factor of C before the product is added to it.
    beta: f32,
}

impl CublasCall {
    /// The product, in the function of its format: SGEMM in true f32 (not TF32), which alone takes
    /// several products; DGEMM, which takes tensor cores where they compute in float64; for other
    /// operands `cublasGemmEx` with sums in f32.
    ///
    /// # Errors
    /// A product that is more than these functions compute, lengths that do not fit, no cuBLAS.
    pub(crate) fn new(gpu: &Gpu, product: &Product) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let Product { a, b, c, added, .. } = *product;
        let Shape { batch, m, n, k } = product.shape()?;
        let plain = product.factor == 1.0 && product.bias.is_none() && !product.relu;
        let accumulates = added.is_none_or(|added| added == c.address);
        if !plain || !accumulates || batch > 1 && a.format != Format::F32 || a.format == Format::Fp8
        {
            return Err(format!("{} is more than cuBLAS computes", product.name).into());
        }
        let size = |value: usize| i32::try_from(value);
        let operation = |transposed| if transposed { CUBLAS_OP_T } else { CUBLAS_OP_N };
        Ok(Self {
            blas: gpu.blas()?,
            format: a.format,
            operations: [operation(a.transposed), operation(b.transposed)],
            sizes: [size(m)?, size(n)?, size(k)?, size(batch)?],
            addresses: [a.address, b.address, c.address],
            pitches: [size(a.pitch)?, size(b.pitch)?, size(c.pitch)?],
            beta: if added.is_some() { 1.0 } else { 0.0 },
        })
    }

    /// Enqueues the product on the GPU's stream.
    ///
    /// # Safety
    /// The three addresses must be device memory of matrices of these sizes and pitches and of the
    /// format's types until the product has run, and C must not overlap A or B.
    pub(crate) unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let (blas, [m, n, k, batch]) = (*self.blas.handle(), self.sizes);
        let ([a, b, c], [of_a, of_b]) = (self.addresses, self.operations);
        let [lda, ldb, ldc] = self.pitches;
        let (one, beta) = (&1f32, &self.beta);
        // cuBLAS counts by columns, where a row-major matrix is its transpose:
        // C = A B by rows is C^T = B^T A^T by columns.
        // SAFETY: the caller vouches for the addresses; the handle lives in `blas`, and
        // scalars are read before the call returns (host pointer mode, the default).
        unsafe {
            match self.format {
                Format::F32 if batch == 1 => sgemm(
                    blas, of_b, of_a, n, m, k, one, b as _, ldb, a as _, lda, beta, c as _, ldc,
                ),
                Format::F32 => {
                    let [sa, sb, sc] =
                        [(m, k), (k, n), (m, n)].map(|(x, y)| i64::from(x) * i64::from(y));
                    sgemm_strided_batched(
                        blas, of_b, of_a, n, m, k, one, b as _, ldb, sb, a as _, lda, sa, beta,
                        c as _, ldc, sc, batch,
                    )
                }
                Format::F64 => {
                    let (one, beta) = (&1f64, &f64::from(self.beta));
                    dgemm(
                        blas, of_b, of_a, n, m, k, one, b as _, ldb, a as _, lda, beta, c as _, ldc,
                    )
                }
                format => {
                    let (one, beta) = ((&raw const *one).cast(), (&raw const *beta).cast());
                    let (of, by) = match format {
                        Format::Fp16 => (CUDA_R_16F, CUBLAS_COMPUTE_32F),
                        Format::Bf16 => (CUDA_R_16BF, CUBLAS_COMPUTE_32F),
                        _ => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
                    };
                    let (to, algo) = (CUDA_R_32F, CUBLAS_GEMM_DFALT);
                    gemm_ex(
                        blas, of_b, of_a, n, m, k, one, b as _, of, ldb, a as _, of, lda, beta,
                        c as _, to, ldc, by, algo,
                    )
                }
            }
        }
        .map_err(cublas_error)
    }
}
