//! Calls on streams, events and pinned memory, as cudarc makes them, with errors that name
//! CUDA's call.

use std::mem::MaybeUninit;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream, PinnedHostSlice, ValidAsZeroBits, result, sys};

pub(crate) use crate::timing::synchronize;
use crate::timing::{Called, CudaError, bind};

/// Records `event` on `stream`: it happens once the work enqueued so far is done.
pub(crate) fn record(event: &CudaEvent, stream: &CudaStream) -> Result<(), CudaError> {
    event.record(stream).called("cuEventRecord")
}

/// Makes work that is enqueued on `stream` from now on wait for `event`.
pub(crate) fn wait(stream: &CudaStream, event: &CudaEvent) -> Result<(), CudaError> {
    stream.wait(event).called("cuStreamWaitEvent")
}

/// Makes work that is enqueued on `then` from now on wait for the work on `first`, which may be of another
/// device. The context of `then` is current afterwards.
pub(crate) fn order(
    event: &CudaEvent,
    first: &CudaStream,
    then: &CudaStream,
) -> Result<(), CudaError> {
    record(event, first)?;
    bind(then.context())?;
    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
    // SAFETY: both are borrowed. cudarc's own function refuses streams of another context.
    unsafe { result::stream::wait_event(then.cu_stream(), event.cu_event(), flags) }
        .called("cuStreamWaitEvent")
}

/// The places of pinned memory, which may not be initialised. cudarc first waits for an event of the slice,
/// which this crate never records.
pub(crate) fn pinned_places<T: ValidAsZeroBits>(
    slice: &mut PinnedHostSlice<T>,
) -> Result<&mut [MaybeUninit<T>], CudaError> {
    let first = slice.as_mut_ptr().called("cuEventSynchronize")?;
    // SAFETY: the slice owns as many values, initialised or not, and is borrowed mutably.
    Ok(unsafe { std::slice::from_raw_parts_mut(first.cast(), slice.len()) })
}

/// The address at which the device accesses pinned memory.
///
/// # Errors
/// The driver's, also where the memory is not pinned.
pub(crate) fn mapped_address<T>(pinned: *mut [T]) -> Result<CUdeviceptr, CudaError> {
    let mut address = 0;
    let host = pinned.cast();
    // SAFETY: the driver writes to `address`, does not access the memory, and refuses addresses that
    // it has not pinned.
    CudaError::check("cuMemHostGetDevicePointer", unsafe {
        sys::cuMemHostGetDevicePointer_v2(&mut address, host, 0)
    })?;
    Ok(address)
}

/// Enqueues a copy of `from` to the device.
///
/// # Safety
/// The memory at `to` must have room for `from`, and both must stay as they are until the copy
/// is done.
pub(crate) unsafe fn copy_to_device<T>(
    from: &[T],
    to: CUdeviceptr,
    stream: &CudaStream,
) -> Result<(), CudaError> {
    // SAFETY: the stream is borrowed; the caller promises room at `to`, and that both stay until the end.
    unsafe { result::memcpy_htod_async(to, from, stream.cu_stream()) }.called("cuMemcpyHtoDAsync")
}

/// Enqueues a copy from the device that fills `to`.
///
/// # Safety
/// The memory at `from` must hold as many values as `to`, and neither may be touched until the
/// copy is done.
pub(crate) unsafe fn copy_to_host<T>(
    from: CUdeviceptr,
    to: &mut [T],
    stream: &CudaStream,
) -> Result<(), CudaError> {
    // SAFETY: the stream is borrowed; the caller promises values at `from`, and that both stay until the end.
    unsafe { result::memcpy_dtoh_async(to, from, stream.cu_stream()) }.called("cuMemcpyDtoHAsync")
}
