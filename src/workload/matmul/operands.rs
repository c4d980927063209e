//! The operands of a product in device memory.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr, sys::CUdeviceptr};

use crate::device::Gpu;
use crate::timing::{CudaError, DeviceMemory};

/// A and B of one problem, which all implementations without transfers read.
pub(super) struct Inputs<T> {
    gpu: Rc<Gpu>,
    a: CudaSlice<T>,
    b: CudaSlice<T>,
}

impl<T: DeviceRepr> Inputs<T> {
    pub(super) fn upload(gpu: &Rc<Gpu>, a: &[T], b: &[T]) -> Result<Self, CudaError> {
        Ok(Self {
            a: gpu.upload(a)?,
            b: gpu.upload(b)?,
            gpu: Rc::clone(gpu),
        })
    }

    pub(super) fn are_on(&self, gpu: &Rc<Gpu>) -> bool {
        Rc::ptr_eq(&self.gpu, gpu)
    }

    pub(super) fn memory(&self) -> [DeviceMemory; 2] {
        [&self.a, &self.b].map(|matrix| DeviceMemory {
            address: address(&self.gpu, matrix),
            bytes: matrix.num_bytes(),
        })
    }

    pub(super) fn a(&self) -> CUdeviceptr {
        address(&self.gpu, &self.a)
    }

    pub(super) fn b(&self) -> CUdeviceptr {
        address(&self.gpu, &self.b)
    }
}

/// The address of a slice, valid as long as the slice lives. Using one stream orders the work on
/// it.
pub(super) fn address<T>(gpu: &Gpu, values: &CudaSlice<T>) -> CUdeviceptr {
    values.device_ptr(gpu.stream()).0
}
