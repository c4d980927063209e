//! Nested sine end to end from ordinary memory, through pinned buffers.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, sys};

use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::workload::nested_sine::gpu::fused_launch;
use crate::workload::nested_sine::pinned::{FromPinned, cut};
use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::nested_sine::verify::POISON;
use crate::workload::prepare::host_memory::fill;
use crate::workload::prepare::staging::{Block, Downloads, Stage, Staging, Through, block_bytes};
use crate::workload::prepare::trial;
use crate::workload::routine::{Made, Routine, RoutineError, Ways};

/// From ordinary memory to ordinary memory by the fused kernel: through a copy in pinned memory, or
/// in pieces by several threads through pinned buffers. A trial chooses between these and the
/// number of threads. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer_staged(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    let choice = format!(
        "nested sine of {} values from ordinary memory",
        problem.len()
    );
    let mut chosen = trial::fastest_routine(&choice, &ways(problem.len()), Through::name, |way| {
        Staged::new(gpu, problem, way)
    })?;
    chosen.notes.insert(0, chosen.way.name());
    Ok(Box::new(chosen))
}

/// A routine for every way that [`transfer_staged`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_staged`].
pub fn transfer_staged_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Ways {
    let each = |way: Through| -> Result<(String, Box<dyn Routine>), RoutineError> {
        Ok((way.name(), Box::new(Staged::new(gpu, problem, way)?)))
    };
    ways(problem.len()).into_iter().map(each).collect()
}

fn ways(n: usize) -> Vec<Through> {
    // The bytes of both directions.
    Through::ways(2 * size_of::<f32>() * n)
}

struct Staged {
    /// Dropped before the memory that it has the addresses of.
    by: By,
    way: Through,
    problem: Rc<NestedSine>,
    y: Vec<f32>,
    notes: Vec<String>,
}

enum By {
    Pinned(Box<FromPinned>),
    Threads(Box<Threads>),
}

struct Threads {
    /// Dropped before the memory that it has the addresses of.
    staging: Staging,
    gpu: Rc<Gpu>,
    device: [CudaSlice<f32>; 2],
}

impl Threads {
    fn new(
        gpu: &Rc<Gpu>,
        problem: &NestedSine,
        threads: usize,
        output: &mut [f32],
    ) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let n = problem.len();
        let device = [gpu.alloc::<f32>(n)?, gpu.alloc::<f32>(n)?];
        let [x, y] = [0, 1].map(|at: usize| device[at].device_ptr(gpu.stream()).0);
        let from = problem.input().as_ptr().cast_mut();
        let to = output.as_mut_ptr();
        let float = size_of::<f32>();
        let block = block_bytes(2 * float * n, threads);
        // A block per thread and piece.
        let pieces = (float * n).div_ceil(block * threads).max(1);
        let mut stages = Vec::new();
        for (first, len) in cut(n, pieces) {
            let offset = (first * float) as sys::CUdeviceptr;
            let kernel = fused_launch(gpu, x + offset, y + offset, len as u64)?;
            let stream = gpu.stream().clone();
            let whole = |host: *mut f32, device: sys::CUdeviceptr| {
                Block::whole(
                    host.wrapping_add(first).cast(),
                    device + offset,
                    len * float,
                )
            };
            stages.push(Stage {
                uploads: vec![whole(from, x)],
                // SAFETY: the caller of `Staging::run` vouches for the memory, in which these
                // values lie, and for the context.
                compute: Some(Box::new(move || unsafe { kernel.launch(&stream) })),
                downloads: vec![whole(to, y)],
            });
        }
        Ok(Self {
            staging: Staging::new(gpu, stages, Downloads::Between, threads, block)?,
            gpu: Rc::clone(gpu),
            device,
        })
    }
}

impl Staged {
    fn new(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>, way: Through) -> Result<Self, RoutineError> {
        // Writing it makes the system provide the pages before anything is timed.
        let mut y = vec![POISON; problem.len()];
        let mut notes = Vec::new();
        let by = match way {
            Through::Copied => {
                let pinned = FromPinned::fastest(gpu, problem)?;
                notes = pinned.notes();
                By::Pinned(Box::new(pinned))
            }
            Through::Threads(threads) => {
                By::Threads(Box::new(Threads::new(gpu, problem, threads, &mut y)?))
            }
        };
        Ok(Self {
            by,
            way,
            problem: Rc::clone(problem),
            y,
            notes,
        })
    }
}

impl Routine for Staged {
    fn poison(&mut self) -> Result<(), RoutineError> {
        fill(&mut self.y, POISON);
        match &mut self.by {
            By::Pinned(pinned) => {
                // Else an input that is never copied would go unnoticed.
                fill(pinned.from()?, POISON);
                pinned.poison()
            }
            By::Threads(threads) => {
                for slice in &mut threads.device {
                    threads.gpu.poison(slice)?;
                }
                // Copies are on streams of their own.
                Ok(threads.gpu.synchronize()?)
            }
        }
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        match &mut self.by {
            By::Pinned(pinned) => {
                pinned.from()?.copy_from_slice(self.problem.input());
                pinned.run()?;
                self.y.copy_from_slice(pinned.to()?);
            }
            // SAFETY: the input lives in `problem`, the output and the device memory in `self`,
            // which is borrowed; the context is current since the routine was made on this
            // thread, which it cannot leave.
            By::Threads(threads) => unsafe { threads.staging.run() }?,
        }
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.problem.check_output(&self.y)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
