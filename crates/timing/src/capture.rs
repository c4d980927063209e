//! Captures a routine as a CUDA graph, to count its launches and to replay it.

use std::ptr;

use cudarc::driver::{CudaGraph, sys};

use crate::cuda_error::{Called, CudaError};
use crate::device::{Device, Routine};
use crate::error::TimingError;
use crate::panic::catch_panic;

/// `CU_GRAPH_NODE_TYPE_KERNEL`
const KERNEL: u32 = 0;
/// `CU_GRAPH_NODE_TYPE_GRAPH`: what the launch of a graph becomes within a capture.
const GRAPH: u32 = 4;

/// The work that one iteration enqueues on the timed stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Enqueued {
    /// Launches of kernels and graphs.
    pub(crate) launches: u32,
    /// Copies, memory sets and other nodes.
    pub(crate) others: u32,
}

impl Device {
    /// Counts the launches, copies and memory sets that `routine` enqueues, by capturing it once. The captured iteration then runs, so
    /// that the routine's memory is as after any other. `None` where it cannot be captured, for
    /// example because it synchronises.
    pub(crate) fn count(&self, routine: Routine<'_>) -> Result<Option<u32>, TimingError> {
        // A routine that waits for the device may panic at the driver's refusal.
        let mut caught = || {
            catch_panic(&mut *routine)
                .unwrap_or_else(|message| Err(TimingError::Routine(message.into())))
        };
        let Ok(graph) = self.capture(&mut caught) else {
            return Ok(None);
        };
        let counted = enqueued(&graph);
        self.replay(&graph)?;
        self.synchronize()?;
        let Enqueued { launches, others } = counted?;
        Ok(Some(launches + others))
    }

    /// Captures the work that `routine` enqueues on the stream. None of it runs.
    ///
    /// The reason why it cannot be captured. The routine's own error comes first, because the driver
    /// refuses uncapturable calls inside the routine.
    pub(crate) fn capture(&self, routine: Routine<'_>) -> Result<CudaGraph, TimingError> {
        self.stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .called("cuStreamBeginCapture")?;
        let ran = routine();
        // Ends the capture on failure too: a stream left capturing refuses everything else.
        let captured = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        // cudarc keeps the errors of drops, such as that of a buffer that a capture cannot free, and
        // returns them from later calls, which they have nothing to do with.
        let _ = self.context.check_err();
        ran?;
        let graph = captured.called("cuStreamEndCapture")?;
        let invalid = || CudaError::with_message("cuStreamEndCapture", "the capture left no graph");
        Ok(graph.ok_or_else(invalid)?)
    }

    /// Enqueues a captured graph.
    pub(crate) fn replay(&self, graph: &CudaGraph) -> Result<(), CudaError> {
        // SAFETY: graph and stream are alive; `window` and `capture` made the context current.
        CudaError::check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(graph.cu_graph_exec(), self.stream.cu_stream())
        })
    }
}

/// Counts the nodes of a captured graph.
pub(crate) fn enqueued(graph: &CudaGraph) -> Result<Enqueued, CudaError> {
    let mut count = 0;
    // SAFETY: the graph is alive; without a list the call only counts.
    CudaError::check("cuGraphGetNodes", unsafe {
        sys::cuGraphGetNodes(graph.cu_graph(), ptr::null_mut(), &mut count)
    })?;
    if count == 0 {
        // The driver refuses a list without room.
        return Ok(Enqueued {
            launches: 0,
            others: 0,
        });
    }
    let mut nodes = vec![ptr::null_mut(); count];
    // SAFETY: the list has room for as many nodes as it says.
    CudaError::check("cuGraphGetNodes", unsafe {
        sys::cuGraphGetNodes(graph.cu_graph(), nodes.as_mut_ptr(), &mut count)
    })?;
    let (mut launches, mut others) = (0, 0);
    for node in nodes {
        // A number instead of the binding's enum: a newer driver may have more kinds.
        let mut kind = 0u32;
        // SAFETY: a node of the graph; the enum has 32 bits.
        CudaError::check("cuGraphNodeGetType", unsafe {
            sys::cuGraphNodeGetType(node, (&raw mut kind).cast())
        })?;
        match kind {
            KERNEL | GRAPH => launches += 1,
            _ => others += 1,
        }
    }
    Ok(Enqueued { launches, others })
}
