//! A batch of tokens that comes from host memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::calls::{copy_to_device, copy_to_host};
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::network::format::Format;
use crate::workload::prepare::host_memory::{Buffer, HostMemory, Input};
use crate::workload::routine::{Made, Routine, RoutineError};
use crate::workload::transformer::gpu::resident::Resident;
use crate::workload::transformer::model::VOCABULARY;
use crate::workload::transformer::problem::Inference;

/// One upload, the graph in f32, one download.
pub(super) fn transfer(gpu: &Rc<Gpu>, problem: &Rc<Inference>, memory: HostMemory) -> Made {
    Ok(Box::new(Transfer {
        resident: Resident::fused(gpu, problem, Format::F32, true)?,
        tokens: Input::new(gpu, memory, &problem.tokens)?,
        logits: Buffer::filled(gpu, memory, f32::NAN, problem.rows() * VOCABULARY)?,
    }))
}

struct Transfer {
    resident: Resident,
    tokens: Input<u32>,
    logits: Buffer<f32>,
}

impl Transfer {
    fn enqueue(&mut self) -> Result<(), RoutineError> {
        let memory = &self.resident.memory;
        let (problem, gpu) = (memory.problem.clone(), memory.gpu.clone());
        let stream = gpu.stream();
        let tokens = self.tokens.values(&problem.tokens)?;
        // SAFETY: both sides have the tokens of the batch and outlive the wait in `run`.
        unsafe { copy_to_device(tokens, memory.tokens(), stream) }?;
        let logits = memory.logits.address();
        self.resident.run()?;
        // SAFETY: so many f32 lie there, and `run` waits before anyone reads them.
        unsafe { copy_to_host(logits, self.logits.values_mut()?, stream) }?;
        Ok(())
    }
}

impl Routine for Transfer {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.resident.poison()?;
        self.resident.memory.poison_tokens()?;
        self.logits.values_mut()?.fill(f32::NAN);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let enqueued = self.enqueue();
        // Waits even after an error: what was enqueued before it may still use the memory.
        let waited: Result<(), CudaError> = self.resident.memory.gpu.synchronize();
        enqueued.and(waited.map_err(RoutineError::from))
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.resident.memory.check_logits(self.logits.values()?))
    }

    fn launches(&self) -> u32 {
        // Two copies more.
        self.resident.launches() + 2
    }

    fn extra(&mut self) -> Result<BTreeMap<String, f64>, RoutineError> {
        self.resident.extra()
    }

    fn notes(&self) -> Vec<String> {
        self.resident.notes()
    }
}
