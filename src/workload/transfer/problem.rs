//! The bytes that are copied, and what a copy costs.

use cudarc::driver::CudaSlice;

use crate::device::gpu::Gpu;
use crate::device::kernel::Source;
use crate::model::cost::Cost;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::routine::Workload;

/// The source of the kernel that reads host memory itself.
pub static TRANSFER: Source = Source {
    name: "transfer.cu",
    text: include_str!("../../../kernels/transfer.cu"),
    options: &[],
    oldest: (7, 5),
};

/// Bytes to copy, from a fixed pattern.
pub struct Transfer {
    pub(super) pattern: Vec<u8>,
}

impl Transfer {
    /// Bytes of which none equals the one that is copied to its place.
    pub(super) fn wrong(&self) -> Vec<u8> {
        self.pattern.iter().map(|byte| !byte).collect()
    }

    /// Overwrites device memory for the pattern with [`Self::wrong`] in place, and waits.
    pub(super) fn poison(&self, gpu: &Gpu, device: &mut CudaSlice<u8>) -> Result<(), CudaError> {
        let wrong = self.wrong();
        gpu.stream()
            .memcpy_htod(&wrong, device)
            .map_err(|e| CudaError::new("cuMemcpyHtoDAsync", e))?;
        // `wrong` is pageable: it has been read when the copy returns, or is by now.
        gpu.synchronize()
    }

    /// Compares everything that arrived with the pattern.
    pub(super) fn verified<'a>(&self, arrived: impl IntoIterator<Item = &'a [u8]>) -> Verified {
        let different = arrived
            .into_iter()
            .map(|bytes| differences(bytes, &self.pattern));
        Verified {
            error: different.sum::<usize>() as f64,
            bound: 0.0,
            method: "bytes that differ, every byte".to_owned(),
        }
    }
}

impl Workload for Transfer {
    fn new(size: u64) -> Self {
        // A step coprime to 256 and a carry: neighbouring bytes, rows and pages differ, so a
        // copy that is shifted, cut short or repeated is found.
        let pattern = (0..size as usize)
            .map(|i| (i.wrapping_mul(167) ^ (i >> 8) ^ (i >> 16)) as u8)
            .collect();
        Self { pattern }
    }

    fn host_bytes(size: u64) -> u64 {
        4 * size
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

/// Every byte crosses the link once.
pub fn cost(size: u64) -> Cost {
    Cost {
        link_bytes: Some(size as f64),
        ..Cost::default()
    }
}

/// Every byte crosses the link in both directions.
pub fn cost_both_ways(size: u64) -> Cost {
    Cost {
        link_bytes: Some(2.0 * size as f64),
        ..Cost::default()
    }
}

/// Number of bytes in which two slices differ; a missing one counts.
fn differences(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_tells_pieces_apart() {
        let p = Transfer::new(1 << 20).pattern;
        for shift in [1, 4, 255, 256, 4096, (1 << 20) / 64] {
            assert!(
                differences(&p[shift..], &p[..p.len() - shift]) > p.len() / 2,
                "a copy shifted by {shift} would pass"
            );
        }
        assert_eq!(differences(&p, &p), 0);
        assert_eq!(differences(&p[1..], &p[1..p.len() - 1]), 1);
    }
}
