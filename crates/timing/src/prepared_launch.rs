//! A prepared launch.

use std::any::Any;
use std::ffi::c_void;
use std::rc::Rc;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DeviceRepr, result, sys};

use crate::cuda_error::{Called, CudaError};

/// Upper bound on the launches queued behind one gate. Measured on an H200 with driver 580:
/// about 1,000 fit, and from 400 on the constant cost of gate and events no longer shows
/// (samples spread by 0.015 %). Less than half of what fits leaves room for library calls that
/// launch a second kernel.
pub const LAUNCHES_PER_GATE: u32 = 448;

/// How long a gate waits for the host. Queueing a batch takes a few milliseconds.
pub(crate) const GATE_TIMEOUT: Duration = Duration::from_secs(5);

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
/// // SAFETY: it is the only stream of the program.
/// let time = unsafe { CudaTime::new(0) }?;
/// let stream = time.stream().expect("opened on a device");
/// let numbers = stream.alloc_zeros::<f32>(1024)?;
/// let (address, _guard) = numbers.device_ptr(stream);
/// let scale = Launch::new(scale_kernel(&time), (4, 1, 1), (256, 1, 1)).arg(2.0f32).arg(address);
/// // SAFETY: the kernel takes a factor and the address of as many floats as it has threads.
/// let ns = time.measure(Clock::EventsGated, 100, || unsafe { scale.launch(stream) })?;
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Debug)]
pub struct Launch {
    function: CudaFunction,
    grid: (u32, u32, u32),
    block: (u32, u32, u32),
    shared_bytes: u32,
    arguments: KernelArguments,
}

/// The arguments of a kernel.
#[derive(Debug, Default)]
struct KernelArguments {
    // A move of an `Rc` leaves pointers to its value valid, and a move of a `Box` does not.
    values: Vec<Rc<dyn Any>>,
    /// The address of each value, as the driver takes them.
    pointers: Vec<*mut c_void>,
}

impl KernelArguments {
    fn push(&mut self, value: impl Any) {
        let value = Rc::new(value);
        self.pointers.push(Rc::as_ptr(&value).cast_mut().cast());
        self.values.push(value);
    }
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
            arguments: KernelArguments::default(),
        }
    }

    /// Sets the dynamic shared memory of a block, in bytes.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Adds the next argument by value: a number, or a device address as `CUdeviceptr`.
    pub fn arg<T: DeviceRepr + 'static>(mut self, value: T) -> Self {
        self.arguments.push(value);
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
    /// The driver's error of `cuLaunchKernel`.
    pub unsafe fn launch(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: the caller answers for kernel, memory and context. The driver only reads the values behind
        // `pointers`, before it returns, and `self` owns them.
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
                self.arguments.pointers.as_ptr().cast_mut(),
                std::ptr::null_mut(),
            )
        };
        CudaError::check("cuLaunchKernel", status)
    }
}

/// Makes the context current on this thread. A thread needs this once before it calls
/// [`Launch::launch`].
///
/// # Errors
/// The driver's error of `cuCtxSetCurrent`.
pub fn bind(context: &CudaContext) -> Result<(), CudaError> {
    // SAFETY: `context` retains it.
    unsafe { result::ctx::set_current(context.cu_ctx()) }.called("cuCtxSetCurrent")
}

/// Waits until `stream` is idle. Then an error of an earlier call that could not return it is reported:
/// cudarc's own function would return it without waiting.
///
/// # Errors
/// The driver's, also that of earlier work on the stream.
#[doc(hidden)]
pub fn synchronize(stream: &CudaStream) -> Result<(), CudaError> {
    let context = stream.context();
    bind(context)?;
    // SAFETY: the stream is borrowed, so it has not been destroyed.
    unsafe { result::stream::synchronize(stream.cu_stream()) }.called("cuStreamSynchronize")?;
    context.check_err().called("cuStreamSynchronize")
}

/// [`synchronize`] for all streams of a context.
pub(crate) fn synchronize_context(context: &CudaContext) -> Result<(), CudaError> {
    bind(context)?;
    result::ctx::synchronize().called("cuCtxSynchronize")?;
    context.check_err().called("cuCtxSynchronize")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_where_their_addresses_say() {
        let mut arguments = KernelArguments::default();
        (0..100u64).for_each(|value| arguments.push(value));
        let moved = arguments;
        let read = |pointer: &*mut c_void| {
            // SAFETY: the address of a value of this type, which `moved` owns.
            unsafe { pointer.cast::<u64>().read() }
        };
        assert!(moved.pointers.iter().map(read).eq(0..100));
    }
}
