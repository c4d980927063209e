//! Stands in for cuBLAS: handles and products of matrices by columns.
//! <https://docs.nvidia.com/cuda/cublas/>

use std::ffi::{c_int, c_void};

use crate::call::exported;
use crate::fault::Fault;
use crate::product::{CUBLAS, Matrix, Product, element_bytes};
use crate::state::{Outcome, known, removed};

/// The state behind a handle. The workspace that cuBLAS allocates for each handle is not modelled.
pub(crate) struct Blas {
    pub(crate) name: String,
    stream: u64,
}

/// The version that the stand-in reports, that of CUDA 13.0 Update 2: major, minor, patch.
const VERSION: [c_int; 3] = [13, 1, 0];

/// Address, type, elements from one column to the next, and from one matrix to the next.
type Operand = (u64, c_int, c_int, i64);

/// cudaDataType and cublasComputeType_t of f32 and f64.
const F32: c_int = 0;
const F64: c_int = 1;
const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;

exported! { CUBLAS:
    fn cublasCreate_v2(state) -> u64 {
        let (name, handle) = (state.names.next("blas"), state.made());
        log!("create {name}");
        state.blas.insert(handle, Blas { name, stream: 0 });
        Ok(handle)
    }

    fn cublasDestroy_v2(state, handle: u64) {
        let blas = removed(&mut state.blas, handle, "cuBLAS handle")?;
        log!("destroy {}", blas.name);
        Ok(())
    }

    fn cublasSetStream_v2(state, handle: u64, stream: u64) {
        let stream = state.usable_stream(stream)?;
        let blas = known(&mut state.blas, handle, "cuBLAS handle")?;
        blas.stream = stream;
        log!("{} works on {}", blas.name, state.streams[&stream].name);
        Ok(())
    }

    fn cublasGetProperty(_state, property: c_int) => c_int {
        Ok(VERSION[property as usize])
    }
}

/// Exports a product. Its arguments are in the order of cuBLAS; `$operands`, the batch and the type of
/// the sums come from those between `alpha`, `beta` and the end.
macro_rules! gemm {
    ($name:ident($($ab:ident: $of_ab:ty),*; $($c:ident: $of_c:ty),*) =
        $operands:expr, $batch:expr, $compute:expr
    ) => {
        exported! { CUBLAS:
            fn $name(
                state, handle: u64, of_a: c_int, of_b: c_int, m: c_int, n: c_int, k: c_int,
                alpha: *const c_void, $($ab: $of_ab,)* beta: *const c_void, $($c: $of_c),*
            ) {
                let stream = known(&mut state.blas, handle, "cuBLAS handle")?.stream;
                // `CUBLAS_OP_N`; rows that transpose operands use cuBLASLt.
                if [of_a, of_b] != [0, 0] {
                    return Err(Fault::unknown("an operation but `N` in", stringify!($name)));
                }
                let [of_a, of_b, of_c]: [Operand; 3] = $operands;
                let c = matrix(m, n, of_c)?;
                let product = Product {
                    function: stringify!($name),
                    matrices: [matrix(m, k, of_a)?, matrix(k, n, of_b)?, c.clone(), c],
                    batch: i64::from($batch),
                    compute: $compute,
                    scalars: [alpha, beta],
                    beside: Vec::new(),
                };
                product.enqueue(state, stream)
            }
        }
    };
}

fn matrix(rows: c_int, columns: c_int, of: Operand) -> Outcome<Matrix> {
    let (address, data_type, pitch, stride) = of;
    Ok(Matrix {
        address,
        element_bytes: element_bytes(data_type)?,
        rows: rows.into(),
        columns: columns.into(),
        pitch: pitch.into(),
        stride,
        transposed: false,
    })
}

gemm! { cublasSgemm_v2(a: u64, lda: c_int, b: u64, ldb: c_int; c: u64, ldc: c_int) =
    [(a, F32, lda, 0), (b, F32, ldb, 0), (c, F32, ldc, 0)], 1, COMPUTE_32F
}

gemm! { cublasDgemm_v2(a: u64, lda: c_int, b: u64, ldb: c_int; c: u64, ldc: c_int) =
    [(a, F64, lda, 0), (b, F64, ldb, 0), (c, F64, ldc, 0)], 1, COMPUTE_64F
}

gemm! { cublasSgemmStridedBatched(
        a: u64, lda: c_int, every_a: i64, b: u64, ldb: c_int, every_b: i64;
        c: u64, ldc: c_int, every_c: i64, batch: c_int
    ) = [(a, F32, lda, every_a), (b, F32, ldb, every_b), (c, F32, ldc, every_c)], batch, COMPUTE_32F
}

// Ampere and later ignore the requested algorithm.
gemm! { cublasGemmEx(
        a: u64, of_type_a: c_int, lda: c_int, b: u64, of_type_b: c_int, ldb: c_int;
        c: u64, of_type_c: c_int, ldc: c_int, compute: c_int, _algorithm: c_int
    ) = [(a, of_type_a, lda, 0), (b, of_type_b, ldb, 0), (c, of_type_c, ldc, 0)], 1, compute
}
