//! Stands in for cuBLAS: handles and products of matrices by columns.
//! <https://docs.nvidia.com/cuda/cublas/>

use std::ffi::{c_int, c_void};

use crate::call::{exported, make, put};
use crate::fault::Fault;
use crate::product::{CUBLAS, Matrix, Product, element};
use crate::state::{Outcome, State, known, removed};

/// The state behind a handle. The workspace that cuBLAS allocates for each handle is not modelled.
pub(crate) struct Blas {
    pub(crate) name: String,
    stream: u64,
}

/// The version that the stand-in reports, that of CUDA 13.0 Update 2: major, minor, patch.
const VERSION: [c_int; 3] = [13, 1, 0];

/// Address, type, elements from one column to the next, and from one matrix to the next.
type Operand = (u64, c_int, c_int, i64);

/// The arguments of a product that all of its functions have.
struct Gemm {
    function: &'static str,
    handle: u64,
    operations: [c_int; 2],
    sizes: [c_int; 3],
    scalars: [*const c_void; 2],
}

impl Gemm {
    fn enqueue(
        self,
        state: &mut State,
        (operands, batch, compute): ([Operand; 3], c_int, c_int),
    ) -> Outcome {
        let stream = known(&mut state.blas, self.handle, "cuBLAS handle")?.stream;
        // `CUBLAS_OP_N`; rows that transpose operands use cuBLASLt.
        if self.operations != [0, 0] {
            return Err(Fault::unknown("an operation but `N` in", self.function));
        }
        let matrix = |at: usize, rows: c_int, columns: c_int| {
            let (address, data_type, pitch, stride) = operands[at];
            Ok(Matrix {
                address,
                element: element(data_type)?,
                rows: rows.into(),
                columns: columns.into(),
                pitch: pitch.into(),
                stride,
                transposed: false,
            })
        };
        let [m, n, k] = self.sizes;
        let c = matrix(2, m, n)?;
        let product = Product {
            function: self.function,
            matrices: [matrix(0, m, k)?, matrix(1, k, n)?, c.clone(), c],
            batch: batch.into(),
            compute,
            scalars: self.scalars,
            beside: Vec::new(),
            notes: String::new(),
        };
        product.enqueue(state, stream)
    }
}

/// cudaDataType and cublasComputeType_t of f32 and f64.
const F32: c_int = 0;
const F64: c_int = 1;
const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;

exported! { CUBLAS:
    fn cublasCreate_v2(to: *mut u64) = |state| {
        let (name, handle) = (state.names.next("blas"), state.made());
        log!("create {name}");
        state.blas.insert(handle, Blas { name, stream: 0 });
        make(to, handle)
    };

    fn cublasDestroy_v2(handle: u64) = |state| {
        let blas = removed(&mut state.blas, handle, "cuBLAS handle")?;
        log!("destroy {}", blas.name);
        Ok(())
    };

    fn cublasSetStream_v2(handle: u64, stream: u64) = |state| {
        let stream = state.usable_stream(stream)?;
        let blas = known(&mut state.blas, handle, "cuBLAS handle")?;
        blas.stream = stream;
        log!("{} works on {}", blas.name, state.streams[&stream].name);
        Ok(())
    };

    fn cublasGetProperty(property: c_int, value: *mut c_int) = |_state| {
        put(value, VERSION[property as usize])
    };
}

/// Exports a product. Its arguments are in the order of cuBLAS; `$own` interprets those between
/// `alpha`, `beta` and the end.
macro_rules! gemm {
    ($name:ident($($ab:ident: $of_ab:ty),*; $($c:ident: $of_c:ty),*) = $own:expr) => {
        exported! { CUBLAS:
            fn $name(
                handle: u64, of_a: c_int, of_b: c_int, m: c_int, n: c_int, k: c_int,
                alpha: *const c_void, $($ab: $of_ab,)* beta: *const c_void, $($c: $of_c),*
            ) = |state| {
                let (operations, sizes, scalars) = ([of_a, of_b], [m, n, k], [alpha, beta]);
                let function = stringify!($name);
                Gemm { function, handle, operations, sizes, scalars }.enqueue(state, $own)
            };
        }
    };
}

gemm! { cublasSgemm_v2(a: u64, lda: c_int, b: u64, ldb: c_int; c: u64, ldc: c_int) =
    ([(a, F32, lda, 0), (b, F32, ldb, 0), (c, F32, ldc, 0)], 1, COMPUTE_32F)
}

gemm! { cublasDgemm_v2(a: u64, lda: c_int, b: u64, ldb: c_int; c: u64, ldc: c_int) =
    ([(a, F64, lda, 0), (b, F64, ldb, 0), (c, F64, ldc, 0)], 1, COMPUTE_64F)
}

gemm! { cublasSgemmStridedBatched(
        a: u64, lda: c_int, every_a: i64, b: u64, ldb: c_int, every_b: i64;
        c: u64, ldc: c_int, every_c: i64, batch: c_int
    ) = (
        [(a, F32, lda, every_a), (b, F32, ldb, every_b), (c, F32, ldc, every_c)],
        batch,
        COMPUTE_32F,
    )
}

// Ampere and later ignore the requested algorithm.
gemm! { cublasGemmEx(
        a: u64, of_type_a: c_int, lda: c_int, b: u64, of_type_b: c_int, ldb: c_int;
        c: u64, of_type_c: c_int, ldc: c_int, compute: c_int, _algorithm: c_int
    ) = ([(a, of_type_a, lda, 0), (b, of_type_b, ldb, 0), (c, of_type_c, ldc, 0)], 1, compute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Kind;
    use crate::tests::opened;

    /// Products C = A B of f32, of 3 terms, in matrices of 4 rows.
    #[test]
    fn operands_lie_in_their_allocations_to_the_last_element() {
        let (alpha, beta) = (1.5f32, 0f32);
        for (bytes, rows, batch, corruption) in [
            ([48, 24, 32], 4, 1, None),
            ([48, 24, 31], 4, 1, Some("past d3")),
            // Rows beyond those of the block are left alone.
            ([44, 24, 28], 3, 1, None),
            ([44, 24, 27], 3, 1, Some("past d3")),
            // The first matrix is for all.
            ([48, 72, 96], 4, 3, None),
            ([48, 72, 95], 4, 3, Some("past d3")),
            ([48, 24, 0], 4, 1, Some("lies in a")),
        ] {
            let (mut state, stream) = opened();
            let name = "blas".to_owned();
            state.blas.insert(1, Blas { name, stream });
            let mut at = bytes.map(|bytes| state.allocate(Kind::Device, bytes).unwrap());
            if bytes[2] == 0 {
                at[2] = at[0] + 16;
            }
            let gemm = Gemm {
                function: "cublasGemmEx",
                handle: 1,
                operations: [0; 2],
                sizes: [rows, 2, 3],
                scalars: [(&raw const alpha).cast(), (&raw const beta).cast()],
            };
            let operands = [(at[0], F32, 4, 0), (at[1], F32, 3, 6), (at[2], F32, 4, 8)];
            let fault = gemm.enqueue(&mut state, (operands, batch, COMPUTE_32F));
            let why = fault.err().map(|fault| fault.why).unwrap_or_default();
            assert_eq!(why.is_empty(), corruption.is_none(), "{bytes:?}: {why}");
            assert!(why.contains(corruption.unwrap_or_default()), "{why}");
        }
    }
}
