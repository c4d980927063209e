//! One product, its algorithm chosen.

use std::ffi::c_void;
use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, sys::CUdeviceptr};

use crate::device::absence::Absence;
use crate::device::gpu::Gpu;
use crate::timing::{CudaError, catch_panic};
use crate::workload::matmul::CUBLAS_WORKSPACE;
use crate::workload::network::lt::algorithm::{Algorithm, algorithms};
use crate::workload::network::lt::description::{
    Arithmetic, Description, Epilogue, Layout, Product,
};
use crate::workload::network::tensor::Element;
use crate::workload::network::timed;
use crate::workload::routine::RoutineError;

/// Upper bound on the launches of one product; cuBLASLt documents none. One that is cut into
/// pieces of the sum clears counters and adds the pieces up.
pub(in crate::workload) const LAUNCHES: u32 = 4;

/// The library, and memory that its products may use on one stream: two that run at the same
/// time need one each.
pub(in crate::workload) struct Workspace {
    // An LT handle as well: https://docs.nvidia.com/cuda/cublas/#cublaslthandle-t
    blas: Rc<CudaBlas>,
    memory: CudaSlice<u8>,
    address: CUdeviceptr,
}

impl Workspace {
    /// # Errors
    /// The library is absent, the device has no memory left.
    pub(in crate::workload) fn new(gpu: &Gpu) -> Result<Rc<Self>, RoutineError> {
        let blas = gpu.blas()?;
        // SAFETY: opens the library and closes it again; its initialisers are the vendor's.
        if !unsafe { sys::is_culib_present() } {
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
    pub(in crate::workload) fn bytes(&self) -> usize {
        self.memory.num_bytes()
    }

    fn handle(&self) -> sys::cublasLtHandle_t {
        (*self.blas.handle()).cast()
    }
}

/// One product, its algorithm chosen and everything else fixed.
pub(in crate::workload) struct LtProduct {
    workspace: Rc<Workspace>,
    product: Product,
    description: Description,
    layouts: [Layout; 3],
    algorithm: Algorithm,
}

impl LtProduct {
    /// The product by the algorithm that is the fastest here; `None` where the library has none
    /// with this epilogue. The operands must be there, since the calibration multiplies them,
    /// and C is overwritten.
    ///
    /// # Errors
    /// Those of CUDA and cuBLASLt, lengths that do not fit.
    ///
    /// # Safety
    /// The addresses must be device memory of so many matrices of these sizes as long as this
    /// lives, and C must not overlap A, B or what is added.
    pub(in crate::workload) unsafe fn fastest(
        gpu: &Rc<Gpu>,
        workspace: &Rc<Workspace>,
        product: Product,
    ) -> Result<Option<Self>, RoutineError> {
        let (m, k) = product.a.shape();
        let (b_rows, n) = product.b.shape();
        if b_rows != k || product.c.shape() != (m, n) || product.c.transposed {
            return Err(format!("{}: the lengths do not fit", product.name).into());
        }
        gpu.bind()?;
        let made = catch_panic(|| {
            let description = Description::new(&product)?;
            let [a, b, c] =
                [product.a, product.b, product.c].map(|matrix| Layout::new(matrix, product.count));
            let layouts = [a?, b?, c?];
            let algorithms = algorithms(
                workspace.handle(),
                workspace.bytes(),
                &description,
                &layouts,
            )?;
            Ok((description, layouts, algorithms))
        });
        let (description, layouts, algorithms) = match made {
            Ok(made) => made.map_err(failed)?,
            Err(_) => return Err(NO_CUBLASLT.into()),
        };
        let Some(&first) = algorithms.first() else {
            return Ok(None);
        };
        let mut made = Self {
            workspace: workspace.clone(),
            product,
            description,
            layouts,
            algorithm: first,
        };
        let choice = made.choice(gpu, m, n, k);
        let chosen = timed::fastest(gpu, &choice, &algorithms, |algorithm| {
            made.algorithm = algorithm;
            // SAFETY: the caller's promise; `timed` waits for what it enqueues.
            unsafe { made.enqueue(gpu.stream()) }
        })?;
        made.algorithm = chosen;
        Ok(Some(made))
    }

    /// What the algorithm is chosen for.
    fn choice(&self, gpu: &Gpu, m: usize, n: usize, k: usize) -> String {
        let product = &self.product;
        let element = match (product.a.element, product.arithmetic) {
            (Element::Bf16, _) => "BF16",
            (Element::F32, Arithmetic::Tf32) => "TF32",
            (Element::F32, Arithmetic::Plain) => "f32",
        };
        let epilogue = match product.epilogue {
            Epilogue::Nothing => "",
            Epilogue::Bias(_) => " with bias",
            Epilogue::ReluBias(_) => " with bias and ReLU",
        };
        let added = if product.added.is_some() {
            ", added to a matrix"
        } else {
            ""
        };
        let count = match product.count {
            1 => String::new(),
            count => format!("{count} times "),
        };
        let device = &gpu.properties().name;
        format!(
            "{}, {count}{m} x {n} x {k} in {element}{epilogue}{added}, by cuBLASLt on {device}",
            product.name
        )
    }

    /// Enqueues the product.
    ///
    /// # Safety
    /// Nothing else may use C or the workspace at the same time, and A, B and what is added must
    /// stay as they are until the product has run.
    pub(in crate::workload) unsafe fn enqueue(&self, stream: &CudaStream) -> Result<(), CudaError> {
        let Product { a, b, c, .. } = self.product;
        let one = 1.0f32;
        let (added, factor) = match self.product.added {
            Some(added) => (added, 1.0f32),
            None => (c.address, 0.0),
        };
        let [of_a, of_b, of_c] = &self.layouts;
        // The library counts by columns, where a row-major matrix is its transpose: C = A B by
        // rows is C^T = B^T A^T by columns, so B is the library's first operand.
        // SAFETY: the caller of `fastest` vouches for the addresses; the rest lives in `self`,
        // and scalars are read before the call returns (host pointer mode, the default).
        unsafe {
            result::matmul(
                self.workspace.handle(),
                self.description.0,
                (&raw const one).cast(),
                (&raw const factor).cast(),
                b.address as *const c_void,
                of_b.0,
                a.address as *const c_void,
                of_a.0,
                added as *const c_void,
                of_c.0,
                c.address as *mut c_void,
                of_c.0,
                &raw const self.algorithm.algo,
                self.workspace.address as *mut c_void,
                self.workspace.bytes(),
                stream.cu_stream().cast(),
            )
        }
        .map_err(failed)
    }

    /// What was chosen, for notes.
    pub(in crate::workload) fn note(&self) -> String {
        format!("{}: cuBLASLt {}", self.product.name, self.algorithm)
    }
}

const NO_CUBLASLT: Absence = Absence::NoLibrary {
    library: "cuBLASLt",
    remedy: "install the CUDA toolkit's cuBLAS (libcublasLt) to run the layers of a network",
};

fn failed(error: CublasError) -> CudaError {
    CudaError::with_message("cuBLASLt", format!("{:?}", error.0))
}
