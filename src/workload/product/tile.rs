//! Products in f32 by kernels of our own, whose tiles are in registers: of square matrices, and linear
//! layers with tiles that libraries lack.

use std::fmt;

use cudarc::driver::CudaFunction;
use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};

use crate::device::{Gpu, kernel::Source};
use crate::model::Format;
use crate::timing::{Called, Launch};
use crate::workload::prepare::{ON_ALL_CORES, kernels};
use crate::workload::product::shape::{Product, Shape};
use crate::workload::routine::RoutineError;

/// The kernels of square matrices.
pub(crate) static MATMUL: Source = kernels!("matmul.cu", options ON_ALL_CORES);

/// The kernels of linear layers.
// From compute capability 8.0 on, for asynchronous copies to shared memory.
pub(crate) static LINEAR: Source =
    kernels!("linear.cu", after "values.cuh", oldest(8, 0), options ON_ALL_CORES);

/// Terms of the sum per stage: `DEPTH` in `linear.cu`.
const DEPTH: usize = 32;
/// Values per access: a "four" in the sources.
pub(super) const FOUR: usize = 4;

/// How a kernel divides a product: the numbers of a line `TILED(...)` or `LINEAR(...)` of the source.
#[derive(Debug, PartialEq)]
pub(crate) struct Tile {
    /// Rows and columns of a block.
    pub(crate) block: [u32; 2],
    /// Rows and columns of a thread.
    thread: [u32; 2],
    /// Parts of the sum over the warps of a block.
    slices: u32,
    /// Stages of operands in shared memory.
    stages: u32,
    /// Least number of blocks that a multiprocessor must hold at once.
    resident: u32,
}

/// Every tile of `matmul.cu`.
#[rustfmt::skip]
pub(crate) static TILES: [Tile; 3] = [
    Tile { block: [128, 128], thread: [8, 8], slices: 1, stages: 2, resident: 2 },
    Tile { block: [64, 64], thread: [8, 4], slices: 1, stages: 2, resident: 4 },
    Tile { block: [32, 32], thread: [4, 4], slices: 1, stages: 2, resident: 8 },
];

/// Time of a multiply-add by each of [`TILES`] relative to the largest one, on a full device. Estimated
/// from loads of shared memory per multiply-add (1/16, 3/32 and 1/8), not measured.
const SLOWDOWN: [f64; 3] = [1.0, 1.25, 2.0];

/// Every tile of `linear.cu`. They were the fastest of twenty for a layer of the networks on an H200 in
/// more than one run. 128 blocks fill its 132 multiprocessors: those of 128 x 128 at 8192 rows and 256
/// columns, those of 64 x 96 at 1024 rows and 768 columns, and so on down to 32 x 32 at 128 rows. If a
/// tile has few warps, slices of the sum give more.
#[rustfmt::skip]
static LAYER_TILES: [Tile; 7] = [
    Tile { block: [128, 128], thread: [8, 8], slices: 1, stages: 3, resident: 1 },
    Tile { block: [64, 128], thread: [16, 8], slices: 2, stages: 4, resident: 1 },
    Tile { block: [64, 96], thread: [8, 12], slices: 2, stages: 4, resident: 2 },
    Tile { block: [64, 96], thread: [8, 12], slices: 4, stages: 4, resident: 1 },
    Tile { block: [64, 64], thread: [8, 8], slices: 2, stages: 4, resident: 2 },
    Tile { block: [32, 32], thread: [8, 4], slices: 4, stages: 4, resident: 2 },
    Tile { block: [32, 32], thread: [8, 4], slices: 8, stages: 4, resident: 1 },
];

impl Tile {
    fn threads(&self) -> u32 {
        let ([m, n], [tm, tn]) = (self.block, self.thread);
        m / tm * (n / tn) * self.slices
    }

    /// The kernel for square matrices of order `n`, whose rows may not be aligned to 16 bytes.
    pub(crate) fn of_square(&self, n: usize) -> String {
        let any = if n.is_multiple_of(FOUR) { "" } else { "_any" };
        format!("matmul_tiled_{}{any}", self.block[0])
    }

    /// The kernel for linear layers.
    fn of_layer(&self) -> String {
        let ([m, n], [tm, tn]) = (self.block, self.thread);
        format!("linear_{m}x{n}_{tm}x{tn}_{}", self.slices)
    }

    /// Shared memory per block for a layer: the stages, whose place the sums of each slice take later,
    /// in rows padded by a four.
    fn shared_bytes(&self) -> u32 {
        let [m, n] = self.block;
        let stages = self.stages * (m + n) * DEPTH as u32 * 4;
        match self.slices {
            1 => stages,
            _ => stages.max(self.slices * m * (n + FOUR as u32) * 4),
        }
    }

    /// A launch, without arguments, on a result of `m` rows and `n` columns.
    fn launch(&self, kernel: CudaFunction, m: usize, n: usize) -> Result<Launch, RoutineError> {
        let [rows, columns] = self.block;
        let (m, n) = (u32::try_from(m)?, u32::try_from(n)?);
        let grid = (n.div_ceil(columns), m.div_ceil(rows), 1);
        Ok(Launch::new(kernel, grid, (self.threads(), 1, 1)))
    }

    /// The product of square matrices, at addresses that are aligned to 16 bytes.
    ///
    /// # Errors
    /// Other products, and errors of CUDA and of the kernel's compilation.
    pub(crate) fn square(&self, gpu: &Gpu, product: &Product) -> Result<Launch, RoutineError> {
        let (shape, Product { a, b, c, .. }) = (product.shape()?, product);
        if shape != Shape::square(shape.n) || a.format != Format::F32 {
            return Err(format!("the tiles are of square matrices in f32, not {shape:?}").into());
        }
        gpu.bind()?;
        let n = shape.n;
        let kernel = gpu.function(&MATMUL, &self.of_square(n))?;
        let launch = self.launch(kernel, n, n)?;
        let launch = launch.arg(a.address).arg(b.address).arg(c.address);
        Ok(launch.arg(n as u64))
    }

    /// The linear layer, which the device can run.
    fn layer(
        &self,
        gpu: &Gpu,
        product: &Product,
        Shape { m, n, k, .. }: Shape,
    ) -> Result<Launch, RoutineError> {
        let kernel = gpu.function(&LINEAR, &self.of_layer())?;
        let bytes = self.shared_bytes();
        request_shared_memory(&kernel, bytes)?;
        let launch = self.launch(kernel, m, n)?.shared_bytes(bytes);
        let launch = launch.arg(product.a.address).arg(product.b.address);
        let launch = launch
            .arg(product.bias.unwrap_or(0))
            .arg(product.added.unwrap_or(0));
        let launch = launch.arg(product.c.address).arg(u32::try_from(m)?);
        let launch = launch.arg(u32::try_from(n)?).arg(u32::try_from(k)?);
        Ok(launch.arg(u32::from(product.relu)))
    }
}

impl fmt::Display for Tile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([m, n], [tm, tn]) = (self.block, self.thread);
        write!(f, "tile {m} x {n}, {tm} x {tn} per thread")?;
        if self.slices > 1 {
            write!(f, ", {} slices", self.slices)?;
        }
        Ok(())
    }
}

/// The tile of [`TILES`] whose busiest multiprocessor has the least to do at order `n`: large tiles need
/// the fewest loads, small ones leave fewer multiprocessors without work.
pub(crate) fn fitting(n: usize, multiprocessors: u32) -> &'static Tile {
    // In the time of a multiply-add of the largest tile, per term of the sum.
    let busiest = |(tile, slowdown): (&Tile, f64)| {
        let blocks = (n as u64).div_ceil(u64::from(tile.block[0])).pow(2);
        let per_processor = blocks.div_ceil(u64::from(multiprocessors.max(1)));
        per_processor as f64 * f64::from(tile.block[0]).powi(2) * slowdown
    };
    let tiles = TILES.iter().zip(SLOWDOWN);
    let fewest = tiles.min_by(|x, y| busiest(*x).total_cmp(&busiest(*y)));
    fewest.map_or(&TILES[0], |(tile, _)| tile)
}

/// The product by each tile that the device can run; none if it is no linear layer in f32 (a matrix times
/// a transposed one, plus a matrix or a bias or neither, with or without ReLU), or its rows are not
/// multiples of a four.
///
/// # Errors
/// Errors of the compiler and the driver.
pub(crate) fn of_layer(
    gpu: &Gpu,
    product: &Product,
    shape: Shape,
) -> Result<Vec<(String, Launch)>, RoutineError> {
    let Product { a, b, c, .. } = product;
    let (bias, added) = (product.bias.unwrap_or(0), product.added.unwrap_or(0));
    let plain = [a, b, c].iter().all(|matrix| matrix.format == Format::F32) && shape.batch == 1;
    let rows = !a.transposed && b.transposed;
    let addresses = [a.address, b.address, c.address, bias, added];
    let aligned = addresses.iter().all(|address| address.is_multiple_of(16));
    let whole = shape.k.is_multiple_of(DEPTH) && shape.n.is_multiple_of(FOUR);
    if !(plain && rows && aligned && whole) {
        return Ok(Vec::new());
    }
    if gpu.properties().compute_capability < LINEAR.oldest {
        return Ok(Vec::new());
    }
    let most = most_shared_memory(gpu)?;
    let tiles = LAYER_TILES
        .iter()
        .filter(|tile| tile.shared_bytes() <= most);
    let launch = |tile: &Tile| Ok((tile.to_string(), tile.layer(gpu, product, shape)?));
    tiles.map(launch).collect()
}

/// The most shared memory that a block may request, in bytes.
pub(super) fn most_shared_memory(gpu: &Gpu) -> Result<u32, RoutineError> {
    let most = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    let most = gpu.context().attribute(most);
    let most = most.called("cuDeviceGetAttribute")?;
    Ok(u32::try_from(most)?)
}

/// Requests dynamic shared memory for a kernel, as more than 48 KB requires.
pub(super) fn request_shared_memory(kernel: &CudaFunction, bytes: u32) -> Result<(), RoutineError> {
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    let set = kernel.set_attribute(attribute, i32::try_from(bytes)?);
    Ok(set.called("cuFuncSetAttribute")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiles_are_those_of_the_source() {
        let in_source = |source: &Source, of: &str| -> Vec<String> {
            let lines = source.text.lines().filter(|line| line.starts_with(of));
            lines.map(str::to_owned).collect()
        };
        let squares = in_source(&MATMUL, "TILED(");
        assert_eq!(squares.len(), TILES.len());
        for (tile, line) in TILES.iter().zip(squares) {
            let ([m, n], [tm, tn], resident) = (tile.block, tile.thread, tile.resident);
            assert_eq!((m, tile.stages), (n, 2));
            let expected = format!("TILED({m}, {tm}, {tn}, {}, {resident}, ", tile.threads());
            assert!(line.starts_with(&expected), "{line}, not {expected}");
        }
        let layers = LAYER_TILES.iter().map(|tile| {
            let ([m, n], [tm, tn]) = (tile.block, tile.thread);
            let (slices, stages, resident) = (tile.slices, tile.stages, tile.resident);
            format!("LINEAR({m}, {n}, {tm}, {tn}, {slices}, {stages}, {resident})")
        });
        assert_eq!(layers.collect::<Vec<_>>(), in_source(&LINEAR, "LINEAR("));
        assert!(LINEAR.text.contains(&format!("DEPTH = {DEPTH},")));
    }

    #[test]
    fn names_differ_and_blocks_fit() {
        let mut names: Vec<String> = LAYER_TILES.iter().map(Tile::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), LAYER_TILES.len());
        for tile in &LAYER_TILES {
            // Hopper has 228 KiB of shared memory; the driver keeps 1 KiB per block.
            let shared = tile.resident * (tile.shared_bytes() + 1024);
            assert!(shared <= 228 << 10, "{tile}: {shared} bytes");
            assert!([128, 256].contains(&tile.threads()), "{tile}");
        }
    }

    #[test]
    fn tiles_by_order_on_132_multiprocessors() {
        for (n, side) in [(1, 32), (512, 32), (1024, 64), (2048, 128), (32_768, 128)] {
            assert_eq!(fitting(n, 132).block, [side; 2], "order {n}");
        }
        // Rows that are not aligned take the other entry point.
        let names = [4096, 4095].map(|n| TILES[0].of_square(n));
        assert_eq!(names, ["matmul_tiled_128", "matmul_tiled_128_any"]);
    }
}
