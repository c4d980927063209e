//! The differences between products of f32 and of f64.

use gemm_common::Parallelism;
use ndarray::{ArrayView2, ArrayViewMut2};

use crate::model::Format;
use crate::workload::number::Number;
use crossover_arithmetic::direct;

/// C = A B on the calling thread.
pub(super) type Direct<T> = fn(ArrayView2<'_, T>, ArrayView2<'_, T>, ArrayViewMut2<'_, T>);

/// A format that products are computed in.
pub trait Element: Number {
    /// The name of the format.
    const FORMAT: Format;
    /// The product without packing, where there is one.
    const DIRECT: Option<Direct<Self>>;
    /// C = A B by the crate gemm, on the calling thread.
    fn gemm(a: ArrayView2<'_, Self>, b: ArrayView2<'_, Self>, c: ArrayViewMut2<'_, Self>);
}

macro_rules! gemm {
    ($of_type:path) => {
        fn gemm(a: ArrayView2<'_, Self>, b: ArrayView2<'_, Self>, mut c: ArrayViewMut2<'_, Self>) {
            let ((m, k), n) = (a.dim(), b.ncols());
            assert!(b.nrows() == k && c.dim() == (m, n));
            let (a_rows, a_columns) = (a.strides()[0], a.strides()[1]);
            let (b_rows, b_columns) = (b.strides()[0], b.strides()[1]);
            let (c_rows, c_columns) = (c.strides()[0], c.strides()[1]);
            let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            let (multiply, on) = ($of_type(), Parallelism::None);
            // Its kernels write columns, and the rows of C are the columns of the transposed product,
            // which is that of B and A transposed. C is not read and nothing is conjugated.
            // SAFETY: the views have these shapes and strides, and `c` was borrowed for writing.
            unsafe {
                multiply(
                    n, m, k, c, c_rows, c_columns, false, b, b_rows, b_columns, a, a_rows,
                    a_columns, 0.0, 1.0, false, false, false, on,
                );
            }
        }
    };
}

impl Element for f32 {
    const FORMAT: Format = Format::F32;
    const DIRECT: Option<Direct<Self>> = Some(direct::multiply);

    gemm!(gemm_f32::gemm::f32::get_gemm_fn);
}

impl Element for f64 {
    const FORMAT: Format = Format::F64;
    const DIRECT: Option<Direct<Self>> = None;

    gemm!(gemm_f64::gemm::f64::get_gemm_fn);
}
