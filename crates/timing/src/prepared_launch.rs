//! A prepared launch.

use std::ffi::c_void;
use std::fmt;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DeviceRepr, result, sys};

use crate::cuda_error::{Called, CudaError};

/// Upper bound on the launches queued behind one gate. Measured on an H200 with driver 580:
/// about 1,000 fit, and from 400 on the constant cost of gate and events no longer shows
/// (samples spread by 0.015 %). Less than half of what fits leaves room for library calls that
/// launch a second kernel.
pub const LAUNCHES_PER_GATE: u32 = 448;

/// A kernel with its grid and arguments fixed, so that launching it is one driver call that
/// allocates nothing, takes no lock and looks nothing up.
///
/// cudarc's launch builder collects the arguments anew at every launch, which a benchmark of
/// launches would measure too.
///
/// ```no_run
/// use crossover_timing::cudarc::driver::{CudaFunction, DevicePtr};
/// use crossover_timing::{BoxError, Clock, CudaTime, Launch};
///
/// # fn scale_kernel(_: &CudaTime) -> CudaFunction { unimplemented!() }
/// let time = CudaTime::new(0)?;
/// let stream = time.stream().expect("opened on a device");
/// let numbers = stream.alloc_zeros::<f32>(1024)?;
/// let (address, _guard) = numbers.device_ptr(stream);
/// let scale = Launch::new(scale_kernel(&time), (4, 1, 1), (256, 1, 1)).arg(2.0f32).arg(address);
/// // SAFETY: the kernel takes a factor and the address of as many floats as it has threads.
/// let ns = time.measure(Clock::EventsGated, 100, 1, || unsafe { scale.launch(stream) })?;
/// # Ok::<(), BoxError>(())
/// ```
pub struct Launch {
    function: CudaFunction,
    grid: (u32, u32, u32),
    block: (u32, u32, u32),
    shared_bytes: u32,
    programmatic: bool,
    cooperative: bool,
    // Boxed so that the addresses in `pointers` stay when `values` grows or the launch moves.
    values: Vec<Box<dyn std::any::Any>>,
    pointers: Vec<*mut c_void>,
}

impl Launch {
    /// A launch of `function` on `grid` blocks of `block` threads each (x, y, z), without
    /// arguments so far.
    pub fn new(function: CudaFunction, grid: (u32, u32, u32), block: (u32, u32, u32)) -> Self {
        Self {
            function,
            grid,
            block,
            shared_bytes: 0,
            programmatic: false,
            cooperative: false,
            values: Vec::new(),
            pointers: Vec::new(),
        }
    }

    /// Sets the dynamic shared memory of a block, in bytes.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Lets the kernel start before the one ahead of it on the stream has ended, as soon as that
    /// one allows it (programmatic dependent launch). The kernel must execute
    /// `griddepcontrol.wait` before it touches memory that the other writes, or writes memory that
    /// the other reads. In a captured graph a programmatic edge joins the two.
    ///
    /// For devices of compute capability 9.0 and above.
    /// <https://docs.nvidia.com/cuda/cuda-c-programming-guide/#programmatic-dependent-launch-and-synchronization>
    pub fn programmatic(mut self) -> Self {
        self.programmatic = true;
        self
    }

    /// Has all blocks on the device at once, so that the kernel may wait for all of them (cooperative
    /// launch). More blocks than the device has room for are an error of the launch.
    ///
    /// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EXEC.html>
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
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
    /// The arguments must be those that the kernel declares, in their order and types; every
    /// address must be valid for what the kernel does with it until the kernel has run; and the
    /// stream's context must be current on the calling thread, as it is within a measurement
    /// (`CudaContext::bind_to_thread`).
    ///
    /// # Errors
    /// The driver's error of `cuLaunchKernel` or `cuLaunchKernelEx`.
    pub unsafe fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        if self.programmatic || self.cooperative {
            // SAFETY: the caller's promise.
            return unsafe { self.launch_with_attributes(stream) };
        }
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

    /// # Safety
    /// As [`launch`](Self::launch).
    unsafe fn launch_with_attributes(&self, stream: &CudaStream) -> Result<(), CudaError> {
        use sys::CUlaunchAttributeID::{
            CU_LAUNCH_ATTRIBUTE_COOPERATIVE as COOPERATIVE,
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION as PROGRAMMATIC,
        };
        let attribute = |id| sys::CUlaunchAttribute {
            id,
            pad: [0; 4],
            // All of it zero but for what the attribute reads.
            value: sys::CUlaunchAttributeValue { pad: [0; 64] },
        };
        let mut attributes = [attribute(PROGRAMMATIC), attribute(COOPERATIVE)];
        attributes[0].value.programmaticStreamSerializationAllowed = self.programmatic.into();
        attributes[1].value.cooperative = self.cooperative.into();
        // One of them, unless it is both: an attribute that says no would be one more for a driver to know.
        let first = usize::from(!self.programmatic);
        let attributes = &mut attributes[first..1 + usize::from(self.cooperative)];
        let config = sys::CUlaunchConfig {
            gridDimX: self.grid.0,
            gridDimY: self.grid.1,
            gridDimZ: self.grid.2,
            blockDimX: self.block.0,
            blockDimY: self.block.1,
            blockDimZ: self.block.2,
            sharedMemBytes: self.shared_bytes,
            hStream: stream.cu_stream(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as u32,
        };
        // SAFETY: as in `launch`; the configuration and its attributes outlive the call.
        let status = unsafe {
            sys::cuLaunchKernelEx(
                &raw const config,
                self.function.cu_function(),
                self.pointers.as_ptr().cast_mut(),
                std::ptr::null_mut(),
            )
        };
        CudaError::check("cuLaunchKernelEx", status)
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

/// Makes the context current on this thread. A thread needs this once before it calls
/// [`Launch::launch`].
///
/// # Errors
/// The driver's error of `cuCtxSetCurrent`.
pub fn bind(context: &CudaContext) -> Result<(), CudaError> {
    // SAFETY: the context is alive as long as the reference.
    unsafe { result::ctx::set_current(context.cu_ctx()) }.called("cuCtxSetCurrent")
}
