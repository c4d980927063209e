//! Linear layers in f32 by kernels of our own, with tiles that libraries lack.

use std::fmt;

use cudarc::driver::sys::{CUdevice_attribute, CUdeviceptr, CUfunction_attribute};

use crate::device::{Gpu, kernel::Source};
use crate::timing::{CudaError, Launch};
use crate::workload::network::tensor::Element;
use crate::workload::prepare::{Epilogue, ON_ALL_CORES, Product, kernels};
use crate::workload::routine::RoutineError;

/// The kernels of this module.
// From compute capability 8.0 on, for asynchronous copies to shared memory.
pub(crate) static LINEAR: Source = Source {
    options: ON_ALL_CORES,
    ..kernels!("linear.cu", oldest(8, 0))
};

/// Terms of the sum per stage: `DEPTH` in the source.
const DEPTH: usize = 32;
/// Values per access: a "four" in the source.
const FOUR: usize = 4;

/// How a kernel divides a product: the numbers of a line `LINEAR(...)` of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tile {
    /// Rows and columns of a block.
    block: [u32; 2],
    /// Rows and columns of a thread.
    thread: [u32; 2],
    /// Parts of the sum over the warps of a block.
    slices: u32,
    /// Parts of the sum over the blocks of a cluster.
    pieces: u32,
    /// Stages of operands in shared memory.
    stages: u32,
    /// Least number of blocks that a multiprocessor must hold at once.
    resident: u32,
}

impl Tile {
    const fn new(
        block: [u32; 2],
        thread: [u32; 2],
        [slices, pieces]: [u32; 2],
        stages: u32,
        resident: u32,
    ) -> Self {
        Self {
            block,
            thread,
            slices,
            pieces,
            stages,
            resident,
        }
    }

    fn kernel(&self) -> String {
        let ([m, n], [tm, tn]) = (self.block, self.thread);
        format!("linear_{m}x{n}_{tm}x{tn}_{}_{}", self.slices, self.pieces)
    }

    fn threads(&self) -> u32 {
        let ([m, n], [tm, tn]) = (self.block, self.thread);
        m / tm * (n / tn) * self.slices
    }

    /// Shared memory per block: the stages, whose place the sums of each slice take later, in rows
    /// padded by a four.
    fn shared_bytes(&self) -> u32 {
        let [m, n] = self.block;
        let stages = self.stages * (m + n) * DEPTH as u32 * 4;
        match self.slices * self.pieces {
            1 => stages,
            _ => stages.max(self.slices * m * (n + FOUR as u32) * 4),
        }
    }

    /// The oldest compute capability that it runs on: clusters came with Hopper.
    fn oldest(&self) -> (u32, u32) {
        if self.pieces > 1 {
            (9, 0)
        } else {
            LINEAR.oldest
        }
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([m, n], [tm, tn]) = (self.block, self.thread);
        write!(f, "tile {m} x {n}, {tm} x {tn} per thread")?;
        if self.slices > 1 {
            write!(f, ", {} slices", self.slices)?;
        }
        if self.pieces > 1 {
            write!(f, ", {} pieces", self.pieces)?;
        }
        Ok(())
    }
}

/// Every tile of the source. They were the fastest of twenty for a layer of the networks on an H200 in
/// more than one run. 128 blocks fill its 132 multiprocessors: those of 128 x 128 at 8192 rows and 256
/// columns, those of 64 x 96 at 1024 rows and 768 columns, and so on down to 32 x 32 at 128 rows. If a
/// layer has fewer tiles, pieces of the sum give more blocks; if a tile has few warps, slices of the
/// sum give more.
#[rustfmt::skip]
const TILES: [Tile; 8] = [
    Tile::new([128, 128], [8, 8], [1, 1], 3, 1),
    Tile::new([64, 128], [16, 8], [2, 1], 4, 1),
    Tile::new([64, 96], [8, 12], [2, 1], 4, 2),
    Tile::new([64, 96], [8, 12], [4, 1], 4, 1),
    Tile::new([64, 64], [8, 8], [2, 1], 4, 2),
    Tile::new([32, 32], [8, 4], [4, 1], 4, 2),
    Tile::new([32, 32], [8, 4], [8, 1], 4, 1),
    Tile::new([32, 32], [8, 4], [4, 4], 4, 2),
];

/// The address of the bias, zero where there is none, and whether ReLU follows.
fn bias_and_relu(product: &Product) -> (CUdeviceptr, bool) {
    match product.epilogue {
        Epilogue::Nothing => (0, false),
        Epilogue::Bias(bias) => (bias, false),
        Epilogue::ReluBias(bias) => (bias, true),
    }
}

/// Whether the kernels can compute the product: C = A W^T + added, + bias, with or without ReLU, in
/// rows whose lengths are multiples of a four.
fn is_layer(product: &Product) -> bool {
    let Product { a, b, c, added, .. } = *product;
    let plain = [a, b, c]
        .iter()
        .all(|o| o.element == Element::F32.data_type())
        && product.count == 1;
    let rows = !a.transposed && b.transposed && !c.transposed;
    let (bias, _) = bias_and_relu(product);
    let addresses = [a.address, b.address, bias, added.unwrap_or(0), c.address];
    let aligned = addresses.iter().all(|address| address.is_multiple_of(16));
    let ((_, k), (_, n)) = (a.shape(), b.shape());
    plain && rows && aligned && k.is_multiple_of(DEPTH) && n.is_multiple_of(FOUR)
}

fn launch(gpu: &Gpu, product: &Product, tile: Tile) -> Result<Launch, RoutineError> {
    let Product { a, b, c, .. } = *product;
    let ((m, k), (_, n)) = (a.shape(), b.shape());
    let (m, n, k) = (u32::try_from(m)?, u32::try_from(n)?, u32::try_from(k)?);
    let (bias, relu) = bias_and_relu(product);
    let function = gpu.function(&LINEAR, &tile.kernel())?;
    let bytes = tile.shared_bytes();
    // More than 48 KB of shared memory must be requested.
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function
        .set_attribute(attribute, i32::try_from(bytes)?)
        .map_err(|e| CudaError::new("cuFuncSetAttribute", e))?;
    let [rows, columns] = tile.block;
    let grid = (n.div_ceil(columns), m.div_ceil(rows), tile.pieces);
    let launch = Launch::new(function, grid, (tile.threads(), 1, 1)).shared_bytes(bytes);
    let launch = launch.arg(a.address).arg(b.address).arg(bias);
    let launch = launch.arg(product.added.unwrap_or(0)).arg(c.address);
    Ok(launch.arg(m).arg(n).arg(k).arg(u32::from(relu)))
}

/// The product by each tile that the device can run; none if it is not a linear layer in f32, or its
/// rows do not fit.
///
/// # Errors
/// Those of the compiler and the driver.
pub(crate) fn launches(gpu: &Gpu, product: &Product) -> Result<Vec<(Tile, Launch)>, RoutineError> {
    if !is_layer(product) {
        return Ok(Vec::new());
    }
    let most = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    let most =
        (gpu.context().attribute(most)).map_err(|e| CudaError::new("cuDeviceGetAttribute", e))?;
    let most = u32::try_from(most)?;
    let found = gpu.properties().compute_capability;
    let tiles = TILES.into_iter();
    tiles
        .filter(|tile| tile.oldest() <= found && tile.shared_bytes() <= most)
        .map(|tile| Ok((tile, launch(gpu, product, tile)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiles_are_those_of_the_source() {
        let lines: Vec<String> = TILES
            .iter()
            .map(|tile| {
                let ([m, n], [tm, tn]) = (tile.block, tile.thread);
                let (slices, pieces) = (tile.slices, tile.pieces);
                let (stages, resident) = (tile.stages, tile.resident);
                format!("LINEAR({m}, {n}, {tm}, {tn}, {slices}, {pieces}, {stages}, {resident})")
            })
            .collect();
        let source = LINEAR
            .text
            .lines()
            .filter(|line| line.starts_with("LINEAR("));
        assert_eq!(lines, source.collect::<Vec<_>>());
        assert!(LINEAR.text.contains(&format!("DEPTH = {DEPTH},")));
    }

    #[test]
    fn names_differ_and_blocks_fit() {
        let mut names: Vec<String> = TILES.iter().map(Tile::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), TILES.len());
        for tile in TILES {
            // Hopper has 228 KiB of shared memory; the driver keeps 1 KiB per block.
            let shared = tile.resident * (tile.shared_bytes() + 1024);
            assert!(shared <= 228 << 10, "{tile}: {shared} bytes");
            assert!([128, 256].contains(&tile.threads()), "{tile}");
        }
    }
}
