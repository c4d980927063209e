//! The descriptors of a product, which a caller creates: the operation and the layouts of its
//! matrices.

use std::ffi::{c_int, c_void};

use crate::call::{exported, get, make};
use crate::fault::Fault;
use crate::product::{CUBLAS, Compute, Element, Matrix};
use crate::state::{Outcome, known};

/// How a product is computed, and what follows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    pub(super) compute: Compute,
    pub(super) transposed: [bool; 2],
    pub(super) epilogue: Epilogue,
    /// Zero where there is none.
    pub(super) bias: u64,
}

/// The epilogue of a product; cublasLtEpilogue_t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Epilogue {
    Nothing,
    Bias,
    ReluBias,
}

impl Epilogue {
    pub(super) fn of(number: u32) -> Outcome<Self> {
        Ok(match number {
            1 => Self::Nothing,
            4 => Self::Bias,
            6 => Self::ReluBias,
            other => return Err(Fault::unknown("epilogue", other)),
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

/// Reads an attribute of `bytes` bytes.
fn attribute<T: Copy>(value: *const c_void, bytes: usize) -> Outcome<T> {
    let right = size_of::<T>();
    if bytes != right {
        return Err(Fault::invalid(format!(
            "an attribute of {right} B is given {bytes}"
        )));
    }
    get(value.cast())
}

/// `CUBLAS_OP_N` or `CUBLAS_OP_T`.
fn transposed(operation: c_int) -> Outcome<bool> {
    match operation {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Fault::unknown("the operation", other)),
    }
}

exported! { CUBLAS:
    fn cublasLtMatmulDescCreate(to: *mut u64, compute: c_int, scalars: c_int) = |state| make(state, to, |state| {
        let compute = Compute::of(compute)?;
        if Element::of(scalars)? != compute.scalars() {
            return Err(Fault::unknown("scalars of another type than the sums:", scalars));
        }
        let new = Description {
            compute,
            transposed: [false; 2],
            epilogue: Epilogue::Nothing,
            bias: 0,
        };
        let handle = state.made();
        state.descriptions.insert(handle, new);
        Ok(handle)
    });

    fn cublasLtMatmulDescSetAttribute(
        description: u64,
        which: c_int,
        value: *const c_void,
        bytes: usize,
    ) = |state| {
        let changed = known(&mut state.descriptions, description, "matmul description")?;
        match which {
            3 => changed.transposed[0] = transposed(attribute(value, bytes)?)?,
            4 => changed.transposed[1] = transposed(attribute(value, bytes)?)?,
            7 => changed.epilogue = Epilogue::of(attribute(value, bytes)?)?,
            8 => changed.bias = attribute(value, bytes)?,
            other => return Err(Fault::unknown("the attribute of a matmul description", other)),
        }
        Ok(())
    };

    fn cublasLtMatmulDescDestroy(description: u64) = |state| {
        known(&mut state.descriptions, description, "matmul description")?;
        state.descriptions.remove(&description);
        Ok(())
    };

    fn cublasLtMatrixLayoutCreate(
        to: *mut u64,
        element: c_int,
        rows: u64,
        columns: u64,
        pitch: i64,
    ) = |state| make(state, to, |state| {
        let new = Layout {
            element: Element::of(element)?,
            rows: rows as i64,
            columns: columns as i64,
            pitch,
            batch: 1,
            stride: 0,
        };
        let handle = state.made();
        state.layouts.insert(handle, new);
        Ok(handle)
    });

    fn cublasLtMatrixLayoutSetAttribute(
        layout: u64,
        which: c_int,
        value: *const c_void,
        bytes: usize,
    ) = |state| {
        let changed = known(&mut state.layouts, layout, "layout")?;
        match which {
            5 => changed.batch = attribute(value, bytes)?,
            6 => changed.stride = attribute(value, bytes)?,
            other => return Err(Fault::unknown("the attribute of a layout", other)),
        }
        Ok(())
    };

    fn cublasLtMatrixLayoutDestroy(layout: u64) = |state| {
        known(&mut state.layouts, layout, "layout")?;
        state.layouts.remove(&layout);
        Ok(())
    };

    fn cublasLtMatmulPreferenceCreate(to: *mut u64) = |state| make(state, to, |state| {
        let handle = state.made();
        state.preferences.insert(handle, 0);
        Ok(handle)
    });

    fn cublasLtMatmulPreferenceSetAttribute(
        preference: u64,
        which: c_int,
        value: *const c_void,
        bytes: usize,
    ) = |state| {
        if which != 1 {
            return Err(Fault::unknown("the attribute of a preference", which));
        }
        *known(&mut state.preferences, preference, "preference")? = attribute(value, bytes)?;
        Ok(())
    };

    fn cublasLtMatmulPreferenceDestroy(preference: u64) = |state| {
        known(&mut state.preferences, preference, "preference")?;
        state.preferences.remove(&preference);
        Ok(())
    };
}
