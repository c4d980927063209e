//! The host memory of operands and results.

use std::ptr::NonNull;

use cudarc::driver::PinnedHostSlice;
use rayon::prelude::*;

use crate::device::pinned::PinnedPool;
use crate::device::{Gpu, Value, copies_and_events::pinned_mut};
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

/// Values in host memory of one kind.
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
            HostMemory::Pinned => Self::pinned(gpu, len, |values| fill(values, value)),
        }
    }

    /// A copy of `values`.
    pub(crate) fn of(gpu: &Gpu, memory: HostMemory, values: &[T]) -> Result<Self, CudaError> {
        match memory {
            HostMemory::Pageable => Ok(Self::pageable(values.to_vec())),
            HostMemory::Pinned => Self::pinned(gpu, values.len(), |copy| {
                (copy.par_chunks_mut(PIECE))
                    .zip(values.par_chunks(PIECE))
                    .for_each(|(to, from)| to.copy_from_slice(from));
            }),
        }
    }

    fn pageable(values: Vec<T>) -> Self {
        Self {
            values: NonNull::from(Box::leak(values.into_boxed_slice())),
            pinned: None,
        }
    }

    /// `write` must write all values.
    fn pinned(gpu: &Gpu, len: usize, write: impl FnOnce(&mut [T])) -> Result<Self, CudaError> {
        let pool = gpu.pinned_pool().clone();
        // SAFETY: both callers, above, write all values.
        let mut slice = unsafe { pool.take(gpu, len * size_of::<T>()) }?;
        // Pages begin where any value may.
        let first = NonNull::from(pinned_mut(&mut slice)?).cast::<T>();
        let mut buffer = Self {
            values: NonNull::slice_from_raw_parts(first, len),
            pinned: Some((slice, pool)),
        };
        write(buffer.values_mut());
        Ok(buffer)
    }
}

impl<T> Buffer<T> {
    /// Where the values are as long as this lives.
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

#[cfg(test)]
mod tests {
    use super::*;

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
