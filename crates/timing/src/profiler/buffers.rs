//! The buffers that CUPTI writes its records to.

use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};

/// Size of a buffer: NVIDIA recommends 1 to 10 MB, and a kernel's record takes about 200 bytes.
const BYTES: usize = 4 << 20;
const WORDS: usize = BYTES / size_of::<u64>();

/// A buffer that CUPTI handed back.
pub(super) struct Filled {
    /// Words, because records must be aligned to eight bytes.
    pub(super) words: Box<[u64]>,
    /// Bytes that hold records.
    pub(super) valid: usize,
}

static FILLED: Mutex<Vec<Filled>> = Mutex::new(Vec::new());

/// Takes the buffers that CUPTI has handed back.
pub(super) fn take() -> Vec<Filled> {
    std::mem::take(&mut *FILLED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Gives CUPTI a buffer. CUPTI calls this on any thread.
///
/// # Safety
/// The three addresses must be valid for writes.
pub(super) unsafe extern "C" fn request(
    buffer: *mut *mut u8,
    size: *mut usize,
    most_records: *mut usize,
) {
    let words = vec![0u64; WORDS].into_boxed_slice();
    // SAFETY: the caller answers for the address.
    unsafe { buffer.write(Box::into_raw(words).cast()) };
    // SAFETY: the caller answers for the address.
    unsafe { size.write(BYTES) };
    // SAFETY: the caller answers for the address. As many records as fit.
    unsafe { most_records.write(0) };
}

/// Takes a buffer back. CUPTI calls this on any thread.
///
/// # Safety
/// `buffer` must come from [`request`] and be handed back once.
pub(super) unsafe extern "C" fn complete(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    let words = std::ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), WORDS);
    // SAFETY: `request` made it of a box of that length, which CUPTI hands back once, by the caller's contract.
    let words = unsafe { Box::from_raw(words) };
    let mut filled = FILLED.lock().unwrap_or_else(PoisonError::into_inner);
    filled.push(Filled { words, valid });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_goes_out_and_comes_back() {
        let (mut buffer, mut size, mut most) = (std::ptr::null_mut(), 0, 7);
        // SAFETY: the three addresses are those of variables.
        unsafe { request(&mut buffer, &mut size, &mut most) };
        assert_eq!((size, most), (BYTES, 0));
        assert_eq!(buffer.align_offset(8), 0);
        // SAFETY: `request` made it, of this size.
        unsafe { buffer.write(9) };
        // SAFETY: as above, and it is handed back once.
        unsafe { complete(std::ptr::null_mut(), 0, buffer, size, 40) };
        // SAFETY: there is no buffer.
        unsafe { complete(std::ptr::null_mut(), 0, std::ptr::null_mut(), 0, 0) };
        let filled = take();
        assert_eq!(filled.len(), 1);
        assert_eq!((filled[0].valid, filled[0].words[0]), (40, 9));
        assert!(take().is_empty());
    }
}
