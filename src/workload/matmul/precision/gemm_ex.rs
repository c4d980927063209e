//! Products by `cublasGemmEx`.

use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublas::result::gemm_ex;
use cudarc::cublas::sys::{
    cublasGemmAlgo_t::CUBLAS_GEMM_DFALT,
    cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T},
};
use cudarc::driver::sys::CUdeviceptr;

use crate::device::gpu::{Gpu, cublas_error};
use crate::timing::CudaError;
use crate::workload::matmul::precision::format::Format;
use crate::workload::routine::RoutineError;

/// One call of `cublasGemmEx`, C = A B + `beta` C of row-major matrices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) a: CUdeviceptr,
    pub(super) a_pitch: usize,
    /// B, or its transpose where the format asks for that.
    pub(super) b: CUdeviceptr,
    pub(super) b_pitch: usize,
    pub(super) c: CUdeviceptr,
    pub(super) accumulates: bool,
}

/// A [`Call`] with everything fixed, so that running it is the library's own call.
pub(super) struct GemmEx {
    blas: Rc<CudaBlas>,
    format: Format,
    sizes: [i32; 3],
    pitches: [i32; 3],
    addresses: [CUdeviceptr; 3],
    /// The bits of a scalar of the type of the sums: f32, or i32 for integers.
    one: u32,
    beta: u32,
}

impl GemmEx {
    pub(super) fn new(gpu: &Gpu, format: Format, call: Call) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let (zero, one) = match format {
            Format::Int8 => (0, 1),
            _ => (0.0f32.to_bits(), 1.0f32.to_bits()),
        };
        let size = |value: usize| i32::try_from(value);
        Ok(Self {
            blas: gpu.blas()?,
            format,
            sizes: [size(call.m)?, size(call.n)?, size(call.k)?],
            pitches: [size(call.a_pitch)?, size(call.b_pitch)?, size(call.n)?],
            addresses: [call.a, call.b, call.c],
            one,
            beta: if call.accumulates { one } else { zero },
        })
    }

    /// Enqueues the product.
    ///
    /// # Safety
    /// The three addresses must be device memory of matrices of these sizes and pitches and
    /// of the format's types until the product has run, and C must not overlap A or B.
    pub(super) unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let Self {
            format,
            sizes: [m, n, k],
            pitches: [a_pitch, b_pitch, c_pitch],
            addresses: [a, b, c],
            ..
        } = self;
        let of_b = if format.transposes_b() {
            CUBLAS_OP_T
        } else {
            CUBLAS_OP_N
        };
        // By columns the product is C^T = B^T A^T, as for SGEMM.
        // SAFETY: the caller vouches for the addresses; the handle lives in `blas`, and
        // scalars are read before the call returns (host pointer mode, the default).
        unsafe {
            gemm_ex(
                *self.blas.handle(),
                of_b,
                CUBLAS_OP_N,
                *n,
                *m,
                *k,
                (&raw const self.one).cast(),
                *b as *const _,
                format.data_type(),
                *b_pitch,
                *a as *const _,
                format.data_type(),
                *a_pitch,
                (&raw const self.beta).cast(),
                *c as *mut _,
                format.result_type(),
                *c_pitch,
                format.compute_type(),
                CUBLAS_GEMM_DFALT,
            )
        }
        .map_err(cublas_error)?;
        Ok(())
    }
}
