//! Products on the GPU.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::model::verified::Verified;
use crate::timing::{CudaError, Launch};
use crate::workload::matmul::operands::Inputs;
use crate::workload::matmul::output::Output;
use crate::workload::matmul::problem::{MATMUL, Matmul};
use crate::workload::matmul::sgemm::Sgemm;
use crate::workload::matmul::tiles::{TILES, Tile, tile};
use crate::workload::prepare::launches::launches;
use crate::workload::prepare::trial;
use crate::workload::routine::{Made, Routine, RoutineError};

pub use crate::workload::matmul::pinned::{transfer_pinned, transfer_pinned_ways};
pub use crate::workload::matmul::staged::{transfer_staged, transfer_staged_ways};
pub use crate::workload::matmul::transfer::transfer;

/// Own kernel, one thread per element.
pub fn naive(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    let (name, block) = ("matmul_naive", (32, 8, 1));
    let function = gpu.function(&MATMUL, name)?;
    gpu.bind()?;
    let n = u32::try_from(problem.order())?;
    let grid = (n.div_ceil(block.0), n.div_ceil(block.1), 1);
    let naive = Resident::launched(gpu, problem, name, |[a, b, c]| {
        let launch = Launch::new(function, grid, block);
        Ok(launch.arg(a).arg(b).arg(c).arg(u64::from(n)))
    })?;
    Ok(Box::new(naive))
}

/// Own kernel, tiles in registers. The size of the tiles follows from the order and the number of
/// multiprocessors; [`Routine::notes`] says it.
pub fn tiled(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    let tile = tile(problem.order() as u64, gpu.properties().multiprocessors);
    tiled_by(gpu, problem, tile.side)
}

/// As [`tiled`], captured and replayed as a graph of one kernel.
pub fn tiled_graph(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    let tile = tile(problem.order() as u64, gpu.properties().multiprocessors);
    let resident = Resident::tiled(gpu, problem, tile)?;
    Ok(Box::new(resident.replayed()?))
}

/// [`tiled`] with tiles of `side` rows and columns: 32, 64 or 128. For tests, and to measure which
/// tile is fastest where.
///
/// # Errors
/// Another `side`, and errors of CUDA and of the kernel's compilation.
pub fn tiled_by(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, side: u32) -> Made {
    let tile = TILES
        .iter()
        .find(|tile| tile.side == side)
        .ok_or_else(|| format!("there is no tile of side {side}; choose 32, 64 or 128"))?;
    Ok(Box::new(Resident::tiled(gpu, problem, tile)?))
}

/// cuBLAS SGEMM in true f32 (not TF32), in the library's default mode; for a batch,
/// `cublasSgemmStridedBatched`.
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn cublas(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    Ok(Box::new(Resident::cublas(gpu, problem)?))
}

/// How the calls of a routine follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Without a wait between them.
    Queued,
    /// Each awaited before the next.
    Awaited,
}

/// The faster of [`tiled`] and [`cublas`] at this order, launched or replayed as a graph, by a
/// trial on the host's clock with calls as they will be timed. Above order 1024 it is cuBLAS
/// without a trial. The routine itself does not wait: for awaited calls, wrap it in
/// [`awaited`](fn@crate::workload::prepare::awaited).
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn best(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, calls: Calls) -> Made {
    let n = problem.order();
    if n > LARGEST_TRIED {
        return cublas(gpu, problem);
    }
    let words = match calls {
        Calls::Queued => "calls queued",
        Calls::Awaited => "each call awaited",
    };
    let choice = format!("product of order {n} in device memory, {words}");
    let (_, routine) = trial::fastest(
        &choice,
        &Way::ALL,
        |way| way.to_string(),
        |way| way.make(gpu, problem),
        |routine, times| routine.run_times(times, calls),
    )?;
    Ok(Box::new(routine))
}

/// Above this order the library wins, and the cost of a call is negligible.
const LARGEST_TRIED: usize = 1024;

/// A way to compute a small product in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Tiled,
    TiledGraph,
    Cublas,
    CublasGraph,
}

impl Way {
    const ALL: [Way; 4] = [Way::Tiled, Way::TiledGraph, Way::Cublas, Way::CublasGraph];

    fn make(self, gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Resident, RoutineError> {
        let tile = || tile(problem.order() as u64, gpu.properties().multiprocessors);
        let mut resident = match self {
            Way::Tiled => Resident::tiled(gpu, problem, tile())?,
            Way::TiledGraph => Resident::tiled(gpu, problem, tile())?.replayed()?,
            Way::Cublas => Resident::cublas(gpu, problem)?,
            Way::CublasGraph => Resident::cublas(gpu, problem)?.replayed()?,
        };
        resident.notes.insert(0, format!("fastest: {self}"));
        Ok(resident)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Tiled => "tiles in registers",
            Way::TiledGraph => "tiles in registers, as a graph",
            Way::Cublas => "cuBLAS",
            Way::CublasGraph => "cuBLAS, as a graph",
        })
    }
}

enum Product {
    Kernel(Launch),
    Sgemm(Sgemm),
}

/// A product whose operands and result stay in device memory.
struct Resident {
    /// The product, captured; dropped before the memory that it uses.
    graph: Option<Graph>,
    product: Product,
    /// Launches per iteration.
    launches: u32,
    // This and `output` keep the memory alive whose addresses `product` has.
    _inputs: Rc<Inputs>,
    output: Output,
    notes: Vec<String>,
}

impl Resident {
    fn tiled(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, tile: &Tile) -> Result<Self, RoutineError> {
        let n = problem.order();
        let launch = |addresses| tile.launch(gpu, n, addresses);
        Self::launched(gpu, problem, tile.name(n), launch)
    }

    fn cublas(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Self, RoutineError> {
        let inputs = problem.device_inputs(gpu)?;
        let output = Output::new(gpu, problem)?;
        let sgemm = Sgemm::new(gpu, problem.shape, inputs.a(), inputs.b(), output.address())?;
        // SAFETY: the addresses are those of the slices above, which have the lengths of the
        // shape.
        let launches = launches(gpu, || unsafe { sgemm.enqueue() })?;
        Ok(Self {
            graph: None,
            product: Product::Sgemm(sgemm),
            launches,
            _inputs: inputs,
            output,
            notes: Vec::new(),
        })
    }

    /// A kernel of the source on the addresses of A, B and C.
    fn launched(
        gpu: &Rc<Gpu>,
        problem: &Rc<Matmul>,
        name: &str,
        launch: impl FnOnce([CUdeviceptr; 3]) -> Result<Launch, RoutineError>,
    ) -> Result<Self, RoutineError> {
        let inputs = problem.device_inputs(gpu)?;
        let output = Output::new(gpu, problem)?;
        let launch = launch([inputs.a(), inputs.b(), output.address()])?;
        Ok(Self {
            graph: None,
            product: Product::Kernel(launch),
            launches: 1,
            _inputs: inputs,
            output,
            notes: vec![format!("kernel {name}")],
        })
    }

    /// The same, captured and replayed.
    fn replayed(mut self) -> Result<Self, CudaError> {
        // Once outside of a capture, in which the library may load nothing.
        self.enqueue()?;
        self.output.gpu().synchronize()?;
        let graph = Graph::capture(self.output.gpu().stream(), || self.enqueue())?;
        self.graph = Some(graph);
        self.notes.push("replayed as a graph".to_owned());
        Ok(self)
    }

    /// Runs `times` iterations, which are done when it returns.
    fn run_times(&mut self, times: u32, calls: Calls) -> Result<(), RoutineError> {
        for _ in 0..times {
            self.run()?;
            if calls == Calls::Awaited {
                self.output.gpu().synchronize()?;
            }
        }
        Ok(self.output.gpu().synchronize()?)
    }

    fn enqueue(&self) -> Result<(), CudaError> {
        match &self.product {
            // SAFETY: the arguments are those of every kernel of the source (A, B, C, n); the
            // slices live in `self`, have the lengths of the shape, and are distinct; the
            // context was made current when the routine was.
            Product::Kernel(launch) => unsafe { launch.launch(self.output.gpu().stream()) },
            // SAFETY: as above.
            Product::Sgemm(sgemm) => unsafe { sgemm.enqueue() },
        }
    }
}

impl Routine for Resident {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.output.poison()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        Ok(match &self.graph {
            // SAFETY: the slices that the graph uses live in `self`; the context is current, as
            // in `enqueue`.
            Some(graph) => unsafe { graph.launch() },
            None => self.enqueue(),
        }?)
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
