//! The host memory of operands and results, and blocks of memory that are copied between host and device.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use cudarc::driver::{PinnedHostSlice, sys};
use rayon::prelude::*;

use crate::device::copies_and_events::{PinnedPool, pinned_places};
use crate::device::{Gpu, Value};
use crate::model::Residency;
use crate::timing::CudaError;

/// How host memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMemory {
    /// Ordinary memory: the driver copies it through a pinned buffer of its own.
    Pageable,
    /// Allocated page-locked: the device reads and writes it directly, and the CPU caches it as it
    /// does ordinary memory.
    Pinned,
}

impl From<HostMemory> for Residency {
    fn from(memory: HostMemory) -> Self {
        match memory {
            HostMemory::Pageable => Residency::Ordinary,
            HostMemory::Pinned => Residency::Pinned,
        }
    }
}

/// Values in host memory of one kind. Whoever hands its address to a device waits for the device before this is
/// dropped.
pub(crate) struct Buffer<T> {
    /// Steps keep copies of this pointer, so all references are made from it: one that was made from
    /// the owner would make the copies invalid.
    values: NonNull<[T]>,
    /// Their memory and where it goes back to, unless they are pageable.
    pinned: Option<(PinnedHostSlice<u8>, PinnedPool)>,
}

impl<T: Value> Buffer<T> {
    /// `len` times `value`. Writing them makes the system provide the pages before anything is
    /// timed.
    pub(crate) fn filled(
        gpu: &Gpu,
        memory: HostMemory,
        value: T,
        len: usize,
    ) -> Result<Self, CudaError> {
        match memory {
            HostMemory::Pageable => Ok(Self::pageable(vec![value; len])),
            HostMemory::Pinned => {
                Self::pinned(gpu, len, |places| fill(places, MaybeUninit::new(value)))
            }
        }
    }

    /// A copy of `values`.
    pub(crate) fn of(gpu: &Gpu, memory: HostMemory, values: &[T]) -> Result<Self, CudaError> {
        match memory {
            HostMemory::Pageable => Ok(Self::pageable(values.to_vec())),
            HostMemory::Pinned => {
                Self::pinned(gpu, values.len(), |places| copy_into(places, values))
            }
        }
    }

    fn pageable(values: Vec<T>) -> Self {
        Self {
            values: NonNull::from(Box::leak(values.into_boxed_slice())),
            pinned: None,
        }
    }

    /// `write` must write all values.
    fn pinned(
        gpu: &Gpu,
        len: usize,
        write: impl FnOnce(&mut [MaybeUninit<T>]),
    ) -> Result<Self, CudaError> {
        let pool = gpu.pinned_pool().clone();
        // SAFETY: both callers, above, write all values.
        let mut slice = unsafe { pool.take(gpu, len * size_of::<T>()) }?;
        // Pages begin where any value may.
        let first = NonNull::from(pinned_places(&mut slice)?).cast::<MaybeUninit<T>>();
        let places = NonNull::slice_from_raw_parts(first, len);
        // SAFETY: the slice has room for `len` values, and nothing else refers to its memory.
        let values = unsafe { written(places, write) };
        Ok(Self {
            values,
            pinned: Some((slice, pool)),
        })
    }
}

/// The values that `write` writes.
///
/// # Safety
/// Nothing else may use the places, which must be valid for writes, and `write` must write all of them.
unsafe fn written<T>(
    mut places: NonNull<[MaybeUninit<T>]>,
    write: impl FnOnce(&mut [MaybeUninit<T>]),
) -> NonNull<[T]> {
    // SAFETY: the caller's.
    write(unsafe { places.as_mut() });
    NonNull::slice_from_raw_parts(places.cast(), places.len())
}

impl<T> Buffer<T> {
    /// The address of the values, valid as long as this lives.
    pub(crate) fn pointer(&self) -> *mut [T] {
        self.values.as_ptr()
    }

    pub(crate) fn values(&self) -> &[T] {
        // SAFETY: `self` keeps the values, and is borrowed. Steps write them only in `Prepared::run`.
        unsafe { self.values.as_ref() }
    }

    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        // SAFETY: `self` keeps the values, and is borrowed mutably. Steps use them only in
        // `Prepared::run`.
        unsafe { self.values.as_mut() }
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        match self.pinned.take() {
            Some((slice, pool)) => pool.give_back(slice),
            // SAFETY: `pageable` leaked this box, and nothing else frees it.
            None => drop(unsafe { Box::from_raw(self.values.as_ptr()) }),
        }
    }
}

/// Values that a thread fills or copies at once.
const PIECE: usize = 1 << 20;

/// Sets all `values` on all cores, because one core would take longer for gigabytes than the samples
/// that follow. Not for timed code, nor for ordinary memory that timed code uses: the system places a page near the
/// core that first writes it, while pinned memory has its pages from the start.
pub(crate) fn fill<T: Copy + Send + Sync>(values: &mut [T], value: T) {
    if values.len() <= PIECE {
        // Waking another thread would take longer.
        return values.fill(value);
    }
    (values.par_chunks_mut(PIECE)).for_each(|values| values.fill(value));
}

/// Copies all `values` on all cores, for the same reason.
fn copy_into<T: Copy + Send + Sync>(places: &mut [MaybeUninit<T>], values: &[T]) {
    let copy = |(to, from): (&mut [MaybeUninit<T>], &[T])| {
        for (to, from) in to.iter_mut().zip(from) {
            to.write(*from);
        }
    };
    if values.len() <= PIECE {
        return copy((places, values));
    }
    (places.par_chunks_mut(PIECE).zip(values.par_chunks(PIECE))).for_each(copy);
}

/// Rows of bytes in host memory and on the device. Memory without gaps is one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) host: *mut u8,
    /// Bytes from one row to the next.
    pub(crate) host_pitch: usize,
    pub(crate) device: sys::CUdeviceptr,
    pub(crate) device_pitch: usize,
    /// Bytes of a row.
    pub(crate) width: usize,
    pub(crate) rows: usize,
}

// SAFETY: a block only names memory. Whoever accesses it does so in an `unsafe` block of their own.
unsafe impl Send for Block {}
// SAFETY: nothing of a block changes behind a shared reference.
unsafe impl Sync for Block {}

impl Block {
    /// Memory without gaps.
    pub(crate) fn whole<T>(host: *mut [T], device: sys::CUdeviceptr) -> Self {
        let bytes = host.len() * size_of::<T>();
        Self {
            host: host.cast(),
            host_pitch: bytes,
            device,
            device_pitch: bytes,
            width: bytes,
            rows: 1,
        }
    }

    /// Enqueues the copy between host and device.
    ///
    /// # Safety
    /// The rows must be valid on both sides, and neither may be used until the copy is done.
    pub(crate) unsafe fn enqueue(
        &self,
        way: Direction,
        stream: sys::CUstream,
    ) -> Result<(), CudaError> {
        let (host, device) = (self.host.cast(), self.device);
        let (call, status) = match (self.rows, way) {
            (1, Direction::Up) => (
                "cuMemcpyHtoDAsync",
                // SAFETY: the caller promises a row on both sides that nobody uses until the copy is done.
                unsafe { sys::cuMemcpyHtoDAsync_v2(device, host, self.width, stream) },
            ),
            (1, Direction::Down) => (
                "cuMemcpyDtoHAsync",
                // SAFETY: as above.
                unsafe { sys::cuMemcpyDtoHAsync_v2(host, device, self.width, stream) },
            ),
            _ => (
                "cuMemcpy2DAsync",
                // SAFETY: as above, for several rows.
                unsafe { sys::cuMemcpy2DAsync_v2(&self.of_rows(way), stream) },
            ),
        };
        CudaError::check(call, status)
    }

    /// The copy of more than one row.
    fn of_rows(&self, way: Direction) -> sys::CUDA_MEMCPY2D {
        use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST};
        let up = way == Direction::Up;
        let host = (HOST, self.host_pitch);
        let device = (DEVICE, self.device_pitch);
        let ((from, from_pitch), (to, to_pitch)) = if up { (host, device) } else { (device, host) };
        let null = std::ptr::null_mut();
        sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: from,
            srcHost: if up { self.host.cast() } else { null },
            srcDevice: if up { 0 } else { self.device },
            srcArray: std::ptr::null_mut(),
            srcPitch: from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: to,
            dstHost: if up { null } else { self.host.cast() },
            dstDevice: if up { self.device } else { 0 },
            dstArray: std::ptr::null_mut(),
            dstPitch: to_pitch,
            WidthInBytes: self.width,
            Height: self.rows,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Miri refuses to read a value that was not written.
    #[test]
    fn values_of_memory_that_was_not_initialised_are_written_first() {
        let mut memory = [MaybeUninit::<f32>::uninit(); 5];
        let places = NonNull::from(&mut memory[..]);
        // SAFETY: the memory outlives both, is used by nothing else, and both write all of it.
        let filled = unsafe { written(places, |places| fill(places, MaybeUninit::new(2.0))) };
        // SAFETY: all values were written, and nothing else refers to them.
        assert_eq!(unsafe { filled.as_ref() }, [2.0; 5]);
        // SAFETY: as above.
        let copied = unsafe {
            written(places, |places| {
                copy_into(places, &[1.0, 2.0, 3.0, 4.0, 5.0])
            })
        };
        // SAFETY: as above.
        assert_eq!(unsafe { copied.as_ref() }, [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    /// Miri refuses a pointer that a later reference has made invalid.
    #[test]
    fn steps_reach_values_that_were_poisoned_after_the_steps_were_made() {
        let buffer = Buffer::pageable(vec![1.0f32; 4]);
        let of_steps = buffer.pointer();
        let mut moved = Box::new(buffer);
        moved.values_mut().fill(f32::NAN);
        // SAFETY: the buffer lives, and no reference to its values does.
        unsafe { (&mut *of_steps)[0] = 2.0 };
        assert_eq!(moved.values()[0], 2.0);
        assert!(moved.values()[1].is_nan());
    }
}
