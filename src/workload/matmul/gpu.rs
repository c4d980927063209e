//! Products on the GPU.

use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::Launch;
use crate::workload::launches::launches;
use crate::workload::matmul::operands::Inputs;
use crate::workload::matmul::output::Output;
use crate::workload::matmul::problem::{MATMUL, Matmul};
use crate::workload::matmul::sgemm::Sgemm;
use crate::workload::routine::{Made, Routine, RoutineError};

pub use crate::workload::matmul::overlap::transfer_pinned;
pub use crate::workload::matmul::transfer::transfer;

/// Own kernel, one thread an element.
pub fn naive(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    kernel(gpu, problem, "matmul_naive", (32, 8), (32, 8))
}

/// Own kernel, tiles of 32 x 32 in shared memory.
pub fn shared(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    kernel(gpu, problem, "matmul_shared", (32, 32), (32, 32))
}

/// Own kernel, tiles in registers. The tile's size is chosen by the order and the number of
/// multiprocessors; [`Routine::notes`] says which.
pub fn tiled(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    let tile = tile(problem.order() as u64, gpu.properties().multiprocessors);
    tiled_by(gpu, problem, tile.side)
}

/// [`tiled`] with tiles of `side` rows and columns: 32, 64 or 128. For tests, and to find
/// where which tile is fastest.
///
/// # Errors
/// Another `side` as well.
pub fn tiled_by(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, side: u32) -> Made {
    let tile = TILES
        .iter()
        .find(|tile| tile.side == side)
        .ok_or_else(|| format!("there is no tile of side {side}; choose 32, 64 or 128"))?;
    kernel(
        gpu,
        problem,
        tile.name(problem.order()),
        (side, side),
        (tile.threads, 1),
    )
}

/// cuBLAS SGEMM in true f32 (not TF32), in the library's default mode; of a batch,
/// `cublasSgemmStridedBatched`.
pub fn cublas(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    let inputs = problem.device_inputs(gpu)?;
    let output = Output::new(gpu, problem)?;
    let sgemm = Sgemm::new(gpu, problem.shape, inputs.a(), inputs.b(), output.address())?;
    // SAFETY: the addresses are those of the slices above, which have the lengths of the shape.
    let launches = launches(gpu, || unsafe { sgemm.enqueue() })?;
    Ok(Box::new(Resident {
        product: Product::Sgemm(sgemm),
        launches,
        _inputs: inputs,
        output,
        notes: Vec::new(),
    }))
}

enum Product {
    Kernel(Launch),
    Sgemm(Sgemm),
}

/// A product whose operands and result stay in device memory.
struct Resident {
    product: Product,
    /// Launches of an iteration.
    launches: u32,
    // Holds the memory that `product` has the addresses of, as `output` does.
    _inputs: Rc<Inputs>,
    output: Output,
    notes: Vec<String>,
}

/// Kernel `name`, whose blocks of `block` threads each compute `tile` columns and rows.
fn kernel(
    gpu: &Rc<Gpu>,
    problem: &Rc<Matmul>,
    name: &str,
    tile: (u32, u32),
    block: (u32, u32),
) -> Made {
    let function = gpu.function(&MATMUL, name)?;
    let inputs = problem.device_inputs(gpu)?;
    let output = Output::new(gpu, problem)?;
    gpu.bind()?;
    let n = u32::try_from(problem.order())?;
    let grid = (n.div_ceil(tile.0), n.div_ceil(tile.1), 1);
    let launch = Launch::new(function, grid, (block.0, block.1, 1))
        .arg(inputs.a())
        .arg(inputs.b())
        .arg(output.address())
        .arg(u64::from(n));
    Ok(Box::new(Resident {
        product: Product::Kernel(launch),
        launches: 1,
        _inputs: inputs,
        output,
        notes: vec![format!("kernel {name}")],
    }))
}

impl Routine for Resident {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.output.poison()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        match &self.product {
            // SAFETY: the arguments are those of every kernel of this file (A, B, C, n); the
            // slices live in `self`, have the lengths of the shape, and are distinct; the
            // context was made current when the routine was.
            Product::Kernel(launch) => unsafe { launch.launch(self.output.gpu().stream()) }?,
            // SAFETY: as above.
            Product::Sgemm(sgemm) => unsafe { sgemm.enqueue() }?,
        }
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = self.output.error(|_| {})?;
        Ok(self.output.problem().verified(error))
    }

    fn launches(&self) -> u32 {
        self.launches
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// A size of the register-tiled kernel.
#[derive(Debug, PartialEq)]
struct Tile {
    /// Rows and columns of C that a block computes.
    side: u32,
    /// Threads of a block.
    threads: u32,
    /// Entry point where rows are aligned to 16 bytes, and where not.
    names: [&'static str; 2],
    /// Time of one multiply-add relative to the largest tile's, on a full device. Estimated
    /// from loads of shared memory a multiply-add (1/16, 3/32 and 1/8), not measured.
    slowdown: f64,
}

const TILES: [Tile; 3] = [
    Tile {
        side: 128,
        threads: 256,
        names: ["matmul_tiled_128", "matmul_tiled_128_any"],
        slowdown: 1.0,
    },
    Tile {
        side: 64,
        threads: 128,
        names: ["matmul_tiled_64", "matmul_tiled_64_any"],
        slowdown: 1.25,
    },
    Tile {
        side: 32,
        threads: 64,
        names: ["matmul_tiled_32", "matmul_tiled_32_any"],
        slowdown: 2.0,
    },
];

impl Tile {
    fn name(&self, n: usize) -> &'static str {
        self.names[usize::from(!n.is_multiple_of(4))]
    }

    /// Work of the busiest multiprocessor, in multiply-adds of the largest tile's kind for
    /// each term of the sum.
    fn busiest(&self, n: u64, multiprocessors: u32) -> f64 {
        let blocks = n.div_ceil(u64::from(self.side)).pow(2);
        let a_processor = blocks.div_ceil(u64::from(multiprocessors.max(1)));
        a_processor as f64 * f64::from(self.side).powi(2) * self.slowdown
    }
}

/// The tile whose busiest multiprocessor has the least to do: large tiles need the fewest
/// loads, small ones leave fewer multiprocessors without work.
fn tile(n: u64, multiprocessors: u32) -> &'static Tile {
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

    #[test]
    fn every_entry_point_is_in_the_source() {
        for name in TILES.iter().flat_map(|tile| tile.names) {
            assert!(MATMUL.text.contains(&format!(" {name}(")), "{name}");
        }
    }
}
