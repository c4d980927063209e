//! The product end to end from ordinary memory, through pinned buffers.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::matmul::pinned::FromPinned;
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::schedule::{Schedule, even};
use crate::workload::matmul::sgemm::{Matrix, Sgemm};
use crate::workload::matmul::shape::Shape;
use crate::workload::matmul::transfer::Copies;
use crate::workload::prepare::host_memory::fill;
use crate::workload::prepare::staging::{Block, Downloads, Stage, Staging, Through, block_bytes};
use crate::workload::prepare::trial;
use crate::workload::routine::{Made, Routine, RoutineError, Ways};

/// From this order on a product is cut as from pinned memory; below it, into a half and blocks.
const PANELS_FROM: usize = 2048;
/// From this order on a product is worth cutting.
const CUT_FROM: usize = 512;
/// About the bytes of a piece of a batch.
const PIECE: usize = 16 << 20;

/// Uploads the operands from ordinary memory, multiplies, and downloads the result to ordinary
/// memory: through a copy in pinned memory, or by several threads through pinned buffers, while the
/// product of what has arrived is computed. A trial chooses between these and the number of
/// threads. It synchronises: time it on the wall clock.
///
/// # Errors
/// As [`transfer`](crate::workload::matmul::gpu::transfer).
pub fn transfer_staged(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Made {
    let Shape { batch, m, n, k } = problem.shape;
    let choice = format!("{batch} products of {m} x {k} x {n} from ordinary memory");
    let mut chosen = trial::fastest_routine(&choice, &ways(problem.shape), Through::name, |way| {
        Staged::new(gpu, problem, way)
    })?;
    chosen.notes.insert(0, chosen.way.name());
    Ok(Box::new(chosen))
}

/// A routine for every way that [`transfer_staged`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_staged`].
pub fn transfer_staged_ways(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Ways {
    let each = |way: Through| -> Result<(String, Box<dyn Routine>), RoutineError> {
        Ok((way.name(), Box::new(Staged::new(gpu, problem, way)?)))
    };
    ways(problem.shape).into_iter().map(each).collect()
}

fn ways(shape: Shape) -> Vec<Through> {
    Through::ways(size_of::<f32>() * shape.elements())
}

struct Staged {
    /// Dropped before the memory that it has the addresses of.
    by: By,
    way: Through,
    problem: Rc<Matmul>,
    c: Vec<f32>,
    notes: Vec<String>,
}

enum By {
    Pinned(Box<FromPinned>),
    Threads(Box<Threads>),
}

struct Threads {
    /// Dropped before the memory that it has the addresses of.
    staging: Staging,
    copies: Copies,
    gpu: Rc<Gpu>,
}

impl Staged {
    fn new(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, way: Through) -> Result<Self, RoutineError> {
        // Writing it makes the system provide the pages before anything is timed.
        let mut c = vec![f32::NAN; problem.shape.c_len()];
        let mut notes = Vec::new();
        let by = match way {
            Through::Copied => {
                let pinned = FromPinned::fastest(gpu, problem)?;
                notes = pinned.notes();
                By::Pinned(Box::new(pinned))
            }
            Through::Threads(threads) => {
                let copies = Copies::new(gpu, problem.shape)?;
                let device = copies.addresses(gpu);
                let (stages, downloads) = stages(gpu, problem, device, &mut c)?;
                let bytes = size_of::<f32>() * problem.shape.elements();
                let block = block_bytes(bytes, threads);
                By::Threads(Box::new(Threads {
                    staging: Staging::new(gpu, stages, downloads, threads, block)?,
                    copies,
                    gpu: Rc::clone(gpu),
                }))
            }
        };
        Ok(Self {
            by,
            way,
            problem: Rc::clone(problem),
            c,
            notes,
        })
    }
}

/// What is uploaded, computed and downloaded, in order.
fn stages(
    gpu: &Rc<Gpu>,
    problem: &Matmul,
    [a, b, c]: [CUdeviceptr; 3],
    host: &mut [f32],
) -> Result<(Vec<Stage>, Downloads), RoutineError> {
    let shape = problem.shape;
    let [a, b, c] = [
        Place::new(problem.a.as_ptr().cast_mut(), a, shape.k),
        Place::new(problem.b.as_ptr().cast_mut(), b, shape.n),
        Place::new(host.as_mut_ptr(), c, shape.n),
    ];
    Ok(
        match shape == Shape::square(shape.n) && shape.n >= CUT_FROM {
            true => (cut(gpu, shape, [a, b, c])?, Downloads::Last),
            false => (pieces(gpu, shape, [a, b, c])?, Downloads::Between),
        },
    )
}

/// A batch in pieces of whole products, or a product as a whole.
fn pieces(gpu: &Rc<Gpu>, shape: Shape, [a, b, c]: [Place; 3]) -> Result<Vec<Stage>, RoutineError> {
    let bytes = size_of::<f32>() * shape.elements();
    let stage = |products: Range<usize>| -> Result<Stage, RoutineError> {
        let part = Shape {
            batch: products.len(),
            ..shape
        };
        let of = |rows: usize| (products.start * rows, products.len() * rows);
        let at = |place: &Place, rows: usize| place.device(products.start * rows, 0).address;
        let sgemm = Sgemm::new(gpu, part, at(&a, shape.m), at(&b, shape.k), at(&c, shape.m))?;
        Ok(Stage {
            uploads: vec![a.rows(of(shape.m)), b.rows(of(shape.k))],
            compute: Some(multiply(sgemm)),
            downloads: vec![c.rows(of(shape.m))],
        })
    };
    let pieces = even(shape.batch, (bytes / PIECE).max(1));
    pieces.map(stage).collect()
}

/// A square product in panels of terms and blocks of rows.
fn cut(gpu: &Rc<Gpu>, shape: Shape, [a, b, c]: [Place; 3]) -> Result<Vec<Stage>, RoutineError> {
    let schedule = match shape.n {
        n if n >= PANELS_FROM => Schedule::panels(n),
        n => Schedule::half(n, n / 256),
    };
    let mut stages = Vec::new();
    for terms in &schedule.panels {
        let part = Shape {
            k: terms.len(),
            ..shape
        };
        let beta = if terms.start == 0 { 0.0 } else { 1.0 };
        let (of_a, of_b) = (a.device(0, terms.start), b.device(terms.start, 0));
        let sgemm = Sgemm::blocks(gpu, part, of_a, of_b, c.device(0, 0), beta)?;
        stages.push(Stage {
            uploads: vec![
                b.rows((terms.start, terms.len())),
                a.block((0, shape.m), (terms.start, terms.len())),
            ],
            compute: Some(multiply(sgemm)),
            downloads: Vec::new(),
        });
    }
    let rest = (schedule.rest.start, schedule.rest.len());
    for rows in &schedule.blocks {
        let part = Shape {
            m: rows.len(),
            k: rest.1,
            ..shape
        };
        let (of_a, of_b) = (a.device(rows.start, rest.0), b.device(rest.0, 0));
        let sgemm = Sgemm::blocks(gpu, part, of_a, of_b, c.device(rows.start, 0), 1.0)?;
        let rows = (rows.start, rows.len());
        let mut uploads = vec![a.block(rows, rest)];
        if rows.0 == 0 {
            uploads.insert(0, b.rows(rest));
        }
        stages.push(Stage {
            uploads,
            compute: Some(multiply(sgemm)),
            downloads: vec![c.rows(rows)],
        });
    }
    Ok(stages)
}

fn multiply(sgemm: Sgemm) -> Box<dyn Fn() -> Result<(), CudaError>> {
    // SAFETY: the caller of `Staging::run` vouches for the memory; the blocks lie within it, and C
    // is distinct from A and B.
    Box::new(move || unsafe { sgemm.enqueue() })
}

/// Where a matrix lies on the host and on the device.
struct Place {
    host: *mut f32,
    device: Matrix,
}

impl Place {
    fn new(host: *mut f32, address: CUdeviceptr, pitch: usize) -> Self {
        Self {
            host,
            device: Matrix { address, pitch },
        }
    }

    fn device(&self, row: usize, column: usize) -> Matrix {
        self.device.at(row, column)
    }

    /// Whole rows: the first of them and their number.
    fn rows(&self, (first, rows): (usize, usize)) -> Block {
        let pitch = self.device.pitch;
        let host = self.host.wrapping_add(first * pitch).cast();
        let bytes = size_of::<f32>() * rows * pitch;
        Block::whole(host, self.device(first, 0).address, bytes)
    }

    /// Columns of rows: of each the first and the number.
    fn block(&self, rows: (usize, usize), (column, columns): (usize, usize)) -> Block {
        let pitch = self.device.pitch;
        if columns == pitch {
            return self.rows(rows);
        }
        let float = size_of::<f32>();
        Block {
            host: self.host.wrapping_add(rows.0 * pitch + column).cast(),
            host_pitch: float * pitch,
            device: self.device(rows.0, column).address,
            device_pitch: float * pitch,
            width: float * columns,
            rows: rows.1,
        }
    }
}

impl Routine for Staged {
    fn poison(&mut self) -> Result<(), RoutineError> {
        fill(&mut self.c, f32::NAN);
        match &mut self.by {
            By::Pinned(pinned) => {
                // Else operands that were never copied would go unnoticed.
                pinned.host.poison_operands()?;
                pinned.poison()
            }
            By::Threads(threads) => Ok(threads.copies.poison(&threads.gpu)?),
        }
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        match &mut self.by {
            By::Pinned(pinned) => {
                pinned.host.copy_operands()?;
                pinned.run()?;
                self.c.copy_from_slice(pinned.host.matrices()?.c);
            }
            // SAFETY: the operands live in `problem`, the result and the device memory in `self`,
            // which is borrowed; the context is current since the routine was made on this
            // thread, which it cannot leave.
            By::Threads(threads) => unsafe { threads.staging.run() }?,
        }
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = self.problem.error_of_rows(0, &self.c);
        Ok(self.problem.verified(error))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
