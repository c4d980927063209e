//! One product, as the library takes it.

use std::ffi::c_void;
use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublaslt::{result, sys};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, sys::CUdeviceptr};

use crate::device::Gpu;
use crate::timing::CudaError;
use crate::workload::prepare::cublaslt::algorithm::{Algorithm, algorithms};
use crate::workload::prepare::cublaslt::description::{Product, description, layout};
use crate::workload::prepare::cublaslt::handles::{self, Description, Layout, NO_CUBLASLT};
use crate::workload::routine::RoutineError;

/// Workspace that cuBLAS keeps on Hopper, 32 MiB; that on other devices is smaller.
/// <https://docs.nvidia.com/cuda/cublas/#cublassetworkspace>
pub(crate) const CUBLAS_WORKSPACE: u64 = 32 << 20;

/// The library, and memory that its products may use on one stream. Two products that run at the
/// same time need one each.
pub(crate) struct Workspace {
    // An LT handle as well: https://docs.nvidia.com/cuda/cublas/#cublaslthandle-t
    blas: Rc<CudaBlas>,
    memory: CudaSlice<u8>,
    address: CUdeviceptr,
}

impl Workspace {
    /// Allocates the memory.
    ///
    /// # Errors
    /// cuBLASLt is not installed, or the device has too little memory.
    pub(crate) fn new(gpu: &Gpu) -> Result<Rc<Self>, RoutineError> {
        let blas = gpu.blas()?;
        if !handles::is_present() {
            return Err(NO_CUBLASLT.into());
        }
        let memory = gpu.alloc(usize::try_from(CUBLAS_WORKSPACE)?)?;
        let address = memory.device_ptr(gpu.stream()).0;
        Ok(Rc::new(Self {
            blas,
            memory,
            address,
        }))
    }

    /// Bytes of device memory.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.num_bytes()
    }

    fn handle(&self) -> sys::cublasLtHandle_t {
        (*self.blas.handle()).cast()
    }
}

/// One product with everything fixed but the algorithm.
pub(crate) struct LtProduct {
    workspace: Rc<Workspace>,
    product: Product,
    description: Description,
    layouts: [Layout; 3],
}

impl LtProduct {
    /// The product, and the algorithms that the library has for it; none where it lacks the
    /// epilogue.
    ///
    /// # Errors
    /// Errors of the library.
    ///
    /// # Safety
    /// The addresses must be device memory of matrices of these sizes and number as long as this
    /// lives, and C must not overlap A, B or what is added.
    pub(crate) unsafe fn new(
        workspace: &Rc<Workspace>,
        product: Product,
    ) -> Result<(Self, Vec<Algorithm>), RoutineError> {
        let (description, layouts, algorithms) = handles::made(|| {
            let description = description(&product)?;
            let [a, b, c] =
                [product.a, product.b, product.c].map(|matrix| layout(matrix, product.count));
            let layouts = [a?, b?, c?];
            let algorithms = algorithms(
                workspace.handle(),
                workspace.bytes(),
                &description,
                &layouts,
            )?;
            Ok((description, layouts, algorithms))
        })?;
        let product = Self {
            workspace: workspace.clone(),
            product,
            description,
            layouts,
        };
        Ok((product, algorithms))
    }

    /// Enqueues the product by one of its algorithms.
    ///
    /// # Safety
    /// Nothing else may use C or the workspace at the same time, and A, B and what is added must
    /// stay as they are until the product has run.
    pub(crate) unsafe fn enqueue(
        &self,
        algorithm: &Algorithm,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        let Product {
            a, b, c, factor, ..
        } = self.product;
        let (added, share) = match self.product.added {
            Some(added) => (added, 1.0f32),
            None => (c.address, 0.0),
        };
        let [of_a, of_b, of_c] = &self.layouts;
        // The library counts by columns, where a row-major matrix is its transpose: C = A B by
        // rows is C^T = B^T A^T by columns, so B is the library's first operand.
        // SAFETY: the caller of `new` vouches for the addresses; the rest lives in `self`,
        // and scalars are read before the call returns (host pointer mode, the default).
        unsafe {
            result::matmul(
                self.workspace.handle(),
                self.description.handle(),
                (&raw const factor).cast(),
                (&raw const share).cast(),
                b.address as *const c_void,
                of_b.handle(),
                a.address as *const c_void,
                of_a.handle(),
                added as *const c_void,
                of_c.handle(),
                c.address as *mut c_void,
                of_c.handle(),
                &raw const algorithm.algo,
                self.workspace.address as *mut c_void,
                self.workspace.bytes(),
                stream.cu_stream().cast(),
            )
        }
        .map_err(handles::error)
    }
}
