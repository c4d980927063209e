//! A prepared launch.

use std::ffi::c_void;
use std::fmt;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DeviceRepr, result, sys};

use crate::cuda_error::CudaError;

/// A kernel with its grid and arguments fixed, so that launching it is one driver call: no
/// allocation, no lock, no look-up.
///
/// cudarc's launch builder collects the arguments anew at every launch, which a benchmark of
/// launches would measure too.
pub struct Launch {
    function: CudaFunction,
    grid: (u32, u32, u32),
    block: (u32, u32, u32),
    shared_bytes: u32,
    // Boxed so that the addresses in `pointers` stay when `values` grows or the launch moves.
    values: Vec<Box<dyn std::any::Any>>,
    pointers: Vec<*mut c_void>,
}

impl Launch {
    /// A launch of `function` without arguments, on a grid of so many blocks of so many
    /// threads.
    pub fn new(function: CudaFunction, grid: (u32, u32, u32), block: (u32, u32, u32)) -> Self {
        Self {
            function,
            grid,
            block,
            shared_bytes: 0,
            values: Vec::new(),
            pointers: Vec::new(),
        }
    }

    /// Sets the dynamic shared memory of a block, in bytes.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Adds the next argument by value: a number, or a device address as `CUdeviceptr`.
    pub fn arg<T: DeviceRepr + 'static>(mut self, value: T) -> Self {
        let mut value = Box::new(value);
        self.pointers.push((&raw mut *value).cast());
        self.values.push(value);
        self
    }

    /// Enqueues the kernel on `stream`.
    ///
    /// # Safety
    /// The arguments must be those the kernel declares, every address must be valid for
    /// what the kernel does with it until the kernel has run, and the calling thread must
    /// have the stream's context current (see [`bind`]).
    ///
    /// # Errors
    /// The driver's error of `cuLaunchKernel`.
    pub unsafe fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: see above; `pointers` holds the addresses of `values`, which live in `self`.
        let status = unsafe {
            sys::cuLaunchKernel(
                self.function.cu_function(),
                self.grid.0,
                self.grid.1,
                self.grid.2,
                self.block.0,
                self.block.1,
                self.block.2,
                self.shared_bytes,
                stream.cu_stream(),
                self.pointers.as_ptr().cast_mut(),
                std::ptr::null_mut(),
            )
        };
        CudaError::check("cuLaunchKernel", status)
    }
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("grid", &self.grid)
            .field("block", &self.block)
            .field("shared_bytes", &self.shared_bytes)
            .field("arguments", &self.values.len())
            .finish_non_exhaustive()
    }
}

/// Makes the context current on this thread, which [`Launch::launch`] needs once.
///
/// # Errors
/// The driver's error of `cuCtxSetCurrent`.
pub fn bind(context: &CudaContext) -> Result<(), CudaError> {
    // SAFETY: the context is alive as long as the reference.
    unsafe { result::ctx::set_current(context.cu_ctx()) }
        .map_err(|e| CudaError::new("cuCtxSetCurrent", e))
}
