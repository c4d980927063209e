//! cuBLASLt, which alone takes FP8.

use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::cublaslt::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, sys::CUdeviceptr};

use crate::device::gpu::Gpu;
use crate::timing::CudaError;
use crate::workload::matmul::operands::address;
use crate::workload::matmul::precision::format::FP8_SCALE;
use crate::workload::matmul::problem::CUBLAS_WORKSPACE;
use crate::workload::prepare::cublaslt::{self, Description, Layout, NO_CUBLASLT, Preference};
use crate::workload::routine::RoutineError;

/// One product by cuBLASLt, its algorithm chosen and everything else fixed.
pub(super) struct LtMatmul {
    // An LT handle as well: https://docs.nvidia.com/cuda/cublas/#cublaslthandle-t
    blas: Rc<CudaBlas>,
    stream: Arc<CudaStream>,
    description: Description,
    operands: Layout,
    result: Layout,
    algorithm: sys::cublasLtMatmulAlgo_t,
    workspace: CudaSlice<u8>,
    workspace_address: CUdeviceptr,
    alpha: f32,
    addresses: [CUdeviceptr; 3],
}

impl LtMatmul {
    /// C = A B of order `n`: A in FP8 by rows, B in FP8 by columns, both scaled, C in f32 by
    /// rows.
    pub(super) fn fp8(
        gpu: &Gpu,
        n: usize,
        a: CUdeviceptr,
        b: CUdeviceptr,
        c: CUdeviceptr,
    ) -> Result<Self, RoutineError> {
        let blas = gpu.blas()?;
        if !cublaslt::is_present() {
            return Err(NO_CUBLASLT.into());
        }
        let size = usize::try_from(CUBLAS_WORKSPACE)?;
        let workspace = gpu.alloc(size)?;
        let (description, operands, result, algorithm) = cublaslt::made(|| {
            let description = Description::new(sys::cublasComputeType_t::CUBLAS_COMPUTE_32F)?;
            // `CUBLAS_OP_T` for the first operand; the other one is not transposed.
            let transposed = 1i32;
            // SAFETY: the attribute is a 32-bit number.
            unsafe {
                let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA;
                description.set(attribute, &transposed)
            }?;
            let square = |data_type| Layout::new(data_type, n as u64, n as u64);
            let operands = square(sys::cudaDataType::CUDA_R_8F_E4M3)?;
            let result = square(sys::cudaDataType::CUDA_R_32F)?;
            let preference = Preference::new(size)?;
            // SAFETY: all of them were just made and live to the end of the call.
            let heuristic = unsafe {
                result::get_matmul_algo_heuristic(
                    (*blas.handle()).cast(),
                    description.handle(),
                    operands.handle(),
                    operands.handle(),
                    result.handle(),
                    result.handle(),
                    preference.handle(),
                )
            }?;
            Ok((description, operands, result, heuristic.algo))
        })?;
        Ok(Self {
            blas,
            stream: gpu.stream().clone(),
            description,
            operands,
            result,
            algorithm,
            workspace_address: address(gpu, &workspace),
            workspace,
            alpha: 1.0 / (FP8_SCALE * FP8_SCALE),
            addresses: [a, b, c],
        })
    }

    /// Enqueues the product.
    ///
    /// # Safety
    /// The three addresses must be device memory of the matrices that
    /// [`fp8`](Self::fp8) names until the product has run, and C must not overlap A or B.
    pub(super) unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let [a, b, c] = self.addresses;
        let zero = 0.0f32;
        // By columns the product is C^T = B^T A^T; B is there by columns, so that it is the
        // transpose of what the library reads.
        // SAFETY: the caller vouches for the addresses; the rest lives in `self`, and scalars
        // are read before the call returns.
        unsafe {
            result::matmul(
                (*self.blas.handle()).cast(),
                self.description.handle(),
                (&raw const self.alpha).cast(),
                (&raw const zero).cast(),
                b as *const c_void,
                self.operands.handle(),
                a as *const c_void,
                self.operands.handle(),
                c as *const c_void,
                self.result.handle(),
                c as *mut c_void,
                self.result.handle(),
                &raw const self.algorithm,
                self.workspace_address as *mut c_void,
                self.workspace.len(),
                self.stream.cu_stream().cast(),
            )
        }
        .map_err(cublaslt::error)
    }
}
