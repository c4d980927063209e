//! Blocks of memory that are copied between ordinary host memory and the device, cut into pieces
//! that fit a buffer.

use cudarc::driver::sys;

use crate::timing::CudaError;

/// Rows of bytes in ordinary host memory and on the device. Memory without gaps is one row.
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

// SAFETY: a block is an address and lengths; the caller of `Staging::run` vouches for the memory,
// and no two threads take the same block.
unsafe impl Send for Block {}
// SAFETY: as above.
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

    /// The block in pieces of at most `bytes` bytes, or of one row where that is more.
    pub(crate) fn cut(self, bytes: usize) -> Vec<Self> {
        if self.width == 0 || self.rows == 0 {
            return Vec::new();
        }
        if self.rows == 1 {
            let starts = (0..self.width).step_by(bytes);
            return starts
                .map(|start| Self {
                    host: self.host.wrapping_add(start),
                    device: self.device + start as sys::CUdeviceptr,
                    width: bytes.min(self.width - start),
                    ..self
                })
                .collect();
        }
        let rows = (bytes / self.width).max(1);
        let starts = (0..self.rows).step_by(rows);
        starts
            .map(|row| Self {
                host: self.host.wrapping_add(row * self.host_pitch),
                device: self.device + (row * self.device_pitch) as sys::CUdeviceptr,
                rows: rows.min(self.rows - row),
                ..self
            })
            .collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.width * self.rows
    }

    /// # Safety
    /// The rows must be readable on the host, and nothing may write them meanwhile.
    pub(crate) unsafe fn pack(&self, to: &mut [u8]) {
        for (row, to) in to[..self.bytes()].chunks_exact_mut(self.width).enumerate() {
            let from = self.host.wrapping_add(row * self.host_pitch);
            // SAFETY: the caller's promise; a buffer of the driver overlaps with nothing.
            unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        }
    }

    /// # Safety
    /// The rows must be writable on the host, and nothing else may use them meanwhile.
    pub(crate) unsafe fn unpack(&self, from: &[u8]) {
        for (row, from) in from[..self.bytes()].chunks_exact(self.width).enumerate() {
            let to = self.host.wrapping_add(row * self.host_pitch);
            // SAFETY: as in `pack`.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        }
    }

    /// The same block where its rows lie on the host in a buffer, one behind the other.
    pub(crate) fn packed(self, buffer: *mut u8) -> Self {
        Self {
            host: buffer,
            host_pitch: self.width,
            ..self
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
        // SAFETY: the caller's promise.
        unsafe {
            match (self.rows, way) {
                (1, Direction::Up) => CudaError::check(
                    "cuMemcpyHtoDAsync",
                    sys::cuMemcpyHtoDAsync_v2(device, host, self.width, stream),
                ),
                (1, Direction::Down) => CudaError::check(
                    "cuMemcpyDtoHAsync",
                    sys::cuMemcpyDtoHAsync_v2(host, device, self.width, stream),
                ),
                _ => CudaError::check(
                    "cuMemcpy2DAsync",
                    sys::cuMemcpy2DAsync_v2(&self.of_rows(way), stream),
                ),
            }
        }
    }

    /// The copy of more than one row.
    fn of_rows(&self, way: Direction) -> sys::CUDA_MEMCPY2D {
        use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST};
        let up = way == Direction::Up;
        let host = (HOST, self.host_pitch);
        let device = (DEVICE, self.device_pitch);
        let ((from, from_pitch), (to, to_pitch)) = match up {
            true => (host, device),
            false => (device, host),
        };
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

    fn strided(host: &mut [u8], pitch: usize, width: usize, rows: usize) -> Block {
        assert!((rows - 1) * pitch + width <= host.len());
        Block {
            host: host.as_mut_ptr(),
            host_pitch: pitch,
            device: 1 << 20,
            device_pitch: 2 * pitch,
            width,
            rows,
        }
    }

    #[test]
    fn pieces_cover_a_block_once() {
        let mut host = vec![0; 1000];
        let whole = Block::whole(&raw mut host[..], 4096);
        for bytes in [1, 7, 64, 1000, 4000] {
            let pieces = whole.cut(bytes);
            assert_eq!(pieces.iter().map(Block::bytes).sum::<usize>(), 1000);
            assert!(pieces.iter().all(|p| p.bytes() <= bytes && p.rows == 1));
            let next = |p: &Block| p.device + p.width as sys::CUdeviceptr;
            assert!(pieces.windows(2).all(|p| next(&p[0]) == p[1].device));
        }
        let rows = strided(&mut host, 100, 30, 10);
        for bytes in [1, 30, 89, 90, 1000] {
            let pieces = rows.cut(bytes);
            assert_eq!(pieces.iter().map(|p| p.rows).sum::<usize>(), 10);
            assert!(pieces.iter().all(|p| p.bytes() <= bytes.max(30)));
            let last = pieces.last().unwrap();
            let begun = (10 - last.rows) * 200;
            assert_eq!(last.device, (1 << 20) + begun as sys::CUdeviceptr);
        }
        assert!(Block::whole(&raw mut host[..0], 0).cut(64).is_empty());
    }

    #[test]
    fn rows_are_packed_and_come_back() {
        let mut host: Vec<u8> = (0..100).collect();
        let block = strided(&mut host, 20, 7, 5);
        let mut buffer = vec![0; 64];
        // SAFETY: the block lies within `host`, which nothing else uses meanwhile.
        unsafe { block.pack(&mut buffer) };
        assert_eq!(buffer[..8], [0, 1, 2, 3, 4, 5, 6, 20]);
        assert_eq!(buffer[34], 86);
        let mut back = vec![255; 100];
        let to = strided(&mut back, 20, 7, 5);
        // SAFETY: as above.
        unsafe { to.unpack(&buffer) };
        assert_eq!(back[20..27], [20, 21, 22, 23, 24, 25, 26]);
        assert_eq!(back.iter().filter(|byte| **byte == 255).count(), 100 - 35);
    }
}
