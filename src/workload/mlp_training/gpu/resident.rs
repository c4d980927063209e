//! A step on a batch that lies in device memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::model::role;
use crate::model::verified::Verified;
use crate::workload::mlp_training::gpu::memory::Memory;
use crate::workload::mlp_training::gpu::step::Step;
use crate::workload::mlp_training::gpu::{fused as few, unfused};
use crate::workload::mlp_training::problem::Training;
use crate::workload::network::format::Format;
use crate::workload::network::kept::Kept;
use crate::workload::prepare::cublaslt::Workspace;
use crate::workload::routine::{Made, Routine, RoutineError};

/// In a kernel for each part.
pub(super) fn eager(gpu: &Rc<Gpu>, problem: &Rc<Training>) -> Made {
    gpu.bind()?;
    let memory = Memory::new(gpu, problem, Format::F32, false)?;
    let workspace = Workspace::new(gpu)?;
    Ok(Box::new(Resident {
        graph: None,
        step: unfused::step(&memory, &workspace)?,
        memory,
        workspace_bytes: workspace.bytes(),
    }))
}

/// In few kernels, replayed as a graph or not.
pub(super) fn fused(gpu: &Rc<Gpu>, problem: &Rc<Training>, format: Format, replayed: bool) -> Made {
    Ok(Box::new(Resident::fused(gpu, problem, format, replayed)?))
}

pub(super) struct Resident {
    /// Dropped before the memory that it uses.
    graph: Option<Graph>,
    step: Step,
    pub(super) memory: Memory,
    workspace_bytes: usize,
}

impl Resident {
    pub(super) fn fused(
        gpu: &Rc<Gpu>,
        problem: &Rc<Training>,
        format: Format,
        replayed: bool,
    ) -> Result<Self, RoutineError> {
        format.require(gpu)?;
        gpu.bind()?;
        let memory = Memory::new(gpu, problem, format, true)?;
        // Two products run at the same time.
        let workspaces = [Workspace::new(gpu)?, Workspace::new(gpu)?];
        let mut step = few::step(&memory, &workspaces)?;
        if replayed {
            let format = role::Format::from(format).name();
            let name = format!("batch {} in {format}", problem.batch);
            // SAFETY: the step's memory lives as long as it; what it trains is restored before it
            // is verified or timed.
            step = unsafe { step.in_fastest_order(&name) }?;
        }
        let graph = match replayed {
            // SAFETY: the graph lies beside the device memory that it uses, in one routine.
            true => Some(Graph::capture(gpu.stream(), || unsafe { step.enqueue() })?),
            false => None,
        };
        Ok(Self {
            graph,
            step,
            memory,
            workspace_bytes: workspaces.iter().map(|w| w.bytes()).sum(),
        })
    }
}

impl Routine for Resident {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.memory.poison()?)
    }

    fn restore(&mut self) -> Result<(), RoutineError> {
        Ok(self.memory.restore()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: the memory lies in `self`, and freeing it waits for its turn on the stream,
        // which waits for the branch beside it; the context is current on this thread since this
        // was made.
        Ok(unsafe {
            match &self.graph {
                Some(graph) => graph.launch(),
                None => self.step.enqueue(),
            }
        }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.memory.check()?)
    }

    // A graph may take as many places in the stream's queue as it has kernels.
    fn launches(&self) -> u32 {
        self.step.launches()
    }

    fn extra(&mut self) -> Result<BTreeMap<String, f64>, RoutineError> {
        let kept = Kept {
            parameters: self.memory.bytes_of_parameters(),
            activations: self.memory.bytes_of_activations(),
            workspace: self.workspace_bytes,
        };
        Ok(kept.figures())
    }

    fn notes(&self) -> Vec<String> {
        self.step.notes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::routine::Workload;

    #[test]
    #[ignore = "needs a CUDA device"]
    fn each_replay_advances_the_step_counter() {
        let gpu = Rc::new(Gpu::open(0).unwrap());
        let problem = Rc::new(Training::new(17));
        let mut step = Resident::fused(&gpu, &problem, Format::F32, true).unwrap();
        step.restore().unwrap();
        let mut expected = problem.start.counter;
        assert_eq!(step.memory.counted().unwrap(), expected.values());
        for _ in 0..3 {
            step.run().unwrap();
            expected = expected.next();
        }
        let counted = step.memory.counted().unwrap();
        for (found, expected) in counted.into_iter().zip(expected.values()) {
            assert!((found / expected - 1.0).abs() < 1e-14, "{counted:?}");
        }
        // The steps after the first started elsewhere, and are no result of the first.
        assert!(!step.check().unwrap().passed());
    }
}
