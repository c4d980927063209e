//! Stands in for cuBLAS: handles and products of matrices by columns.
//! <https://docs.nvidia.com/cuda/cublas/>

use std::ffi::{c_int, c_void};

use crate::call::{exported, make, put};
use crate::fault::Fault;
use crate::log;
use crate::product::{CUBLAS, Compute, Element, Matrix, Product};
use crate::state::{Outcome, State, known};

/// The state behind a handle. The workspace that cuBLAS allocates for each handle is not modelled.
pub(crate) struct Blas {
    pub(crate) name: String,
    stream: u64,
}

/// The version that the stand-in reports, that of CUDA 13.0 Update 2: major, minor, patch.
const VERSION: [c_int; 3] = [13, 1, 0];

/// The arguments of a product in the order of cuBLAS.
struct Gemm {
    function: &'static str,
    handle: u64,
    operations: [c_int; 2],
    sizes: [c_int; 3],
    scalars: [*const c_void; 2],
    addresses: [u64; 3],
    data_types: [c_int; 3],
    pitches: [c_int; 3],
    strides: [i64; 3],
    batch: c_int,
    compute: c_int,
}

impl Gemm {
    /// A product of whole matrices in one format, with defaults for the other arguments.
    fn new(data_type: c_int, compute: c_int, addresses: [u64; 3], pitches: [c_int; 3]) -> Self {
        Self {
            function: "",
            handle: 0,
            operations: [0; 2],
            sizes: [0; 3],
            scalars: [std::ptr::null(); 2],
            addresses,
            data_types: [data_type; 3],
            pitches,
            strides: [0; 3],
            batch: 1,
            compute,
        }
    }

    fn matrix(&self, i: usize, rows: c_int, columns: c_int) -> Outcome<Matrix> {
        Ok(Matrix {
            address: self.addresses[i],
            element: Element::of(self.data_types[i])?,
            rows: rows.into(),
            columns: columns.into(),
            pitch: self.pitches[i].into(),
            stride: self.strides[i],
            transposed: false,
        })
    }

    fn enqueue(self, state: &mut State) -> Outcome {
        let stream = known(&mut state.blas, self.handle, "cuBLAS handle")?.stream;
        // `CUBLAS_OP_N`; rows that transpose operands use cuBLASLt.
        if self.operations != [0, 0] {
            return Err(Fault::unknown("an operation but `N` in", self.function));
        }
        let [m, n, k] = self.sizes;
        let compute = Compute::of(self.compute)?;
        let c = self.matrix(2, m, n)?;
        let product = Product {
            function: self.function,
            a: self.matrix(0, m, k)?,
            b: self.matrix(1, k, n)?,
            d: c.clone(),
            c,
            batch: self.batch.into(),
            alpha: compute.scalar(self.scalars[0])?,
            beta: compute.scalar(self.scalars[1])?,
            compute,
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
    fn cublasCreate_v2(to: *mut u64) = |state| make(state, to, |state| {
        let (name, handle) = (state.names.next("blas"), state.made());
        log::call(format_args!("create {name}"));
        state.blas.insert(handle, Blas { name, stream: 0 });
        Ok(handle)
    });

    fn cublasDestroy_v2(handle: u64) = |state| {
        let name = &known(&mut state.blas, handle, "cuBLAS handle")?.name;
        log::call(format_args!("destroy {name}"));
        state.blas.remove(&handle);
        Ok(())
    };

    fn cublasSetStream_v2(handle: u64, stream: u64) = |state| {
        let usable = state.usable_stream(stream)?;
        let blas = known(&mut state.blas, handle, "cuBLAS handle")?;
        blas.stream = stream;
        log::call(format_args!("{} works on {}", blas.name, state.streams[&usable].name));
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
                handle: u64,
                of_a: c_int,
                of_b: c_int,
                m: c_int,
                n: c_int,
                k: c_int,
                alpha: *const c_void,
                $($ab: $of_ab,)*
                beta: *const c_void,
                $($c: $of_c),*
            ) = |state| Gemm {
                function: stringify!($name),
                handle,
                operations: [of_a, of_b],
                sizes: [m, n, k],
                scalars: [alpha, beta],
                ..$own
            }
            .enqueue(state);
        }
    };
}

gemm! { cublasSgemm_v2(a: u64, lda: c_int, b: u64, ldb: c_int; c: u64, ldc: c_int) =
    Gemm::new(F32, COMPUTE_32F, [a, b, c], [lda, ldb, ldc])
}

gemm! { cublasDgemm_v2(a: u64, lda: c_int, b: u64, ldb: c_int; c: u64, ldc: c_int) =
    Gemm::new(F64, COMPUTE_64F, [a, b, c], [lda, ldb, ldc])
}

gemm! { cublasSgemmStridedBatched(
        a: u64, lda: c_int, stride_a: i64, b: u64, ldb: c_int, stride_b: i64;
        c: u64, ldc: c_int, stride_c: i64, batch: c_int
    ) = Gemm {
        strides: [stride_a, stride_b, stride_c],
        batch,
        ..Gemm::new(F32, COMPUTE_32F, [a, b, c], [lda, ldb, ldc])
    }
}

// Ampere and later ignore the requested algorithm.
gemm! { cublasGemmEx(
        a: u64, type_a: c_int, lda: c_int, b: u64, type_b: c_int, ldb: c_int;
        c: u64, type_c: c_int, ldc: c_int, compute: c_int, _algorithm: c_int
    ) = Gemm {
        data_types: [type_a, type_b, type_c],
        ..Gemm::new(type_a, compute, [a, b, c], [lda, ldb, ldc])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::opened;

    static ALPHA: f32 = 1.5;
    static BETA: f32 = 0.0;

    /// The error text of C = A B of f32, 4 x 2 x 3, in memory of so many bytes, if the call corrupts
    /// memory.
    fn corruption(bytes: [u64; 3], change: impl FnOnce(&mut State, &mut Gemm)) -> String {
        let (mut state, stream) = opened();
        let name = "blas".to_owned();
        state.blas.insert(1, Blas { name, stream });
        let matrices = bytes.map(|bytes| state.allocate(bytes).unwrap());
        let mut gemm = Gemm {
            function: "cublasGemmEx",
            handle: 1,
            sizes: [4, 2, 3],
            scalars: [(&raw const ALPHA).cast(), (&raw const BETA).cast()],
            ..Gemm::new(F32, COMPUTE_32F, matrices, [4, 3, 4])
        };
        change(&mut state, &mut gemm);
        let fault = gemm.enqueue(&mut state).err();
        assert!(fault.iter().all(|fault| fault.corrupts), "{fault:?}");
        fault.map_or_else(String::new, |fault| fault.why)
    }

    #[test]
    fn operands_lie_in_their_allocations_to_the_last_element() {
        assert_eq!(corruption([48, 24, 32], |_, _| {}), "");
        assert_ne!(corruption([48, 24, 31], |_, _| {}), "");
        let block = |_: &mut State, gemm: &mut Gemm| gemm.sizes = [3, 2, 3];
        let untouched = "rows beyond those of the block";
        assert_eq!(corruption([44, 24, 28], block), "", "{untouched}");
        assert_ne!(corruption([44, 24, 27], block), "");
        let batched = |_: &mut State, gemm: &mut Gemm| {
            gemm.batch = 3;
            gemm.strides = [0, 6, 8];
        };
        assert_eq!(corruption([48, 72, 96], batched), "", "a is for all");
        assert_ne!(corruption([48, 72, 95], batched), "");
        let why = corruption([48, 24, 32], |_, gemm| {
            gemm.addresses[2] = gemm.addresses[0] + 16;
        });
        assert!(why.ends_with("lies in a"), "{why}");
    }
}
