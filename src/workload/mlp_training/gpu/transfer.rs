//! A step on a batch that comes from host memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::calls::{copy_to_device, copy_to_host};
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::mlp_training::gpu::resident::Resident;
use crate::workload::mlp_training::problem::Training;
use crate::workload::network::format::Format;
use crate::workload::prepare::host_memory::{Buffer, HostMemory, Input};
use crate::workload::routine::{Made, Routine, RoutineError};

/// Two uploads, the graph of a step in f32, one download.
pub(super) fn transfer(gpu: &Rc<Gpu>, problem: &Rc<Training>, memory: HostMemory) -> Made {
    Ok(Box::new(Transfer {
        step: Resident::fused(gpu, problem, Format::F32, true)?,
        inputs: Input::new(gpu, memory, &problem.inputs)?,
        labels: Input::new(gpu, memory, &problem.labels)?,
        loss: Buffer::filled(gpu, memory, f32::NAN, 1)?,
    }))
}

struct Transfer {
    step: Resident,
    inputs: Input<f32>,
    labels: Input<u32>,
    loss: Buffer<f32>,
}

impl Transfer {
    fn enqueue(&mut self) -> Result<(), RoutineError> {
        let memory = &self.step.memory;
        let (problem, gpu) = (memory.problem.clone(), memory.gpu.clone());
        let stream = gpu.stream();
        let inputs = self.inputs.values(&problem.inputs)?;
        let labels = self.labels.values(&problem.labels)?;
        // SAFETY: both sides have the lengths of the batch and outlive the wait in `run`.
        unsafe {
            copy_to_device(inputs, memory.inputs.address(), stream)?;
            copy_to_device(labels, memory.labels(), stream)?;
        }
        let loss = memory.loss();
        self.step.run()?;
        // SAFETY: one value lies there, and `run` waits before anyone reads it.
        unsafe { copy_to_host(loss, self.loss.values_mut()?, stream) }?;
        Ok(())
    }
}

impl Routine for Transfer {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.step.poison()?;
        self.step.memory.poison_inputs()?;
        self.loss.values_mut()?.fill(f32::NAN);
        Ok(())
    }

    fn restore(&mut self) -> Result<(), RoutineError> {
        self.step.restore()
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let enqueued = self.enqueue();
        // Waits even after an error: what was enqueued before it may still use the memory.
        let waited: Result<(), CudaError> = self.step.memory.gpu.synchronize();
        enqueued.and(waited.map_err(RoutineError::from))
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let arrived = self.loss.values()?[0];
        Ok(self.step.memory.check_with_loss(arrived)?)
    }

    fn launches(&self) -> u32 {
        // Three copies more.
        self.step.launches() + 3
    }

    fn extra(&mut self) -> Result<BTreeMap<String, f64>, RoutineError> {
        self.step.extra()
    }

    fn notes(&self) -> Vec<String> {
        self.step.notes()
    }
}
