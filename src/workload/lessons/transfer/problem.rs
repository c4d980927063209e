//! The bytes to copy, and the cost of a copy.

use std::ops::Range;

use rayon::prelude::*;

use crate::device::{copies_and_events::copy_to_device, kernel::Source};
use crate::model::{CopyDirection, Cost, Verified};
use crate::timing::CudaError;
use crate::workload::prepare::{Device, Memory, kernels, seed};
use crate::workload::routine::Workload;

/// The source of the kernel that reads host memory itself.
pub static TRANSFER: Source = kernels!("transfer.cu");

/// Bytes that are uploaded or fetched at once where nothing is timed.
const PIECE: usize = 1 << 22;
/// Bytes that a thread writes or compares at once.
const OF_A_THREAD: usize = 1 << 18;

/// Bytes to copy, from a fixed pattern.
pub struct Transfer {
    /// Never shortened: copies rely on its length.
    pub(crate) pattern: Vec<u8>,
}

impl Transfer {
    /// Overwrites host memory for the pattern with bytes of which none equals the one that is copied
    /// to its place.
    pub(super) fn poison_host(&self, host: &mut [u8]) {
        make_wrong(host, &self.pattern);
    }

    /// As [`Self::poison_host`], device memory. Waits.
    pub(super) fn poison_device(
        &self,
        memory: &Memory,
        device: Device<u8>,
    ) -> Result<(), CudaError> {
        let mut wrong = Vec::new();
        for (range, pattern) in self.pieces() {
            wrong.resize(pattern.len(), 0);
            make_wrong(&mut wrong, pattern);
            // SAFETY: the piece lies within the device's memory, and the wait keeps it alive.
            unsafe { copy_to_device(&wrong, device.at(range.start), memory.gpu.stream()) }?;
            memory.gpu.synchronize()?;
        }
        Ok(())
    }

    /// Number of bytes in host memory that differ from the pattern; a missing one counts.
    pub(super) fn differences(&self, host: &[u8]) -> usize {
        differences(host, &self.pattern) + host.len().abs_diff(self.pattern.len())
    }

    /// As [`Self::differences`], of device memory. Waits.
    pub(crate) fn differences_on_device(
        &self,
        memory: &Memory,
        device: Device<u8>,
    ) -> Result<usize, CudaError> {
        let each = |(range, pattern): (Range<usize>, &[u8])| {
            Ok(differences(&memory.read_part(device, range)?, pattern))
        };
        self.pieces().map(each).sum()
    }

    /// The pieces of the pattern, each with its place.
    fn pieces(&self) -> impl Iterator<Item = (Range<usize>, &[u8])> {
        let pieces = self.pattern.chunks(PIECE).enumerate();
        pieces.map(|(i, piece)| (i * PIECE..i * PIECE + piece.len(), piece))
    }
}

impl Workload for Transfer {
    fn new(size: u64) -> Self {
        // Times an odd number, different words stay different. So no two aligned words of the pattern
        // are equal, and a copy that is shifted, cut short or repeated is found.
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let first = seed(0);
        let mut pattern = vec![0; size as usize];
        let pieces = pattern.par_chunks_mut(OF_A_THREAD).enumerate();
        pieces.for_each(|(piece, bytes)| {
            let words = (piece * OF_A_THREAD / size_of::<u64>()) as u64..;
            for (word, bytes) in words.zip(bytes.chunks_mut(size_of::<u64>())) {
                let value = (word ^ first).wrapping_mul(ODD).to_le_bytes();
                bytes.copy_from_slice(&value[..bytes.len()]);
            }
        });
        Self { pattern }
    }

    fn host_bytes(size: u64) -> u64 {
        // The pattern, and what is copied in each direction.
        3 * size
    }

    fn device_bytes(size: u64) -> u64 {
        2 * size
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&TRANSFER] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit(&self.pattern);
    }
}

/// Every byte crosses the link once in each direction of `way`.
pub fn cost(way: CopyDirection, size: u64) -> Cost {
    let size = size as f64;
    let (to_device, to_host) = match way {
        CopyDirection::ToDevice | CopyDirection::InPlace => (size, 0.0),
        CopyDirection::ToHost => (0.0, size),
        CopyDirection::Both => (size, size),
    };
    Cost::default().over_link(to_device, to_host)
}

/// The result of a comparison that found this number of wrong bytes.
pub(crate) fn verified(different: usize) -> Verified {
    Verified {
        error: different as f64,
        bound: 0.0,
        method: "bytes that differ, every byte".to_owned(),
    }
}

/// Number of bytes in which two slices differ, up to the end of the shorter one.
fn differences(a: &[u8], b: &[u8]) -> usize {
    let pieces = a.par_chunks(OF_A_THREAD).zip(b.par_chunks(OF_A_THREAD));
    let count = |a: &[u8], b: &[u8]| a.iter().zip(b).filter(|(a, b)| a != b).count();
    pieces.map(|(a, b)| count(a, b)).sum()
}

/// Makes each byte another one than that of the pattern.
fn make_wrong(to: &mut [u8], pattern: &[u8]) {
    let pieces = to
        .par_chunks_mut(OF_A_THREAD)
        .zip(pattern.par_chunks(OF_A_THREAD));
    pieces.for_each(|(to, right)| {
        for (to, right) in to.iter_mut().zip(right) {
            *to = !right;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_tells_pieces_apart() {
        const PART: usize = 1 << 19;
        let p = Transfer::new((1 << 24) + 256).pattern;
        let shifts = [1, 4, 255, 256, 4096, PART / 64].map(|shift| (0, shift, PART));
        let rows = [(256, 1 << 16), (0, 1 << 24), (1 << 16, 1 << 24)];
        for (one, other, bytes) in shifts.into_iter().chain(rows.map(|(x, y)| (x, y, 256))) {
            assert!(
                differences(&p[one..][..bytes], &p[other..][..bytes]) > bytes / 2,
                "{bytes} bytes from {one} on in place of those from {other} on would pass"
            );
        }
        assert_eq!(differences(&p, &p), 0);
    }

    #[test]
    fn every_byte_is_compared_and_a_missing_one_counts() {
        let problem = Transfer::new(2 * PIECE as u64 + 5);
        let mut host = problem.pattern.clone();
        assert_eq!(problem.differences(&host), 0);
        for at in [0, PIECE - 1, PIECE, 2 * PIECE + 4] {
            host[at] ^= 1;
        }
        assert_eq!(problem.differences(&host), 4);
        assert_eq!(problem.differences(&host[..2 * PIECE]), 3 + 5);
        problem.poison_host(&mut host);
        assert_eq!(problem.differences(&host), host.len());
    }
}
