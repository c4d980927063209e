//! One call of cuBLAS on row-major matrices, with everything fixed beforehand.

use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublas::result::{dgemm, gemm_ex, sgemm, sgemm_strided_batched};
use cudarc::cublas::sys::{
    cublasGemmAlgo_t::CUBLAS_GEMM_DFALT,
    cublasOperation_t::{CUBLAS_OP_N, CUBLAS_OP_T},
    cudaDataType_t::CUDA_R_32F,
};
use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::device::gpu::cublas_error;
use crate::timing::CudaError;
use crate::workload::matmul::precision::Format;
use crate::workload::matmul::shape::Shape;
use crate::workload::routine::RoutineError;

/// A row-major matrix in device memory, or a block of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    /// Address of the first element.
    pub(super) address: CUdeviceptr,
    /// Elements from one row to the next.
    pub(super) pitch: usize,
}

impl Matrix {
    /// The block that begins at this row and column of a matrix of `T`.
    pub(super) fn at<T>(self, row: usize, column: usize) -> Self {
        let elements = (row * self.pitch + column) as CUdeviceptr;
        Self {
            address: self.address + elements * size_of::<T>() as CUdeviceptr,
            ..self
        }
    }
}

/// The library's function and formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// SGEMM in true f32 (not TF32).
    Single,
    /// DGEMM, which takes tensor cores where they compute in float64.
    Double,
    /// A product of operands in another format.
    In(Format),
}

/// A prepared call: running it costs no more than the library's own call.
pub(super) struct Gemm {
    blas: Rc<CudaBlas>,
    call: Call,
    batch: i32,
    sizes: [i32; 3],
    addresses: [CUdeviceptr; 3],
    pitches: [i32; 3],
    accumulates: bool,
}

impl Gemm {
    /// C = A B of whole matrices at these addresses.
    pub(super) fn whole(
        gpu: &Gpu,
        call: Call,
        shape: Shape,
        addresses: [CUdeviceptr; 3],
    ) -> Result<Self, RoutineError> {
        let pitches = [shape.k, shape.n, shape.n];
        let matrix = |at: usize| Matrix {
            address: addresses[at],
            pitch: pitches[at],
        };
        Self::new(gpu, call, shape, [0, 1, 2].map(matrix), false)
    }

    /// C = A B, added to C where it accumulates, of blocks of larger matrices. With `shape.batch` above
    /// 1, which SGEMM alone takes, the matrices must be whole. In some formats B is its transpose.
    pub(super) fn new(
        gpu: &Gpu,
        call: Call,
        shape: Shape,
        matrices: [Matrix; 3],
        accumulates: bool,
    ) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let size = |value: usize| i32::try_from(value);
        let [a, b, c] = matrices.map(|matrix| size(matrix.pitch));
        Ok(Self {
            blas: gpu.blas()?,
            call,
            batch: size(shape.batch)?,
            sizes: [size(shape.m)?, size(shape.n)?, size(shape.k)?],
            addresses: matrices.map(|matrix| matrix.address),
            pitches: [a?, b?, c?],
            accumulates,
        })
    }

    /// Enqueues the product.
    ///
    /// # Safety
    /// The three addresses must be device memory of matrices of these sizes and pitches and of the
    /// format's types until the product has run, and C must not overlap A or B.
    pub(super) unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let (blas, [m, n, k]) = (*self.blas.handle(), self.sizes);
        let [a, b, c] = self.addresses;
        let [lda, ldb, ldc] = self.pitches;
        let none = CUBLAS_OP_N;
        let beta = if self.accumulates { 1.0 } else { 0.0 };
        // cuBLAS counts by columns, where a row-major matrix is its transpose:
        // C = A B by rows is C^T = B^T A^T by columns.
        // SAFETY: the caller vouches for the addresses; the handle lives in `blas`, and
        // scalars are read before the call returns (host pointer mode, the default).
        unsafe {
            match self.call {
                Call::Single if self.batch == 1 => {
                    let (a, b, c) = (a as *const f32, b as *const f32, c as *mut f32);
                    let (one, beta) = (1.0, beta as f32);
                    sgemm(
                        blas, none, none, n, m, k, &one, b, ldb, a, lda, &beta, c, ldc,
                    )
                }
                Call::Single => {
                    let (a, b, c) = (a as *const f32, b as *const f32, c as *mut f32);
                    let (one, beta, batch) = (1.0, beta as f32, self.batch);
                    let stride = |rows: i32, columns: i32| i64::from(rows) * i64::from(columns);
                    let (sa, sb, sc) = (stride(m, k), stride(k, n), stride(m, n));
                    sgemm_strided_batched(
                        blas, none, none, n, m, k, &one, b, ldb, sb, a, lda, sa, &beta, c, ldc, sc,
                        batch,
                    )
                }
                Call::Double => {
                    let (a, b, c) = (a as *const f64, b as *const f64, c as *mut f64);
                    dgemm(
                        blas, none, none, n, m, k, &1.0, b, ldb, a, lda, &beta, c, ldc,
                    )
                }
                Call::In(format) => {
                    let of_b = if format.transposes_b() {
                        CUBLAS_OP_T
                    } else {
                        none
                    };
                    let (one, beta) = (1f32, beta as f32);
                    let (one, beta) = ((&raw const one).cast(), (&raw const beta).cast());
                    let (a, b, c) = (a as *const _, b as *const _, c as *mut _);
                    let (of, by) = (format.facts().data_type, format.compute_type());
                    gemm_ex(
                        blas,
                        of_b,
                        none,
                        n,
                        m,
                        k,
                        one,
                        b,
                        of,
                        ldb,
                        a,
                        of,
                        lda,
                        beta,
                        c,
                        CUDA_R_32F,
                        ldc,
                        by,
                        CUBLAS_GEMM_DFALT,
                    )
                }
            }
        }
        .map_err(cublas_error)
    }
}
