//! Pinned memory that is used again.

use std::cell::RefCell;
use std::rc::Rc;

use cudarc::driver::PinnedHostSlice;

use crate::device::Gpu;
use crate::timing::CudaError;

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
