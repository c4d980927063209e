//! Products in f32 of a few rows with a matrix that is read once, by kernels of our own.

use std::fmt;

use crate::device::{Gpu, kernel::Source};
use crate::model::Format;
use crate::timing::Launch;
use crate::workload::prepare::{ON_ALL_CORES, kernels};
use crate::workload::product::shape::{Matrix, Product, Shape};
use crate::workload::product::tile::{FOUR, most_shared_memory, request_shared_memory};
use crate::workload::routine::RoutineError;

/// The kernels of products of a few rows.
// From compute capability 8.0 on, for asynchronous copies to shared memory.
pub(crate) static FEW_ROWS: Source =
    kernels!("few_rows.cu", after "values.cuh", oldest(8, 0), options ON_ALL_CORES);

/// Columns and warps of a block, as in the source.
const COLUMNS: u32 = 32;
const WARPS: u32 = 8;

/// The numbers of a line `FEW_ROWS(...)` of the source.
#[derive(Debug)]
struct FewRows {
    /// Most rows of A.
    rows: u32,
    /// Stages of operands in shared memory.
    stages: u32,
}

/// Every kernel of `few_rows.cu`. On an H100 those with more stages took 25.1, 25.9, 27.6 and 33.6 µs for
/// 4, 8, 16 and 32 rows times 4096 x 4096, where the fastest algorithm of the library took 42 to 44. The
/// others fit into 99 KB of shared memory per block.
#[rustfmt::skip]
static KERNELS: [FewRows; 8] = [
    FewRows { rows: 4, stages: 6 },
    FewRows { rows: 4, stages: 4 },
    FewRows { rows: 8, stages: 6 },
    FewRows { rows: 8, stages: 4 },
    FewRows { rows: 16, stages: 6 },
    FewRows { rows: 16, stages: 4 },
    FewRows { rows: 32, stages: 5 },
    FewRows { rows: 32, stages: 3 },
];

impl FewRows {
    /// Shared memory per block, in bytes: 16 rows of B and 16 terms of each row of A per stage and warp.
    fn shared_bytes(&self) -> u32 {
        WARPS * self.stages * 16 * (COLUMNS + self.rows) * 4
    }

    fn launch(&self, gpu: &Gpu, product: &Product, shape: Shape) -> Result<Launch, RoutineError> {
        let kernel = format!("few_rows_{}_{}", self.rows, self.stages);
        let (kernel, bytes) = (gpu.function(&FEW_ROWS, &kernel)?, self.shared_bytes());
        request_shared_memory(&kernel, bytes)?;
        let (m, n) = (u32::try_from(shape.m)?, u32::try_from(shape.n)?);
        let grid = (n.div_ceil(COLUMNS), 1, 1);
        let launch = Launch::new(kernel, grid, (32 * WARPS, 1, 1)).shared_bytes(bytes);
        let Product { a, b, c, .. } = product;
        let launch = launch.arg(a.address).arg(b.address).arg(c.address);
        Ok(launch.arg(m).arg(n).arg(u32::try_from(shape.k)?))
    }
}

impl fmt::Display for FewRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "up to {} rows, {} stages", self.rows, self.stages)
    }
}

/// The product by each kernel that the device can run, of those for the fewest rows that suffice. None if
/// it has more rows or an epilogue, or its operands are not whole matrices in f32 with rows of fours, used
/// as they are.
///
/// # Errors
/// Errors of the compiler and the driver.
pub(super) fn candidates(
    gpu: &Gpu,
    product: &Product,
    shape: Shape,
) -> Result<Vec<(String, Launch)>, RoutineError> {
    if gpu.properties().compute_capability < FEW_ROWS.oldest || !fits(product, shape) {
        return Ok(Vec::new());
    }
    let most = most_shared_memory(gpu)?;
    let launch = |kernel: &FewRows| Ok((kernel.to_string(), kernel.launch(gpu, product, shape)?));
    let kernels = for_rows(shape.m).filter(|kernel| kernel.shared_bytes() <= most);
    kernels.map(launch).collect()
}

/// The kernels for the fewest rows that are at least `m`.
fn for_rows(m: usize) -> impl Iterator<Item = &'static FewRows> {
    let enough = KERNELS.iter().filter(|kernel| kernel.rows as usize >= m);
    let rows = enough.map(|kernel| kernel.rows).min();
    (KERNELS.iter()).filter(move |kernel| Some(kernel.rows) == rows)
}

fn fits(product: &Product, shape: Shape) -> bool {
    let whole = |m: &Matrix| {
        let in_fours = m.address.is_multiple_of(16) && m.columns.is_multiple_of(FOUR);
        m.format == Format::F32 && !m.transposed && m.pitch == m.columns && in_fours
    };
    let extra = [product.bias, product.added];
    let alone = product.factor == 1.0 && !product.relu && extra.iter().all(Option::is_none);
    alone && shape.batch == 1 && [product.a, product.b, product.c].iter().all(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_are_those_of_the_source() {
        let lines = FEW_ROWS.text.lines();
        let lines: Vec<&str> = lines.filter(|line| line.starts_with("FEW_ROWS(")).collect();
        let line = |of: &FewRows| format!("FEW_ROWS({}, {})", of.rows, of.stages);
        assert_eq!(lines, KERNELS.iter().map(line).collect::<Vec<_>>());
        let block = format!("COLUMNS = {COLUMNS}, WARPS = {WARPS};");
        assert!(FEW_ROWS.text.contains(&block));
    }

    #[test]
    fn each_number_of_rows_has_a_kernel_for_99_and_for_160_kb_of_shared_memory() {
        for (m, rows) in [(1, 4), (4, 4), (5, 8), (16, 16), (17, 32), (32, 32)] {
            let kernels: Vec<&FewRows> = for_rows(m).collect();
            assert!(kernels.iter().all(|of| of.rows == rows), "{m}: {kernels:?}");
            let bytes: Vec<u32> = kernels.iter().map(|of| of.shared_bytes()).collect();
            let fit = bytes[0] <= 160 << 10 && bytes[1] <= 99 << 10;
            assert!(fit, "{m}: {bytes:?}");
        }
        assert_eq!(for_rows(33).count(), 0);
    }

    #[test]
    fn only_whole_aligned_matrices_in_f32_without_an_epilogue_fit() {
        let product = |batch, n, k| {
            let shape = Shape { batch, m: 3, n, k };
            Product::whole(shape, Format::F32, [16, 1 << 10, 1 << 20])
        };
        let with = |change: fn(&mut Product)| {
            let mut changed = product(1, 36, 20);
            change(&mut changed);
            changed
        };
        let fit = |product: &Product| fits(product, product.shape().unwrap());
        assert!(fit(&product(1, 36, 20)));
        let unfit = [
            product(1, 34, 20),
            product(1, 36, 19),
            product(2, 36, 20),
            with(|p| p.a.format = Format::Tf32),
            with(|p| p.c.address += 4),
            with(|p| p.b = Matrix::new(1 << 10, Format::F32, 36, 20).t()),
            with(|p| [p.b, p.c] = [p.b.block(&(0..20), &(0..32)), p.c.block(&(0..3), &(0..32))]),
            with(|p| p.factor = 0.5),
            with(|p| p.added = Some(16)),
            with(|p| p.bias = Some(16)),
            with(|p| p.relu = true),
        ];
        for (at, product) in unfit.iter().enumerate() {
            assert!(!fit(product), "{at}");
        }
    }
}
