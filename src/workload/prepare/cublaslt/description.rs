//! What is multiplied, and its description for the library.

use cudarc::cublaslt::result::CublasError;
use cudarc::cublaslt::sys;
use cudarc::driver::sys::CUdeviceptr;

use crate::workload::prepare::cublaslt::handles::{Description, Layout};

/// How products of f32 operands are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// In the format of the operands, f32 or BF16. Sums are in f32.
    Plain,
    /// f32 on tensor cores, which use 10 bits of its fraction.
    Tf32,
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

/// What is done to the product before it is stored. A bias has a value for each column, of the
/// result's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epilogue {
    Nothing,
    Bias(CUdeviceptr),
    ReluBias(CUdeviceptr),
}

/// C = A B, or several such products of equal sizes, and what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// What it is, in words, for notes and choices.
    pub(crate) name: &'static str,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    pub(crate) c: Operand,
    pub(crate) arithmetic: Arithmetic,
    /// What the product is multiplied by.
    pub(crate) factor: f32,
    pub(crate) epilogue: Epilogue,
    /// A matrix of the type and size of C, but elsewhere, that is added to the product.
    pub(crate) added: Option<CUdeviceptr>,
    /// Number of products. The matrices of each operand lie one after the other without gaps, the
    /// first at the operand's address.
    pub(crate) count: usize,
    /// Whether kernels of our own may compute it, where they can. Code that leaves all products to
    /// the library is measured too.
    pub(crate) own: bool,
}

/// The library's description of a product and its epilogue.
pub(super) fn description(product: &Product) -> Result<Description, CublasError> {
    use sys::cublasLtEpilogue_t as Kind;
    use sys::cublasLtMatmulDescAttributes_t as Attribute;
    let description = Description::new(match product.arithmetic {
        Arithmetic::Plain => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        Arithmetic::Tf32 => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
    })?;
    // `CUBLAS_OP_N` is 0, `CUBLAS_OP_T` 1. The library's first operand is B, which by columns is
    // its transpose already; so a transposed one is the transpose once more.
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
