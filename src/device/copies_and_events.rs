//! Calls on streams, events and pinned memory, as cudarc makes them, with errors that name
//! CUDA's call. Released pinned memory is kept for the next use.

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{CudaEvent, CudaStream, PinnedHostSlice, ValidAsZeroBits, result};

use crate::device::Gpu;
use crate::timing::{Called, CudaError, bind};

pub(crate) use crate::timing::synchronize;

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

/// The pinned memory that routines of a device have given back, the oldest first. Clones share it.
///
/// The system takes 0.1 s to lock the pages of 256 MiB, and a process that confirms answers needs as much at
/// several sizes.
#[derive(Clone, Default)]
pub(crate) struct PinnedPool(Rc<RefCell<Vec<PinnedHostSlice<u8>>>>);

impl PinnedPool {
    /// Smaller memory is released: locking it takes less time than a sample.
    const LEAST: usize = 1 << 20;
    /// Bytes that are kept.
    pub(crate) const MOST: usize = 1 << 30;
    /// Memory is used for as little as this part of it.
    const PART: usize = 4;

    /// A buffer of at least this number of bytes.
    ///
    /// # Safety
    /// As that of [`Gpu::alloc_pinned`].
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub(crate) unsafe fn take(
        &self,
        gpu: &Gpu,
        bytes: usize,
    ) -> Result<PinnedHostSlice<u8>, CudaError> {
        let mut kept = self.0.borrow_mut();
        let fits =
            |slice: &PinnedHostSlice<u8>| slice.len() >= bytes && slice.len() / Self::PART <= bytes;
        let fitting = kept.iter().enumerate().filter(|(_, slice)| fits(slice));
        if let Some((at, _)) = fitting.min_by_key(|(_, slice)| slice.len()) {
            return Ok(kept.remove(at));
        }
        drop(kept);
        // SAFETY: the caller's.
        unsafe { gpu.alloc_pinned(bytes) }
    }

    /// Takes memory back, which no device uses any more.
    pub(crate) fn give_back(&self, slice: PinnedHostSlice<u8>) {
        let mut kept = self.0.borrow_mut();
        if (Self::LEAST..=Self::MOST).contains(&slice.len()) {
            kept.push(slice);
        }
        while kept.iter().map(PinnedHostSlice::len).sum::<usize>() > Self::MOST {
            kept.remove(0);
        }
    }

    /// Releases all of it. Returns whether there was any.
    pub(crate) fn clear(&self) -> bool {
        !std::mem::take(&mut *self.0.borrow_mut()).is_empty()
    }
}
