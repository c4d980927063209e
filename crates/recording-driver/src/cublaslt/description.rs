//! The descriptors of a product, which a caller creates: the operation and the layouts of its
//! matrices.

use std::ffi::{c_int, c_void};

use crate::cublas;
use crate::library::{Handles, library, unknown};
use crate::product::{CUBLAS, Compute, Element, Matrix, status};
use crate::state::Answer;

/// How a product is computed, and what follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    pub(super) compute: Compute,
    pub(super) transposed: [bool; 2],
    pub(super) epilogue: Epilogue,
    /// Zero where there is none.
    pub(super) bias: u64,
}

/// What is done to a product before it is stored; cublasLtEpilogue_t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epilogue {
    Nothing,
    Bias,
    ReluBias,
}

impl Epilogue {
    pub(super) fn of(number: u32) -> Answer<Self> {
        Ok(match number {
            1 => Self::Nothing,
            4 => Self::Bias,
            6 => Self::ReluBias,
            other => return Err(unknown("epilogue", other)),
        })
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Bias => ", then the bias",
            Self::ReluBias => ", then the bias and ReLU",
        }
    }
}

/// Type, sizes and number of matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(super) element: Element,
    pub(super) rows: i64,
    pub(super) columns: i64,
    pitch: i64,
    pub(super) batch: i32,
    stride: i64,
}

impl Layout {
    pub(super) fn matrix(self, address: u64, transposed: bool) -> Matrix {
        let Self {
            element,
            rows,
            columns,
            pitch,
            stride,
            ..
        } = self;
        Matrix {
            address,
            element,
            rows,
            columns,
            pitch,
            stride,
            transposed,
        }
    }
}

pub(crate) static DESCRIPTIONS: Handles<Description> =
    Handles::new("matmul description", status::INVALID_VALUE, 0xb1a6_0000);
pub(crate) static LAYOUTS: Handles<Layout> =
    Handles::new("layout", status::INVALID_VALUE, 0xb1a7_0000);
/// The most bytes of workspace of each preference.
pub(crate) static PREFERENCES: Handles<u64> =
    Handles::new("preference", status::INVALID_VALUE, 0xb1a8_0000);

/// Reads an attribute of `bytes` bytes.
fn attribute<T: Copy>(value: *const c_void, bytes: usize) -> Answer<T> {
    let right = size_of::<T>();
    if bytes != right {
        return Err(CUBLAS.invalid(format!("an attribute of {right} B is given {bytes}")));
    }
    CUBLAS.get(value.cast())
}

/// A number of rows or columns.
fn size(value: u64) -> Answer<i64> {
    i64::try_from(value).map_err(|_| CUBLAS.invalid("a matrix is too large"))
}

library! { CUBLAS:
    fn cublasLtMatmulDescCreate(description: *mut u64, compute: c_int, scalars: c_int) = {
        let compute = Compute::of(compute)?;
        if Element::of(scalars)? != compute.scalars() {
            return Err(unknown("scalars of another type than the sums:", scalars));
        }
        let new = Description {
            compute,
            transposed: [false; 2],
            epilogue: Epilogue::Nothing,
            bias: 0,
        };
        CUBLAS.make(description, &DESCRIPTIONS, new).map(drop)
    };

    fn cublasLtMatmulDescSetAttribute(
        description: u64,
        which: c_int,
        value: *const c_void,
        bytes: usize,
    ) = {
        let mut changed = DESCRIPTIONS.copy(description)?;
        match which {
            3 => changed.transposed[0] = cublas::transposed(attribute(value, bytes)?)?,
            4 => changed.transposed[1] = cublas::transposed(attribute(value, bytes)?)?,
            7 => changed.epilogue = Epilogue::of(attribute(value, bytes)?)?,
            8 => changed.bias = attribute(value, bytes)?,
            other => return Err(unknown("the attribute of a matmul description", other)),
        }
        DESCRIPTIONS.with(description, |description| *description = changed)
    };

    fn cublasLtMatmulDescDestroy(description: u64) = DESCRIPTIONS.remove(description).map(drop);

    fn cublasLtMatrixLayoutCreate(
        layout: *mut u64,
        element: c_int,
        rows: u64,
        columns: u64,
        pitch: i64,
    ) = {
        let new = Layout {
            element: Element::of(element)?,
            rows: size(rows)?,
            columns: size(columns)?,
            pitch,
            batch: 1,
            stride: 0,
        };
        CUBLAS.make(layout, &LAYOUTS, new).map(drop)
    };

    fn cublasLtMatrixLayoutSetAttribute(
        layout: u64,
        which: c_int,
        value: *const c_void,
        bytes: usize,
    ) = {
        let mut changed = LAYOUTS.copy(layout)?;
        match which {
            5 => changed.batch = attribute(value, bytes)?,
            6 => changed.stride = attribute(value, bytes)?,
            other => return Err(unknown("the attribute of a layout", other)),
        }
        LAYOUTS.with(layout, |layout| *layout = changed)
    };

    fn cublasLtMatrixLayoutDestroy(layout: u64) = LAYOUTS.remove(layout).map(drop);

    fn cublasLtMatmulPreferenceCreate(preference: *mut u64) = {
        CUBLAS.make(preference, &PREFERENCES, 0).map(drop)
    };

    fn cublasLtMatmulPreferenceSetAttribute(
        preference: u64,
        which: c_int,
        value: *const c_void,
        bytes: usize,
    ) = {
        if which != 1 {
            return Err(unknown("the attribute of a preference", which));
        }
        let most = attribute(value, bytes)?;
        PREFERENCES.with(preference, |workspace| *workspace = most)
    };

    fn cublasLtMatmulPreferenceDestroy(preference: u64) = PREFERENCES.remove(preference).map(drop);
}
