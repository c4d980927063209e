//! Products on the GPU.

use std::rc::Rc;

use cudarc::driver::CudaStream;

use crate::device::Gpu;
use crate::model::Verified;
use crate::timing::CudaError;
use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::{Device, Prepared, choose};
use crate::workload::product::{
    Element, GpuPlan, Product, TILES, Tile, Workspace, fastest, fitting,
};
use crate::workload::routine::{Result, Routine};

pub use crate::workload::matmul::end_to_end::{from_host, from_pinned_ways};

/// Own kernel, tiles in registers. The size of the tiles follows from the order and the number of
/// multiprocessors; the notes say it.
pub fn tiled(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Box<dyn Routine>> {
    Ok(Box::new(by_tiles(gpu, problem, None)?))
}

/// [`tiled`] with tiles of `side` rows and columns: 32, 64 or 128. For tests, and to measure which
/// tile is fastest where.
///
/// # Errors
/// Another `side`, and errors of CUDA and of the kernel's compilation.
pub fn tiled_by(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, side: u32) -> Result<Box<dyn Routine>> {
    let tile = TILES
        .iter()
        .find(|tile| tile.block == [side; 2])
        .ok_or_else(|| format!("there is no tile of side {side}; choose 32, 64 or 128"))?;
    Ok(Box::new(by_tiles(gpu, problem, Some(tile))?))
}

/// cuBLAS SGEMM in true f32 (not TF32) or DGEMM, in the library's default mode; for a batch of f32,
/// `cublasSgemmStridedBatched`.
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn cublas<T: Element>(gpu: &Rc<Gpu>, problem: &Rc<Matmul<T>>) -> Result<Box<dyn Routine>> {
    Ok(Box::new(by_cublas(gpu, problem)?))
}

/// As [`cublas`], but the library is called in a run alone and not while the routine is made: the first
/// run is its first call.
pub(crate) fn cublas_uncalled(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Prepared> {
    resident(gpu, problem, false, |product| GpuPlan::cublas(gpu, product))
}

/// The fastest of cuBLASLt's algorithms and of our own kernels, by a calibration on the device. The notes
/// say which.
///
/// # Errors
/// Errors of CUDA and cuBLASLt, out of memory included.
pub fn calibrated(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Box<dyn Routine>> {
    let workspace = Workspace::new(gpu)?;
    let mut note = String::new();
    let mut work = resident(gpu, problem, true, |product| {
        let product = Product {
            own: true,
            ..*product
        };
        // SAFETY: these are the routine's three matrices, and its inputs are numbers.
        let chosen = unsafe { fastest(gpu, &workspace, product) }?;
        let (plan, _) = chosen.ok_or("cuBLASLt has no algorithm for this product")?;
        note = format!("fastest: {plan}");
        Ok(plan)
    })?;
    work.notes.push(note);
    Ok(Box::new(work))
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
/// without a trial. The routine itself does not wait: for awaited calls, have it
/// [wait](crate::workload::Routine::wait_for_each).
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn best(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, calls: Calls) -> Result<Box<dyn Routine>> {
    let n = problem.order();
    if n > LARGEST_TRIED {
        return cublas(gpu, problem);
    }
    let words = match calls {
        Calls::Queued => "calls queued",
        Calls::Awaited => "each call awaited",
    };
    let choice = format!("product of order {n} in device memory, {words}");
    let run = |work: &mut Prepared, times| {
        for _ in 0..times {
            work.steps.enqueue()?;
            if calls == Calls::Awaited {
                gpu.synchronize()?;
            }
        }
        Ok(gpu.synchronize()?)
    };
    let names = ["tiles in registers", "cuBLAS"];
    let names = names.map(|name| [name.to_owned(), format!("{name}, as a graph")]);
    let names = names.as_flattened();
    let make = |at: usize| {
        let work = match at {
            0 | 1 => by_tiles(gpu, problem, None)?,
            _ => by_cublas(gpu, problem)?,
        };
        match at % 2 {
            0 => Ok(work),
            _ => Ok(replayed(work)?),
        }
    };
    let (way, mut routine) = choose::build_fastest(&choice, names, make, run)?;
    routine.notes.insert(0, format!("fastest: {way}"));
    Ok(Box::new(routine))
}

/// Above this order the library wins, and the cost of a call is negligible.
const LARGEST_TRIED: usize = 1024;

/// A product whose operands and result stay in device memory, planned by `plan`. Its launches are one, or
/// are counted by calling it here.
fn resident<T: Element>(
    gpu: &Rc<Gpu>,
    problem: &Rc<Matmul<T>>,
    counted: bool,
    plan: impl FnOnce(&Product) -> Result<GpuPlan>,
) -> Result<Prepared> {
    let inputs = problem.device_inputs(gpu)?;
    let mut work = Prepared::new(gpu)?;
    let c = work.output(problem.shape.c_len())?;
    let [a, b] = inputs.matrices.map(|matrix| matrix.address);
    let product = Product::whole(problem.shape, T::FORMAT, [a, b, c.address]);
    let plan = plan(&product)?;
    // SAFETY: these are the routine's three matrices.
    let enqueue = move |stream: &CudaStream| unsafe { plan.enqueue(stream) };
    if counted {
        work.steps.counted_call(enqueue)?;
    } else {
        work.steps.call(enqueue);
    }
    work.reads(&inputs.memory, inputs.matrices);
    check_by_rows(&mut work, problem, c, None);
    Ok(work)
}

/// Compares C; `bound` replaces that of the format.
pub(crate) fn check_by_rows<T: Element>(
    work: &mut Prepared,
    problem: &Rc<Matmul<T>>,
    c: Device<T>,
    bound: Option<f64>,
) {
    let problem = problem.clone();
    work.check_by(move |memory| {
        let verified = problem.verified(problem.error_of(memory, c)?);
        Ok(Verified {
            bound: bound.unwrap_or(verified.bound),
            ..verified
        })
    });
}

/// By this tile, or by the one for the order and the device.
fn by_tiles(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, tile: Option<&'static Tile>) -> Result<Prepared> {
    let n = problem.order();
    let tile = tile.unwrap_or_else(|| fitting(n, gpu.properties().multiprocessors));
    let plan = |product: &Product| Ok(GpuPlan::Own(tile.to_string(), tile.square(gpu, product)?));
    let mut work = resident(gpu, problem, false, plan)?;
    work.notes = vec![format!("kernel {}", tile.of_square(n))];
    Ok(work)
}

fn by_cublas<T: Element>(gpu: &Rc<Gpu>, problem: &Rc<Matmul<T>>) -> Result<Prepared> {
    resident(gpu, problem, true, |product| GpuPlan::cublas(gpu, product))
}

/// A product that is captured and replayed.
fn replayed(mut work: Prepared) -> Result<Prepared, CudaError> {
    work.steps = work.steps.into_graph()?;
    work.notes.push("replayed as a graph".to_owned());
    Ok(work)
}
