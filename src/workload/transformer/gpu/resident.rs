//! A batch of tokens that lies in device memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::network::format::Format;
use crate::workload::network::kept::Kept;
use crate::workload::network::part::Part;
use crate::workload::prepare::cublaslt::Workspace;
use crate::workload::routine::{Made, Routine, RoutineError};
use crate::workload::transformer::gpu::memory::Memory;
use crate::workload::transformer::gpu::{fused as few, unfused};
use crate::workload::transformer::problem::Inference;

/// In a kernel for each step.
pub(super) fn eager(gpu: &Rc<Gpu>, problem: &Rc<Inference>) -> Made {
    gpu.bind()?;
    let memory = Memory::new(gpu, problem, Format::F32, false)?;
    let workspace = Workspace::new(gpu)?;
    let (parts, notes) = unfused::pass(&memory, &workspace)?.into_parts();
    Ok(Box::new(Resident {
        graph: None,
        parts,
        notes,
        workspace_bytes: workspace.bytes(),
        memory,
    }))
}

/// In few kernels, replayed as a graph or not.
pub(super) fn fused(
    gpu: &Rc<Gpu>,
    problem: &Rc<Inference>,
    format: Format,
    replayed: bool,
) -> Made {
    Ok(Box::new(Resident::fused(gpu, problem, format, replayed)?))
}

pub(super) struct Resident {
    /// Dropped before the memory that it uses.
    graph: Option<Graph>,
    parts: Vec<Part>,
    notes: Vec<String>,
    pub(super) memory: Memory,
    workspace_bytes: usize,
}

impl Resident {
    pub(super) fn fused(
        gpu: &Rc<Gpu>,
        problem: &Rc<Inference>,
        format: Format,
        replayed: bool,
    ) -> Result<Self, RoutineError> {
        format.require(gpu)?;
        gpu.bind()?;
        let memory = Memory::new(gpu, problem, format, true)?;
        let workspace = Workspace::new(gpu)?;
        let (parts, notes) = few::pass(&memory, &workspace)?.into_parts();
        let mut made = Self {
            graph: None,
            parts,
            notes,
            workspace_bytes: workspace.bytes(),
            memory,
        };
        if replayed {
            // SAFETY: the graph lies beside the device memory that it uses, in one routine.
            let captured = Graph::capture(gpu.stream(), || unsafe { made.enqueue() })?;
            made.graph = Some(captured);
        }
        Ok(made)
    }

    /// # Safety
    /// The context must be current on this thread, and `self` must live until all has run.
    unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let stream = self.memory.gpu.stream();
        let mut parts = self.parts.iter();
        // SAFETY: the memory lies in `self`, parts on one stream run one after the other, and the
        // kernels' arguments were made with them; the rest is the caller's promise.
        parts.try_for_each(|part| unsafe { part.enqueue(stream) })
    }
}

impl Routine for Resident {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.memory.poison()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: the memory lies in `self`, and freeing it waits for its turn on the stream; the
        // context is current on this thread since this was made.
        Ok(unsafe {
            match &self.graph {
                Some(graph) => graph.launch(),
                None => self.enqueue(),
            }
        }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.memory.check()?)
    }

    // A graph may take as many places in the stream's queue as it has kernels.
    fn launches(&self) -> u32 {
        self.parts.iter().map(Part::launches).sum()
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
        self.notes.clone()
    }
}
