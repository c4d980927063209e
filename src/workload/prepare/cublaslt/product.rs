//! One product, as cuBLASLt describes it.

use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::rc::Rc;

use cudarc::cublas::CudaBlas;
use cudarc::cublaslt::result::CublasError;
use cudarc::cublaslt::{result, sys};
use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

use crate::device::Gpu;
use crate::timing::CudaError;
use crate::workload::prepare::cublaslt::handles::{
    self, Description, Layout, NO_CUBLASLT, Preference,
};
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

/// Number of algorithms to request from the library.
const ALGORITHMS: usize = 24;

/// An algorithm with all its settings.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm {
    pub(super) algo: sys::cublasLtMatmulAlgo_t,
}

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
                &raw const self.algo,
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
        use sys::cublasLtMatmulAlgoConfigAttributes_t as Setting;
        write!(f, "algorithm")?;
        for (name, which, bytes) in [
            ("", Setting::CUBLASLT_ALGO_CONFIG_ID, 4),
            ("tile ", Setting::CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
            ("stages ", Setting::CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
            ("pieces ", Setting::CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
            (
                "reduction ",
                Setting::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                4,
            ),
            ("swizzle ", Setting::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
            ("option ", Setting::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4),
            ("shape ", Setting::CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2),
            (
                "cluster ",
                Setting::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                2,
            ),
        ] {
            if let Some(value @ 1..) = self.setting(which, bytes) {
                write!(f, " {name}{value}")?;
            }
        }
        Ok(())
    }
}

/// The algorithms that the library proposes with at most `workspace` bytes of workspace, in the order
/// of its own estimate; empty if it has none.
pub(super) fn algorithms(
    handle: sys::cublasLtHandle_t,
    workspace: usize,
    description: &Description,
    [a, b, c]: &[Layout; 3],
) -> Result<Vec<Algorithm>, CublasError> {
    let preference = Preference::new(workspace)?;
    let mut found =
        [const { MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::uninit() }; ALGORITHMS];
    let mut count = 0;
    // SAFETY: everything was made and lives to the end of the call, which writes at most as many
    // results as there is room for.
    let status = unsafe {
        sys::cublasLtMatmulAlgoGetHeuristic(
            handle,
            description.handle(),
            b.handle(),
            a.handle(),
            c.handle(),
            c.handle(),
            preference.handle(),
            ALGORITHMS as i32,
            found.as_mut_ptr().cast(),
            &raw mut count,
        )
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
        .map(|result| Algorithm { algo: result.algo })
        .collect())
}

/// A row-major matrix without gaps in device memory, used as it is or transposed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) address: CUdeviceptr,
    /// How a value is stored.
    pub(crate) element: sys::cudaDataType,
    /// Rows as stored.
    pub(crate) rows: usize,
    /// Columns as stored.
    pub(crate) columns: usize,
    pub(crate) transposed: bool,
}

impl Operand {
    /// Its transpose.
    pub(crate) fn t(self) -> Self {
        Self {
            transposed: !self.transposed,
            ..self
        }
    }

    /// Rows and columns as used.
    pub(crate) fn shape(self) -> (usize, usize) {
        match self.transposed {
            true => (self.columns, self.rows),
            false => (self.rows, self.columns),
        }
    }
}

/// The epilogue of a product. A bias has a value for each column, of the result's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epilogue {
    Nothing,
    Bias(CUdeviceptr),
    ReluBias(CUdeviceptr),
}

/// C = A B, or several such products of equal sizes, with an epilogue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// Its description, for notes and choices.
    pub(crate) name: &'static str,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) c: Operand,
    /// The factor of the product.
    pub(crate) factor: f32,
    pub(crate) epilogue: Epilogue,
    /// A matrix of the type and size of C, at another address, that is added to the product.
    pub(crate) added: Option<CUdeviceptr>,
    /// Number of products. The matrices of each operand lie one after the other without gaps, the
    /// first at the operand's address.
    pub(crate) count: usize,
    /// Whether our own kernels may compute it. Code that leaves all products to the library is measured
    /// too.
    pub(crate) own: bool,
}

/// The library's description of a product and its epilogue.
pub(super) fn description(product: &Product) -> Result<Description, CublasError> {
    use sys::cublasLtEpilogue_t as Kind;
    use sys::cublasLtMatmulDescAttributes_t as Attribute;
    let description = Description::new(sys::cublasComputeType_t::CUBLAS_COMPUTE_32F)?;
    // `CUBLAS_OP_N` is 0, `CUBLAS_OP_T` 1. The library's first operand is B, which by columns is
    // already its transpose, so a transposed B is transposed once more.
    let of_first = i32::from(product.b.transposed);
    let of_second = i32::from(product.a.transposed);
    let (kind, bias) = match product.epilogue {
        Epilogue::Nothing => (Kind::CUBLASLT_EPILOGUE_DEFAULT, None),
        Epilogue::Bias(bias) => (Kind::CUBLASLT_EPILOGUE_BIAS, Some(bias)),
        Epilogue::ReluBias(bias) => (Kind::CUBLASLT_EPILOGUE_RELU_BIAS, Some(bias)),
    };
    // SAFETY: the attributes are 32-bit numbers, and the bias's address one of 64 bits.
    unsafe {
        description.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &of_first)?;
        description.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &of_second)?;
        description.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &(kind as u32))?;
        if let Some(bias) = bias {
            description.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
    }
    Ok(description)
}

/// The layout of `count` matrices, one after the other. The library counts by columns, so rows and
/// columns change places.
pub(super) fn layout(matrix: Operand, count: usize) -> Result<Layout, CublasError> {
    use sys::cublasLtMatrixLayoutAttribute_t as Attribute;
    let (rows, columns) = (matrix.columns as u64, matrix.rows as u64);
    let layout = Layout::new(matrix.element, rows, columns)?;
    if count > 1 {
        let (count, distance) = (count as i32, (rows * columns) as i64);
        // SAFETY: the attributes are a 32-bit and a 64-bit number:
        // https://docs.nvidia.com/cuda/cublas/#cublasltmatrixlayoutattribute-t
        unsafe {
            layout.set(Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count)?;
            let attribute = Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
            layout.set(attribute, &distance)?;
        }
    }
    Ok(layout)
}
