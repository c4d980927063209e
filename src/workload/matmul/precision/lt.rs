//! cuBLASLt, which alone takes FP8.

use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::cublas::CudaBlas;
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;
use cudarc::driver::{CudaSlice, CudaStream, sys::CUdeviceptr};

use crate::device::absence::Absence;
use crate::device::gpu::Gpu;
use crate::timing::{CudaError, catch_panic};
use crate::workload::matmul::operands::address;
use crate::workload::matmul::precision::format::FP8_SCALE;
use crate::workload::matmul::problem::CUBLAS_WORKSPACE;
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
        // SAFETY: opens the library and closes it again; its initialisers are the vendor's.
        let there = unsafe { sys::is_culib_present() };
        if !there {
            return Err(NO_CUBLASLT.into());
        }
        let size = usize::try_from(CUBLAS_WORKSPACE)?;
        let workspace = gpu.alloc(size)?;
        let made = catch_panic(|| {
            let description = Description::new()?;
            let operands = Layout::new(sys::cudaDataType::CUDA_R_8F_E4M3, n)?;
            let result = Layout::new(sys::cudaDataType::CUDA_R_32F, n)?;
            let preference = Preference::new(size)?;
            // SAFETY: all of them were just made and live to the end of the call.
            let heuristic = unsafe {
                result::get_matmul_algo_heuristic(
                    (*blas.handle()).cast(),
                    description.0,
                    operands.0,
                    operands.0,
                    result.0,
                    result.0,
                    preference.0,
                )
            }?;
            Ok((description, operands, result, heuristic.algo))
        });
        let (description, operands, result, algorithm) = match made {
            Ok(made) => made.map_err(failed)?,
            Err(_) => return Err(NO_CUBLASLT.into()),
        };
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
                self.description.0,
                (&raw const self.alpha).cast(),
                (&raw const zero).cast(),
                b as *const c_void,
                self.operands.0,
                a as *const c_void,
                self.operands.0,
                c as *const c_void,
                self.result.0,
                c as *mut c_void,
                self.result.0,
                &raw const self.algorithm,
                self.workspace_address as *mut c_void,
                self.workspace.len(),
                self.stream.cu_stream().cast(),
            )
        }
        .map_err(failed)
    }
}

const NO_CUBLASLT: Absence = Absence::NoLibrary {
    library: "cuBLASLt",
    remedy: "install the CUDA toolkit's cuBLAS (libcublasLt) to run FP8 products",
};

fn failed(error: CublasError) -> CudaError {
    CudaError::with_message("cuBLASLt", format!("{:?}", error.0))
}

/// What is multiplied how: the first operand transposed, sums and scalars in f32.
struct Description(sys::cublasLtMatmulDesc_t);

impl Description {
    fn new() -> Result<Self, CublasError> {
        let sums = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
        let description = Self(result::create_matmul_desc(
            sums,
            sys::cudaDataType::CUDA_R_32F,
        )?);
        // `CUBLAS_OP_T`; the other operand keeps the default, not transposed.
        let transposed: i32 = 1;
        // SAFETY: the description was just made; the attribute is a 32-bit number.
        unsafe {
            result::set_matmul_desc_attribute(
                description.0,
                sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA,
                (&raw const transposed).cast(),
                size_of::<i32>(),
            )
        }?;
        Ok(description)
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: made by `new` and destroyed once.
        let _ = unsafe { result::destroy_matmul_desc(self.0) };
    }
}

/// A square matrix without gaps.
struct Layout(sys::cublasLtMatrixLayout_t);

impl Layout {
    fn new(data_type: sys::cudaDataType, n: usize) -> Result<Self, CublasError> {
        let n = n as u64;
        result::create_matrix_layout(data_type, n, n, n as i64).map(Self)
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: made by `new` and destroyed once.
        let _ = unsafe { result::destroy_matrix_layout(self.0) };
    }
}

/// How much workspace an algorithm may use.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new(workspace: usize) -> Result<Self, CublasError> {
        let preference = Self(result::create_matmul_pref()?);
        // SAFETY: the preference was just made; the attribute is a `size_t`.
        unsafe {
            result::set_matmul_pref_attribute(
                preference.0,
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (&raw const workspace).cast(),
                size_of::<usize>(),
            )
        }?;
        Ok(preference)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: made by `new` and destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(self.0) };
    }
}
