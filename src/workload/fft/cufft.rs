//! A plan of cuFFT.

use std::rc::Rc;

use cudarc::cufft::result::{self, CufftError};
use cudarc::cufft::sys;
use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Absence, Gpu};
use crate::timing::{CudaError, catch_panic};
use crate::workload::routine::RoutineError;

/// Why transforms by cuFFT are left out on a machine without it.
const NO_CUFFT: Absence = Absence::NoLibrary {
    library: "cuFFT",
    remedy: "install the CUDA toolkit's cuFFT (libcufft) to run its transforms",
};

/// From a signal to its spectrum or back, where the factor 1/N is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward = -1,
    Inverse = 1,
}

/// Complex transforms of one length, one signal behind the other, on the GPU's stream. The library
/// keeps memory for it on the device.
pub(super) struct Plan {
    handle: sys::cufftHandle,
}

impl Plan {
    /// # Errors
    /// [`NO_CUFFT`] without the library, and its own errors.
    pub(super) fn new(gpu: &Gpu, n: usize, batch: usize) -> Result<Rc<Self>, RoutineError> {
        // SAFETY: opens the library and closes it again; its initialisers are the vendor's.
        if !unsafe { sys::is_culib_present() } {
            return Err(NO_CUFFT.into());
        }
        gpu.bind()?;
        let (n, batch) = (i32::try_from(n)?, i32::try_from(batch)?);
        let make = || result::plan_1d(n, sys::cufftType::CUFFT_C2C, batch);
        // cudarc panics where the library lacks a symbol.
        let made = catch_panic(make).map_err(|_| NO_CUFFT)?;
        let plan = Self {
            handle: made.map_err(error)?,
        };
        // SAFETY: the plan was just made, and the stream lives as long as the GPU.
        unsafe { result::set_stream(plan.handle, gpu.stream().cu_stream().cast()) }
            .map_err(error)?;
        Ok(Rc::new(plan))
    }

    /// Enqueues the transforms.
    ///
    /// # Safety
    /// Both addresses must be of device memory for all signals of the plan, and nothing else may use
    /// it until the transforms are done.
    pub(super) unsafe fn enqueue(
        &self,
        direction: Direction,
        from: CUdeviceptr,
        to: CUdeviceptr,
    ) -> Result<(), CudaError> {
        let (from, to) = (from as *mut _, to as *mut _);
        // SAFETY: the caller's promise.
        unsafe { result::exec_c2c(self.handle, from, to, direction as i32) }.map_err(error)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: made by `new` and destroyed once. After the context was lost this fails, which was
        // reported before.
        let _ = unsafe { result::destroy(self.handle) };
    }
}

fn error(error: CufftError) -> CudaError {
    CudaError::with_message("cuFFT", format!("{:?}", error.0))
}
