//! What differs between products of f32 and of f64.

use gemm_common::Parallelism;
use ndarray::{ArrayView2, ArrayViewMut2};

use crate::workload::matmul::direct;
use crate::workload::matmul::gemm::Call;
use crate::workload::number::Number;

/// C = A B on the calling thread.
pub(super) type Direct<T> = fn(ArrayView2<'_, T>, ArrayView2<'_, T>, ArrayViewMut2<'_, T>);

/// A product by the crate gemm: m, n and k; C and its strides by columns and rows, and whether it is read;
/// A and B likewise; the factors of C and of the product; what to conjugate; the threads.
pub(super) type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// A format that products are computed in.
pub trait Element: Number {
    /// The call of cuBLAS.
    const CALL: Call;
    /// Device memory that the library may take beside the matrices of order `n` to emulate the format, by
    /// its documentation's formula for 79 bits.
    fn workspace(_n: u64) -> u64 {
        0
    }
    /// The product without packing, where there is one.
    const DIRECT: Option<Direct<Self>>;
    /// That of the crate gemm.
    fn gemm() -> Gemm<Self>;
}

impl Element for f32 {
    const CALL: Call = Call::Single;
    const DIRECT: Option<Direct<Self>> = Some(direct::multiply);

    fn gemm() -> Gemm<Self> {
        gemm_f32::gemm::f32::get_gemm_fn()
    }
}

impl Element for f64 {
    const CALL: Call = Call::Double;
    const DIRECT: Option<Direct<Self>> = None;

    fn workspace(n: u64) -> u64 {
        let padded = n.next_multiple_of(1024).pow(2);
        // Ten slices of A and of B, and sums of 32 bits for each slice, a quarter more of both.
        let sums = (40 * padded).min(4 << 30) * n.div_ceil(8192);
        (128 << 20) + (20 * padded + sums) * 5 / 4
    }

    fn gemm() -> Gemm<Self> {
        gemm_f64::gemm::f64::get_gemm_fn()
    }
}
