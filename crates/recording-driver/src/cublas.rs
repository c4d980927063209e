//! Stands in for cuBLAS: handles and products of matrices by columns.
//! <https://docs.nvidia.com/cuda/cublas/>

use std::ffi::{c_int, c_void};

use crate::library::{Handles, library, unknown};
use crate::log;
use crate::product::{CUBLAS, Compute, Element, Matrix, Product, status};
use crate::state::{Answer, lock};

/// The stream of each handle. cuBLAS allocates a workspace of its own for each, which is not
/// modelled.
pub(crate) static HANDLES: Handles<u64> =
    Handles::new("blas", status::NOT_INITIALIZED, 0xb1a5_0000);

/// The version that the stand-in says it is, that of CUDA 13.0 Update 2: major, minor, patch.
const VERSION: [c_int; 3] = [13, 1, 0];

/// `CUBLAS_OP_N`, `CUBLAS_OP_T`, and the conjugate of it, which is the same for real numbers.
pub(crate) fn transposed(operation: c_int) -> Answer<bool> {
    match operation {
        0 => Ok(false),
        1 | 2 => Ok(true),
        other => Err(CUBLAS.invalid(format!("{other} is no operation"))),
    }
}

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
    /// One product of whole matrices in one format, but for what all products have.
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

    fn matrix(
        &self,
        i: usize,
        (rows, columns): (c_int, c_int),
        operation: c_int,
    ) -> Answer<Matrix> {
        let transposed = transposed(operation)?;
        let (rows, columns) = if transposed {
            (columns, rows)
        } else {
            (rows, columns)
        };
        let element = Element::of(self.data_types[i])?;
        if element == Element::E4m3 {
            return Err(unknown(
                "a product by cuBLAS, and not by cuBLASLt, of",
                element,
            ));
        }
        Ok(Matrix {
            address: self.addresses[i],
            element,
            rows: rows.into(),
            columns: columns.into(),
            pitch: self.pitches[i].into(),
            stride: self.strides[i],
            transposed,
        })
    }

    fn enqueue(self) -> Answer {
        let stream = HANDLES.copy(self.handle)?;
        let ([m, n, k], [of_a, of_b]) = (self.sizes, self.operations);
        let compute = Compute::of(self.compute)?;
        let c = self.matrix(2, (m, n), 0)?;
        let product = Product {
            function: self.function,
            a: self.matrix(0, (m, k), of_a)?,
            b: self.matrix(1, (k, n), of_b)?,
            d: c.clone(),
            c,
            batch: self.batch.into(),
            alpha: compute.scalar(self.scalars[0])?,
            beta: compute.scalar(self.scalars[1])?,
            compute,
            beside: Vec::new(),
            notes: String::new(),
        };
        product.enqueue(stream)
    }
}

/// cudaDataType and cublasComputeType_t of f32 and f64.
const F32: c_int = 0;
const F64: c_int = 1;
const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;
/// Bits that an emulated product is said to keep: seven slices.
const EMULATED_BITS: i32 = 55;

library! { CUBLAS:
    fn cublasCreate_v2(handle: *mut u64) = {
        let new = CUBLAS.make(handle, &HANDLES, 0)?;
        log::call(format_args!("create {}", HANDLES.name_of(new)));
        Ok(())
    };

    fn cublasDestroy_v2(handle: u64) = {
        let name = HANDLES.remove(handle)?;
        log::call(format_args!("destroy {name}"));
        Ok(())
    };

    fn cublasSetStream_v2(handle: u64, stream: u64) = {
        HANDLES.with(handle, |of_handle| *of_handle = stream)?;
        let mut state = lock();
        let usable = state.usable_stream(stream).map_err(|fault| CUBLAS.invalid(fault.why))?;
        let (handle, stream) = (HANDLES.name_of(handle), &state.streams[&usable].name);
        log::call(format_args!("{handle} works on {stream}"));
        Ok(())
    };

    fn cublasGetProperty(property: c_int, value: *mut c_int) = {
        let asked = usize::try_from(property).ok().and_then(|i| VERSION.get(i));
        let asked = asked.ok_or_else(|| CUBLAS.invalid(format!("{property} is no property")))?;
        CUBLAS.put(value, *asked)
    };

    fn cublasSetEmulationStrategy(handle: u64, strategy: c_int) = {
        HANDLES.copy(handle)?;
        match strategy {
            0..=2 => Ok(()),
            other => Err(CUBLAS.invalid(format!("{other} is no strategy of emulation"))),
        }
    };

    // No kernel runs, so the number is written here and not by the product.
    fn cublasSetFixedPointEmulationMantissaBitCountPointer(handle: u64, count: u64) = {
        HANDLES.copy(handle)?;
        if count == 0 {
            return Ok(());
        }
        let place = lock().memory.check(count, size_of::<i32>() as u64);
        let place = place.map_err(|fault| CUBLAS.invalid(fault.why))?;
        CUBLAS.put(place.content as *mut i32, EMULATED_BITS)
    };
}

/// Exports a product. Its arguments are in the order of cuBLAS, those between `alpha`, `beta` and the end are
/// its own, and `$own` says what they are.
macro_rules! gemm {
    ($name:ident($($ab:ident: $of_ab:ty),*; $($c:ident: $of_c:ty),*) = $own:expr) => {
        library! { CUBLAS:
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
            ) = Gemm {
                function: stringify!($name),
                handle,
                operations: [of_a, of_b],
                sizes: [m, n, k],
                scalars: [alpha, beta],
                ..$own
            }
            .enqueue();
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

// Ampere and later ignore which algorithm is asked for.
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
    use crate::fault::Fault;
    use crate::library::testing::{allocated, freed, stream};

    fn handle() -> u64 {
        let mut handle = 0;
        // SAFETY: the address of a handle.
        assert_eq!(unsafe { cublasCreate_v2(&mut handle) }, 0);
        // SAFETY: no pointers.
        assert_eq!(unsafe { cublasSetStream_v2(handle, stream()) }, 0);
        handle
    }

    const SCALARS: [*const c_void; 2] = [(&raw const ALPHA).cast(), (&raw const BETA).cast()];
    static ALPHA: f32 = 1.5;
    static BETA: f32 = 0.0;

    /// C = A B of f32, 4 x 2 x 3, in memory of just that size.
    fn gemm() -> Gemm {
        Gemm {
            function: "cublasGemmEx",
            handle: handle(),
            sizes: [4, 2, 3],
            scalars: SCALARS,
            ..Gemm::new(F32, COMPUTE_32F, [48, 24, 32].map(allocated), [4, 3, 4])
        }
    }

    /// Why a product that is changed so is not enqueued.
    fn fault(change: impl FnOnce(&mut Gemm)) -> Fault {
        let mut changed = gemm();
        change(&mut changed);
        changed.enqueue().unwrap_err()
    }

    fn corruption(change: impl FnOnce(&mut Gemm)) -> String {
        let fault = fault(change);
        assert!(fault.corrupts, "{fault:?}");
        fault.why
    }

    #[test]
    fn operands_lie_in_their_allocations_to_the_last_element() {
        assert_eq!(gemm().enqueue(), Ok(()));
        // Rows beyond those of the block are not touched.
        let block = |bytes: u64| Gemm {
            sizes: [3, 2, 3],
            pitches: [4, 3, 4],
            addresses: [44, 24, bytes].map(allocated),
            ..gemm()
        };
        assert_eq!(block(28).enqueue(), Ok(()));
        assert!(block(27).enqueue().unwrap_err().corrupts);
        let batched = |bytes: u64| Gemm {
            batch: 3,
            strides: [0, 6, 8],
            addresses: [48, 72, bytes].map(allocated),
            ..gemm()
        };
        assert_eq!(batched(96).enqueue(), Ok(()), "a is the same for all");
        assert!(batched(95).enqueue().unwrap_err().corrupts);
        let why = corruption(|gemm| gemm.addresses[1] = freed(24));
        assert!(why.starts_with("b: "), "{why}");
        assert!(why.ends_with("is used after it was freed"), "{why}");
        let why = corruption(|gemm| gemm.addresses[2] = gemm.addresses[0] + 16);
        assert!(why.ends_with("lies in a"), "{why}");
    }
}
