//! cuBLAS SGEMM on row-major matrices, with everything fixed beforehand.

use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublas::result::{sgemm, sgemm_strided_batched};
use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::driver::sys::CUdeviceptr;

use crate::device::gpu::{Gpu, cublas_error};
use crate::timing::CudaError;
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
    /// The block that begins at this row and column of a matrix of f32.
    pub(super) fn at(self, row: usize, column: usize) -> Self {
        let elements = (row * self.pitch + column) as CUdeviceptr;
        Self {
            address: self.address + elements * size_of::<f32>() as CUdeviceptr,
            ..self
        }
    }
}

/// One call of SGEMM in true f32 (not TF32), so that running it is the library's own call.
pub(super) struct Sgemm {
    blas: Rc<CudaBlas>,
    batch: i32,
    m: i32,
    n: i32,
    k: i32,
    a: Matrix32,
    b: Matrix32,
    c: Matrix32,
    beta: f32,
}

#[derive(Clone, Copy)]
struct Matrix32 {
    address: CUdeviceptr,
    pitch: i32,
}

impl TryFrom<Matrix> for Matrix32 {
    type Error = std::num::TryFromIntError;

    fn try_from(matrix: Matrix) -> Result<Self, Self::Error> {
        Ok(Self {
            address: matrix.address,
            pitch: i32::try_from(matrix.pitch)?,
        })
    }
}

impl Sgemm {
    /// C = A B of whole matrices at these addresses.
    pub(super) fn new(
        gpu: &Gpu,
        shape: Shape,
        a: CUdeviceptr,
        b: CUdeviceptr,
        c: CUdeviceptr,
    ) -> Result<Self, RoutineError> {
        let whole = |address, pitch| Matrix { address, pitch };
        let (a, b, c) = (whole(a, shape.k), whole(b, shape.n), whole(c, shape.n));
        Self::blocks(gpu, shape, a, b, c, 0.0)
    }

    /// C = A B + `beta` C of blocks of larger matrices. With `shape.batch` above 1 the
    /// matrices must be whole.
    pub(super) fn blocks(
        gpu: &Gpu,
        shape: Shape,
        a: Matrix,
        b: Matrix,
        c: Matrix,
        beta: f32,
    ) -> Result<Self, RoutineError> {
        gpu.bind()?;
        Ok(Self {
            blas: gpu.blas()?,
            batch: i32::try_from(shape.batch)?,
            m: i32::try_from(shape.m)?,
            n: i32::try_from(shape.n)?,
            k: i32::try_from(shape.k)?,
            a: a.try_into()?,
            b: b.try_into()?,
            c: c.try_into()?,
            beta,
        })
    }

    /// Enqueues the product.
    ///
    /// # Safety
    /// The three addresses must be device memory of matrices of this shape and pitch until
    /// the product has run, and C must not overlap A or B.
    pub(super) unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let Self {
            blas,
            batch,
            m,
            n,
            k,
            a,
            b,
            c,
            beta,
        } = self;
        let one = 1.0;
        let (pa, pb) = (a.address as *const f32, b.address as *const f32);
        let pc = c.address as *mut f32;
        let stride = |rows: i32, columns: i32| i64::from(rows) * i64::from(columns);
        // cuBLAS counts by columns, where a row-major matrix is its transpose:
        // C = A B by rows is C^T = B^T A^T by columns.
        // SAFETY: the caller vouches for the addresses; the handle lives in `blas`, and
        // scalars are read before the call returns (host pointer mode, the default).
        unsafe {
            if *batch == 1 {
                sgemm(
                    *blas.handle(),
                    CUBLAS_OP_N,
                    CUBLAS_OP_N,
                    *n,
                    *m,
                    *k,
                    &one,
                    pb,
                    b.pitch,
                    pa,
                    a.pitch,
                    beta,
                    pc,
                    c.pitch,
                )
            } else {
                sgemm_strided_batched(
                    *blas.handle(),
                    CUBLAS_OP_N,
                    CUBLAS_OP_N,
                    *n,
                    *m,
                    *k,
                    &one,
                    pb,
                    b.pitch,
                    stride(*k, *n),
                    pa,
                    a.pitch,
                    stride(*m, *k),
                    beta,
                    pc,
                    c.pitch,
                    stride(*m, *n),
                    *batch,
                )
            }
        }
        .map_err(cublas_error)?;
        Ok(())
    }
}
