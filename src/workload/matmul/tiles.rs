//! The register-tiled kernel: its tile sizes, and the choice among them.

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::timing::Launch;
use crate::workload::matmul::problem::MATMUL;
use crate::workload::routine::RoutineError;

/// A size of the register-tiled kernel.
#[derive(Debug, PartialEq)]
pub(super) struct Tile {
    /// Rows and columns of C that a block computes.
    pub(super) side: u32,
    /// Threads per block.
    threads: u32,
    /// Time of one multiply-add relative to the largest tile's, on a full device. Estimated
    /// from loads of shared memory per multiply-add (1/16, 3/32 and 1/8), not measured.
    slowdown: f64,
}

pub(super) const TILES: [Tile; 3] = [
    Tile::new(128, 256, 1.0),
    Tile::new(64, 128, 1.25),
    Tile::new(32, 64, 2.0),
];

impl Tile {
    const fn new(side: u32, threads: u32, slowdown: f64) -> Self {
        Self {
            side,
            threads,
            slowdown,
        }
    }

    /// The entry point for matrices of this order, whose rows may not be aligned to 16 bytes.
    pub(super) fn name(&self, n: usize) -> String {
        let any = if n.is_multiple_of(4) { "" } else { "_any" };
        format!("matmul_tiled_{}{any}", self.side)
    }

    /// The kernel on matrices A, B and C of order `n`, at addresses that the device can use and that
    /// are aligned to 16 bytes.
    pub(super) fn launch(
        &self,
        gpu: &Gpu,
        n: usize,
        [a, b, c]: [CUdeviceptr; 3],
    ) -> Result<Launch, RoutineError> {
        gpu.bind()?;
        let function = gpu.function(&MATMUL, &self.name(n))?;
        let blocks = u32::try_from(n)?.div_ceil(self.side);
        let launch = Launch::new(function, (blocks, blocks, 1), (self.threads, 1, 1));
        Ok(launch.arg(a).arg(b).arg(c).arg(n as u64))
    }

    /// Work of the busiest multiprocessor per term of the sum, in the time of a multiply-add of the
    /// largest tile.
    fn busiest(&self, n: u64, multiprocessors: u32) -> f64 {
        let blocks = n.div_ceil(u64::from(self.side)).pow(2);
        let per_processor = blocks.div_ceil(u64::from(multiprocessors.max(1)));
        per_processor as f64 * f64::from(self.side).powi(2) * self.slowdown
    }
}

/// The tile whose busiest multiprocessor has the least to do: large tiles need the fewest
/// loads, small ones leave fewer multiprocessors without work.
pub(super) fn tile(n: u64, multiprocessors: u32) -> &'static Tile {
    TILES
        .iter()
        .min_by(|x, y| {
            let work = |t: &Tile| t.busiest(n, multiprocessors);
            work(x).total_cmp(&work(y))
        })
        .unwrap_or(&TILES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_by_order_on_132_multiprocessors() {
        for (n, side) in [
            (1, 32),
            (257, 32),
            (512, 32),
            (1024, 64),
            (2048, 128),
            (4096, 128),
            (32_768, 128),
        ] {
            assert_eq!(tile(n, 132).side, side, "order {n}");
        }
    }

    #[test]
    fn rows_that_are_not_aligned_take_the_other_entry_point() {
        assert_eq!(TILES[0].name(4096), "matmul_tiled_128");
        assert_eq!(TILES[0].name(4095), "matmul_tiled_128_any");
    }
}
