//! Prepared calls of cuBLAS, and products by cuBLASLt, whose operands may be transposed and which may have an epilogue.

use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublas::result::{dgemm, gemm_ex, sgemm, sgemm_strided_batched};
use cudarc::cublas::sys::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
use cudarc::cublas::sys::cublasGemmAlgo_t::CUBLAS_GEMM_DFALT;
use cudarc::cublas::sys::cublasOperation_t::{self, CUBLAS_OP_N, CUBLAS_OP_T};
use cudarc::cublas::sys::cudaDataType_t::{CUDA_R_16BF, CUDA_R_16F, CUDA_R_32F};
use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::device::gpu::cublas_error;
use crate::device::{Absence, Gpu};
use crate::model::Format;
use crate::timing::{CudaError, catch_panic};
use crate::workload::product::shape::{Matrix, Product, Shape};
use crate::workload::routine::RoutineError;

/// Workspace that cuBLAS keeps on Hopper, 32 MiB; that on other devices is smaller.
/// <https://docs.nvidia.com/cuda/cublas/#cublassetworkspace>
pub(crate) const CUBLAS_WORKSPACE: u64 = 32 << 20;

/// Why products by cuBLASLt are left out on a machine without it.
const NO_CUBLASLT: Absence = Absence::NoLibrary {
    library: "cuBLASLt",
    remedy: "install the CUDA toolkit's cuBLAS (libcublasLt) to run FP8 products and the layers of networks",
};

/// A handle of the library, which is destroyed when dropped.
struct Handle<H: Copy> {
    raw: H,
    destroy: unsafe fn(H) -> Result<(), CublasError>,
}

/// The form of a product, and its epilogue.
type Description = Handle<sys::cublasLtMatmulDesc_t>;

/// The type and the sizes of a matrix, which the library counts by columns.
type Layout = Handle<sys::cublasLtMatrixLayout_t>;

impl<H: Copy> Handle<H> {
    /// Sets an attribute by the function of the library for such handles.
    ///
    /// # Safety
    /// The attribute must have the type `T`.
    unsafe fn set<A, T>(
        &self,
        set: unsafe fn(H, A, *const c_void, usize) -> Result<(), CublasError>,
        attribute: A,
        value: &T,
    ) -> Result<(), CublasError> {
        let value = (&raw const *value).cast();
        // SAFETY: the handle lives; the rest is the caller's promise.
        unsafe { set(self.raw, attribute, value, size_of::<T>()) }
    }
}

impl<H: Copy> Drop for Handle<H> {
    fn drop(&mut self) {
        // SAFETY: it was created by the library and is destroyed once, by the function for its type.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

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
    pub(crate) fn bytes(&self) -> usize {
        self.memory.num_bytes()
    }

    fn handle(&self) -> sys::cublasLtHandle_t {
        (*self.blas.handle()).cast()
    }
}

/// One product, everything fixed except the algorithm.
pub(crate) struct LtProduct {
    workspace: Rc<Workspace>,
    product: Product,
    description: Description,
    layouts: [Layout; 3],
}

impl LtProduct {
    /// The product, and the library's algorithms for it; none if it lacks the epilogue.
    ///
    /// # Errors
    /// [`NO_CUBLASLT`] where the library lacks a symbol, at which cudarc panics; an error of the library.
    ///
    /// # Safety
    /// The addresses must be device memory of matrices of these sizes and number as long as this
    /// lives, and C must not overlap A, B or what is added.
    pub(crate) unsafe fn new(
        workspace: &Rc<Workspace>,
        product: Product,
    ) -> Result<(Self, Vec<Algorithm>), RoutineError> {
        let made = catch_panic(|| -> Result<_, CublasError> {
            let layout = |matrix| layout(matrix, product.batch);
            let made = Self {
                workspace: workspace.clone(),
                description: description(&product)?,
                layouts: [layout(product.a)?, layout(product.b)?, layout(product.c)?],
                product,
            };
            let algorithms = made.algorithms()?;
            Ok((made, algorithms))
        });
        Ok(made.map_err(|_| NO_CUBLASLT)?.map_err(error)?)
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
        let Product { a, b, c, added, .. } = &self.product;
        let share = if added.is_some() { 1.0f32 } else { 0.0 };
        let [of_a, of_b, of_c] = &self.layouts;
        // The library counts by columns, where a row-major matrix is its transpose: C = A B by
        // rows is C^T = B^T A^T by columns, so B is the library's first operand.
        // SAFETY: the caller of `new` vouches for the addresses; the rest lives in `self`,
        // and scalars are read before the call returns (host pointer mode, the default).
        unsafe {
            result::matmul(
                self.workspace.handle(),
                self.description.raw,
                (&raw const self.product.factor).cast(),
                (&raw const share).cast(),
                b.address as *const c_void,
                of_b.raw,
                a.address as *const c_void,
                of_a.raw,
                added.unwrap_or(c.address) as *const c_void,
                of_c.raw,
                c.address as *mut c_void,
                of_c.raw,
                &raw const algorithm.0,
                self.workspace.address as *mut c_void,
                self.workspace.bytes(),
                stream.cu_stream().cast(),
            )
        }
        .map_err(error)
    }

    /// The algorithms that the library proposes with this workspace, in the order of its own estimate.
    fn algorithms(&self) -> Result<Vec<Algorithm>, CublasError> {
        use sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        /// Number of algorithms to request.
        const ALGORITHMS: usize = 24;
        let preference = Handle {
            raw: result::create_matmul_pref()?,
            destroy: result::destroy_matmul_pref,
        };
        let most = CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let set = result::set_matmul_pref_attribute;
        // SAFETY: the attribute is a `size_t`.
        unsafe { preference.set(set, most, &self.workspace.bytes()) }?;
        let mut found =
            [const { MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::uninit() }; ALGORITHMS];
        let mut count = 0;
        let [a, b, c] = self.layouts.each_ref().map(|layout| layout.raw);
        let (lt, form, limits) = (
            self.workspace.handle(),
            self.description.raw,
            preference.raw,
        );
        let (most, to, n) = (ALGORITHMS as i32, found.as_mut_ptr().cast(), &raw mut count);
        // SAFETY: everything was made and lives to the end of the call, which writes at most as many
        // results as there is room for.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(lt, form, b, a, c, c, limits, most, to, n)
        };
        match status {
            sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => return Ok(Vec::new()),
            status => status.result()?,
        }
        let found = found.iter().take(count as usize);
        // SAFETY: the call wrote as many results as it says.
        let found = found.map(|result| unsafe { result.assume_init_ref() });
        Ok(found
            .filter(|result| result.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS)
            .map(|result| Algorithm(result.algo))
            .collect())
    }
}

/// An algorithm with all its settings.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm(sys::cublasLtMatmulAlgo_t);

impl Algorithm {
    /// A setting of this many bytes, at most four; `None` if the library does not return it.
    fn setting(
        &self,
        which: sys::cublasLtMatmulAlgoConfigAttributes_t,
        bytes: usize,
    ) -> Option<u32> {
        let (mut value, mut written) = (0u32, 0usize);
        // SAFETY: the algorithm is one that the library gave; the buffer has the size that is named.
        let status = unsafe {
            sys::cublasLtMatmulAlgoConfigGetAttribute(
                &raw const self.0,
                which,
                (&raw mut value).cast(),
                bytes.min(size_of::<u32>()),
                &raw mut written,
            )
        };
        (status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && written == bytes).then_some(value)
    }
}

/// Names all its settings that are not zero, so that another process finds the choice again. The
/// library's bytes of an algorithm cannot serve: some differ from call to call.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use sys::cublasLtMatmulAlgoConfigAttributes_t::*;
        write!(f, "algorithm")?;
        for (name, which, bytes) in [
            ("", CUBLASLT_ALGO_CONFIG_ID, 4),
            ("tile ", CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
            ("stages ", CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
            ("pieces ", CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
            ("reduction ", CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4),
            ("swizzle ", CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
            ("option ", CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4),
            ("shape ", CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2),
            ("cluster ", CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2),
        ] {
            if let Some(value @ 1..) = self.setting(which, bytes) {
                write!(f, " {name}{value}")?;
            }
        }
        Ok(())
    }
}

/// An error of the library as a [`CudaError`].
fn error(error: CublasError) -> CudaError {
    CudaError::with_message("cuBLASLt", format!("{:?}", error.0))
}

/// The library's description of a product and its epilogue.
fn description(product: &Product) -> Result<Description, CublasError> {
    use sys::cublasLtEpilogue_t as Kind;
    use sys::cublasLtMatmulDescAttributes_t::*;
    let sums = sys::cublasComputeType_t::CUBLAS_COMPUTE_32F;
    let description = Handle {
        raw: result::create_matmul_desc(sums, sys::cudaDataType::CUDA_R_32F)?,
        destroy: result::destroy_matmul_desc,
    };
    let set = result::set_matmul_desc_attribute;
    // `CUBLAS_OP_N` is 0, `CUBLAS_OP_T` 1. The library's first operand is B, which by columns is
    // already its transpose, so a transposed B is transposed once more.
    let of_first = i32::from(product.b.transposed);
    let of_second = i32::from(product.a.transposed);
    let kind = match (product.bias, product.relu) {
        (None, false) => Kind::CUBLASLT_EPILOGUE_DEFAULT,
        (None, true) => Kind::CUBLASLT_EPILOGUE_RELU,
        (Some(_), false) => Kind::CUBLASLT_EPILOGUE_BIAS,
        (Some(_), true) => Kind::CUBLASLT_EPILOGUE_RELU_BIAS,
    };
    // SAFETY: the attributes are 32-bit numbers, and the bias's address one of 64 bits.
    unsafe {
        description.set(set, CUBLASLT_MATMUL_DESC_TRANSA, &of_first)?;
        description.set(set, CUBLASLT_MATMUL_DESC_TRANSB, &of_second)?;
        description.set(set, CUBLASLT_MATMUL_DESC_EPILOGUE, &(kind as u32))?;
        if let Some(bias) = product.bias {
            description.set(set, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
    }
    Ok(description)
}

/// The layout of `count` matrices, one after the other. The library counts by columns, so rows and
/// columns change places.
fn layout(matrix: Matrix, count: usize) -> Result<Layout, CublasError> {
    use sys::cublasLtMatrixLayoutAttribute_t::*;
    use sys::cudaDataType::*;
    let element = match matrix.format {
        Format::F32 | Format::Tf32 => CUDA_R_32F,
        Format::F64 => CUDA_R_64F,
        Format::Fp16 => CUDA_R_16F,
        Format::Bf16 => CUDA_R_16BF,
        Format::Fp8 => CUDA_R_8F_E4M3,
    };
    let (rows, columns) = (matrix.columns as u64, matrix.rows as u64);
    let layout = Handle {
        raw: result::create_matrix_layout(element, rows, columns, matrix.pitch as i64)?,
        destroy: result::destroy_matrix_layout,
    };
    let set = result::set_matrix_layout_attribute;
    if count > 1 {
        let distance = (rows * columns) as i64;
        // SAFETY: the attributes are a 32-bit and a 64-bit number:
        // https://docs.nvidia.com/cuda/cublas/#cublasltmatrixlayoutattribute-t
        unsafe {
            layout.set(set, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &(count as i32))?;
            layout.set(set, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &distance)?;
        }
    }
    Ok(layout)
}

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
                    let (from, by) = match format {
                        Format::Fp16 => (CUDA_R_16F, CUBLAS_COMPUTE_32F),
                        Format::Bf16 => (CUDA_R_16BF, CUBLAS_COMPUTE_32F),
                        _ => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
                    };
                    let (to, algo) = (CUDA_R_32F, CUBLAS_GEMM_DFALT);
                    gemm_ex(
                        blas, of_b, of_a, n, m, k, one, b as _, from, ldb, a as _, from, lda, beta,
                        c as _, to, ldc, by, algo,
                    )
                }
            }
        }
        .map_err(cublas_error)
    }
}
