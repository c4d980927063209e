//! Blocks of memory that are copied between host and device.

use cudarc::driver::sys;

use crate::timing::CudaError;

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
