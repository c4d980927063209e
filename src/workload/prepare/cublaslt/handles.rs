//! Descriptors of a product for cuBLASLt, which are freed when dropped.

use cudarc::cublaslt::result::{self, CublasError};
use cudarc::cublaslt::sys;

use crate::device::Absence;
use crate::timing::{CudaError, catch_panic};
use crate::workload::routine::RoutineError;

/// Why products by cuBLASLt are left out on a machine without it.
pub(crate) const NO_CUBLASLT: Absence = Absence::NoLibrary {
    library: "cuBLASLt",
    remedy: "install the CUDA toolkit's cuBLAS (libcublasLt) to run FP8 products and the layers of networks",
};

/// Runs `make`, which makes the handles of a product.
///
/// # Errors
/// [`NO_CUBLASLT`] where the library lacks a symbol, at which cudarc panics; an error of the library.
pub(crate) fn made<T>(make: impl FnOnce() -> Result<T, CublasError>) -> Result<T, RoutineError> {
    match catch_panic(make) {
        Ok(made) => Ok(made.map_err(error)?),
        Err(_) => Err(NO_CUBLASLT.into()),
    }
}

/// An error of the library as a [`CudaError`].
pub(crate) fn error(error: CublasError) -> CudaError {
    CudaError::with_message("cuBLASLt", format!("{:?}", error.0))
}

/// A handle of the library, which is destroyed when dropped; one function sets any attribute of it.
macro_rules! handle {
    ($(#[$meta:meta])* $name:ident($raw:ty), $attribute:ty, $set:ident, $destroy:ident) => {
        $(#[$meta])*
        pub(crate) struct $name($raw);

        impl $name {
            /// # Safety
            /// The attribute must have the type `T`.
            pub(crate) unsafe fn set<T>(
                &self,
                attribute: $attribute,
                value: &T,
            ) -> Result<(), CublasError> {
                let value = (&raw const *value).cast();
                // SAFETY: the handle lives; the rest is the caller's promise.
                unsafe { result::$set(self.0, attribute, value, size_of::<T>()) }
            }

            /// The library's handle, which lives as long as `self`.
            pub(crate) fn handle(&self) -> $raw {
                self.0
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: made by `new` and destroyed once.
                let _ = unsafe { result::$destroy(self.0) };
            }
        }
    };
}

handle!(
    /// The form of a product, and its epilogue.
    Description(sys::cublasLtMatmulDesc_t),
    sys::cublasLtMatmulDescAttributes_t,
    set_matmul_desc_attribute,
    destroy_matmul_desc
);
handle!(
    /// The type and the sizes of a matrix.
    Layout(sys::cublasLtMatrixLayout_t),
    sys::cublasLtMatrixLayoutAttribute_t,
    set_matrix_layout_attribute,
    destroy_matrix_layout
);
handle!(
    /// The workspace that an algorithm may use.
    Preference(sys::cublasLtMatmulPreference_t),
    sys::cublasLtMatmulPreferenceAttributes_t,
    set_matmul_pref_attribute,
    destroy_matmul_pref
);

impl Description {
    /// Sums as in `compute`, scalars in f32, no operand transposed, no epilogue.
    pub(crate) fn new(compute: sys::cublasComputeType_t) -> Result<Self, CublasError> {
        result::create_matmul_desc(compute, sys::cudaDataType::CUDA_R_32F).map(Self)
    }
}

impl Layout {
    /// A matrix that lies by columns without gaps.
    pub(crate) fn new(
        data_type: sys::cudaDataType,
        rows: u64,
        columns: u64,
    ) -> Result<Self, CublasError> {
        result::create_matrix_layout(data_type, rows, columns, rows as i64).map(Self)
    }
}

impl Preference {
    /// At most `workspace` bytes.
    pub(crate) fn new(workspace: usize) -> Result<Self, CublasError> {
        use sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let preference = Self(result::create_matmul_pref()?);
        // SAFETY: the attribute is a `size_t`.
        unsafe { preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace) }?;
        Ok(preference)
    }
}
