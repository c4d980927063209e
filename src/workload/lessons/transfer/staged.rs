//! Copies of ordinary memory by several threads, through pinned buffers.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr};

use crate::device::gpu::Gpu;
use crate::model::role::Way;
use crate::model::verified::Verified;
use crate::workload::lessons::transfer::problem::{Transfer, verified};
use crate::workload::prepare::staging::{
    Block, Downloads, Stage, Staging, block_bytes, threads_to_try,
};
use crate::workload::prepare::trial;
use crate::workload::routine::{Made, Routine, RoutineError};

/// A copy of every byte from or to ordinary memory, by the number of threads that is fastest in a
/// trial.
///
/// # Errors
/// Errors of CUDA, and any direction but [`Way::ToDevice`] and [`Way::ToHost`].
pub fn staged(gpu: &Rc<Gpu>, problem: &Rc<Transfer>, way: Way) -> Made {
    let words = match way {
        Way::ToDevice => "to the device",
        Way::ToHost => "to the host",
        _ => return Err(format!("no copy {way:?} is staged").into()),
    };
    let bytes = problem.pattern.len();
    let name = |threads: usize| format!("{threads} threads");
    let choice = format!("copy of {bytes} bytes of ordinary memory {words}");
    let routine = trial::fastest_routine(&choice, &threads_to_try(bytes), name, |threads| {
        let mut made = Staged::new(gpu, problem, way, threads)?;
        made.notes = vec![name(threads)];
        Ok(made)
    })?;
    Ok(Box::new(routine))
}

struct Staged {
    /// Dropped before the memory that it has the addresses of.
    staging: Staging,
    gpu: Rc<Gpu>,
    problem: Rc<Transfer>,
    way: Way,
    device: CudaSlice<u8>,
    host: Vec<u8>,
    notes: Vec<String>,
}

impl Staged {
    fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Transfer>,
        way: Way,
        threads: usize,
    ) -> Result<Self, RoutineError> {
        let mut host = problem.pattern.clone();
        let device = gpu.upload(&problem.pattern)?;
        let address = device.device_ptr(gpu.stream()).0;
        let block = Block::whole(host.as_mut_ptr(), address, host.len());
        let (uploads, downloads) = match way {
            Way::ToHost => (Vec::new(), vec![block]),
            _ => (vec![block], Vec::new()),
        };
        let stage = Stage {
            uploads,
            compute: None,
            downloads,
        };
        let bytes = block_bytes(host.len(), threads);
        Ok(Self {
            staging: Staging::new(gpu, vec![stage], Downloads::Last, threads, bytes)?,
            gpu: Rc::clone(gpu),
            problem: Rc::clone(problem),
            way,
            device,
            host,
            notes: Vec::new(),
        })
    }
}

impl Routine for Staged {
    fn poison(&mut self) -> Result<(), RoutineError> {
        match self.way {
            Way::ToHost => self.problem.poison_host(&mut self.host),
            _ => (self.problem).poison_device(&self.gpu, &mut self.device)?,
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: host and device memory live in `self`, which is borrowed; the context is current
        // since the routine was made on this thread, which it cannot leave.
        Ok(unsafe { self.staging.run() }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(verified(match self.way {
            Way::ToHost => self.problem.differences(&self.host),
            _ => (self.problem).differences_on_device(&self.gpu, &self.device)?,
        }))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
