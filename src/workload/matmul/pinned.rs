//! The product end to end from pinned memory, in the way that is fastest at its size.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::calls::mapped_address;
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::Launch;
use crate::workload::matmul::overlap;
use crate::workload::matmul::problem::{MATMUL, Matmul};
use crate::workload::matmul::sgemm::Sgemm;
use crate::workload::matmul::shape::Shape;
use crate::workload::matmul::tiles::tile;
use crate::workload::matmul::transfer::{Copies, HostSide, Matrices};
use crate::workload::matmul::ways::{Given, Multiply, Way, ways};
use crate::workload::prepare::host_memory::{HostMemory, fill};
use crate::workload::prepare::queue::{On, Queue};
use crate::workload::prepare::trial;
use crate::workload::routine::{Made, Routine, RoutineError, Ways};

/// Uploads the operands from pinned memory, multiplies, and downloads the result to pinned memory,
/// in the way that is fastest in a trial. A small product may be one graph, or read and write the
/// host's memory in place. From order 256 on, the product may begin when a part of the operands has
/// arrived, while rows of the result are downloaded as later ones are computed; a batch likewise.
/// It synchronises: time it on the wall clock.
///
/// # Errors
/// As [`transfer`](crate::workload::matmul::gpu::transfer).
pub fn transfer_pinned(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    Ok(Box::new(FromPinned::fastest(gpu, problem)?))
}

/// A routine for every way that [`transfer_pinned`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_pinned`].
pub fn transfer_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Ways {
    let each = |way: Way| -> Result<(String, Box<dyn Routine>), RoutineError> {
        let mut routine = FromPinned::new(gpu, problem)?;
        routine.queue = Some(routine.queue(way)?);
        Ok((way.to_string(), Box::new(routine)))
    };
    ways(problem.shape).into_iter().map(each).collect()
}

/// A product from pinned memory and back.
pub(super) struct FromPinned {
    /// Dropped before the memory that it has the addresses of. `None` only until it is chosen.
    queue: Option<Queue>,
    gpu: Rc<Gpu>,
    problem: Rc<Matmul>,
    copies: Copies,
    pub(super) host: HostSide,
    notes: Vec<String>,
}

impl FromPinned {
    /// In the fastest way.
    pub(super) fn fastest(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Self, RoutineError> {
        let mut this = Self::new(gpu, problem)?;
        let Shape { batch, m, n, k } = problem.shape;
        let choice = format!("{batch} products of {m} x {k} x {n} from pinned memory");
        let ways = ways(problem.shape);
        // SAFETY: the memory lives in `this`, and nothing else uses it; the context is current on this
        // thread since it was allocated.
        let (chosen, queue) =
            unsafe { trial::fastest_queue(&choice, &ways, |way| this.queue(way)) }?;
        this.notes = vec![chosen];
        this.queue = Some(queue);
        Ok(this)
    }

    fn new(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Self, RoutineError> {
        Ok(Self {
            queue: None,
            copies: Copies::new(gpu, problem.shape)?,
            host: HostSide::new(gpu, problem, HostMemory::Pinned)?,
            gpu: Rc::clone(gpu),
            problem: Rc::clone(problem),
            notes: Vec::new(),
        })
    }

    /// The steps of a way, with the addresses of this memory.
    fn queue(&mut self, way: Way) -> Result<Queue, RoutineError> {
        let (gpu, shape) = (&self.gpu, self.problem.shape);
        let device = self.copies.addresses(gpu);
        let mut host = self.host.matrices()?;
        let (mut queue, given) = match way {
            Way::Copies(by, given) => (copies(gpu, shape, by, device, &mut host)?, given),
            Way::Mapped(by, given) => (mapped(gpu, shape, by, device, &mut host)?, given),
            Way::InPlace => (in_place(gpu, shape, &mut host)?, Given::OneByOne),
            Way::Overlapped(cut, given) => {
                let schedule = cut.schedule(shape.n);
                let queue = overlap::product(gpu, shape, &schedule, device, &mut host)?;
                (queue, given)
            }
            Way::Batches(pieces, given) => {
                let queue = overlap::batch(gpu, shape, pieces.into(), device, &mut host)?;
                (queue, given)
            }
        };
        if given == Given::Graph {
            // SAFETY: the memory lives in `self`, which nothing else uses meanwhile.
            unsafe { queue.capture() }?;
        }
        Ok(queue)
    }
}

/// Two uploads, the product, a download.
fn copies(
    gpu: &Rc<Gpu>,
    shape: Shape,
    by: Multiply,
    device: [CUdeviceptr; 3],
    host: &mut Matrices<'_>,
) -> Result<Queue, RoutineError> {
    let [a, b, c] = device;
    let mut queue = Queue::new(gpu)?;
    queue.upload(On::Compute, host.a, a);
    queue.upload(On::Compute, host.b, b);
    multiply(&mut queue, gpu, shape, by, device)?;
    queue.download(On::Compute, c, host.c);
    Ok(queue)
}

/// A kernel fetches the operands, and the product writes to the host.
fn mapped(
    gpu: &Rc<Gpu>,
    shape: Shape,
    by: Multiply,
    [a, b, _]: [CUdeviceptr; 3],
    host: &mut Matrices<'_>,
) -> Result<Queue, RoutineError> {
    const THREADS: usize = 256;
    // Of each operand the whole vectors, and one by one the values that are left.
    let items = |len: usize| len / 4 + len % 4;
    let items = items(host.a.len()) + items(host.b.len());
    let most = 8 * gpu.properties().multiprocessors;
    let blocks = u32::try_from(items.div_ceil(THREADS))?.clamp(1, most);
    let fetch = gpu.function(&MATMUL, "matmul_fetch")?;
    let mut queue = Queue::new(gpu)?;
    queue.kernel(
        Launch::new(fetch, (blocks, 1, 1), (THREADS as u32, 1, 1))
            .arg(a)
            .arg(mapped_address(host.a)?)
            .arg(host.a.len() as u64)
            .arg(b)
            .arg(mapped_address(host.b)?)
            .arg(host.b.len() as u64),
    );
    multiply(&mut queue, gpu, shape, by, [a, b, mapped_address(host.c)?])?;
    Ok(queue)
}

/// The tiled kernel on the host's memory.
fn in_place(gpu: &Rc<Gpu>, shape: Shape, host: &mut Matrices<'_>) -> Result<Queue, RoutineError> {
    let host = [
        mapped_address(host.a)?,
        mapped_address(host.b)?,
        mapped_address(host.c)?,
    ];
    let mut queue = Queue::new(gpu)?;
    multiply(&mut queue, gpu, shape, Multiply::Tiled, host)?;
    Ok(queue)
}

fn multiply(
    queue: &mut Queue,
    gpu: &Rc<Gpu>,
    shape: Shape,
    by: Multiply,
    [a, b, c]: [CUdeviceptr; 3],
) -> Result<(), RoutineError> {
    match by {
        Multiply::Tiled => {
            let tile = tile(shape.n as u64, gpu.properties().multiprocessors);
            queue.kernel(tile.launch(gpu, shape.n, [a, b, c])?);
        }
        Multiply::Cublas => {
            let sgemm = Sgemm::new(gpu, shape, a, b, c)?;
            // SAFETY: whoever runs the queue vouches for the memory, of which these are whole
            // matrices; C is distinct from A and B.
            queue.call(move || unsafe { sgemm.enqueue() });
        }
    }
    Ok(())
}

impl Routine for FromPinned {
    fn poison(&mut self) -> Result<(), RoutineError> {
        fill(self.host.matrices()?.c, f32::NAN);
        Ok(self.copies.poison(&self.gpu)?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let queue = self.queue.as_ref().ok_or("no way has been chosen")?;
        // SAFETY: the memory lives in `self`, which is borrowed; the context is current since
        // the queue was made on this thread, which it cannot leave.
        Ok(unsafe { queue.run() }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = self.problem.error_of_rows(0, self.host.matrices()?.c);
        Ok(self.problem.verified(error))
    }

    fn launches(&self) -> u32 {
        self.queue.as_ref().map_or(1, Queue::launches)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
