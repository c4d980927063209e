//! Captures a routine as a CUDA graph, to count its launches and to replay it.

use std::mem::MaybeUninit;
use std::ptr;

use cudarc::driver::{CudaGraph, sys};

use crate::cuda_error::{Called, CudaError};
use crate::device::{Device, Routine};
use crate::error::TimingError;
use crate::panic::catch_panic;

/// `CU_GRAPH_NODE_TYPE_KERNEL`
const KERNEL: u32 = 0;
/// `CU_GRAPH_NODE_TYPE_MEMCPY`
const COPY: u32 = 1;
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
    /// # Errors
    /// The reason why it cannot be captured. The routine's own error comes first, because the driver
    /// refuses uncapturable calls inside the routine. Copies of ordinary host memory are refused: the
    /// routine may free that memory when it returns, and a replay would access it again.
    pub(crate) fn capture(&self, routine: Routine<'_>) -> Result<CudaGraph, TimingError> {
        // In a capture, slices would wait for events from outside, and the failed capture would spoil the events.
        if self.context.is_managing_stream_synchronization() {
            let why = "cudarc's event tracking orders the streams of this context";
            return Err(TimingError::Routine(why.into()));
        }
        self.stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .called("cuStreamBeginCapture")?;
        let ran = routine();
        // cudarc keeps the errors of drops and of waits for events, and returns them from later calls, which
        // they have nothing to do with. The next call must end the capture.
        let kept = self.context.check_err();
        // Ends the capture on failure too: a stream left capturing refuses everything else.
        let captured = self.stream.end_capture(sys::CUgraphInstantiate_flags(0));
        let _ = self.context.check_err();
        match kept {
            // A slice of a context that tracks events was used, and the routine's error is a later one.
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION => {
                return Err(CudaError::new("cuStreamWaitEvent", error).into());
            }
            _ => ran?,
        }
        let graph = captured.called("cuStreamEndCapture")?;
        let invalid = || CudaError::with_message("cuStreamEndCapture", "the capture left no graph");
        let graph = graph.ok_or_else(invalid)?;
        for (node, kind) in nodes(&graph)? {
            if kind == COPY && copies_ordinary_memory(node)? {
                let why =
                    "it copies ordinary (pageable) host memory, which may be freed before a replay";
                return Err(TimingError::Routine(why.into()));
            }
        }
        Ok(graph)
    }

    /// Enqueues a captured graph.
    pub(crate) fn replay(&self, graph: &CudaGraph) -> Result<(), CudaError> {
        // SAFETY: `graph` and `self` own graph and stream; `window` and `capture` made the context current. The
        // host memory in it is pinned, by `capture`.
        CudaError::check("cuGraphLaunch", unsafe {
            sys::cuGraphLaunch(graph.cu_graph_exec(), self.stream.cu_stream())
        })
    }
}

/// Counts the nodes of a captured graph.
pub(crate) fn enqueued(graph: &CudaGraph) -> Result<Enqueued, CudaError> {
    let mut enqueued = Enqueued {
        launches: 0,
        others: 0,
    };
    for (_, kind) in nodes(graph)? {
        match kind {
            KERNEL | GRAPH => enqueued.launches += 1,
            _ => enqueued.others += 1,
        }
    }
    Ok(enqueued)
}

/// The nodes of a captured graph, with their kinds.
fn nodes(graph: &CudaGraph) -> Result<Vec<(sys::CUgraphNode, u32)>, CudaError> {
    let mut count = 0;
    // SAFETY: `graph` owns the graph; without a list the call only counts.
    CudaError::check("cuGraphGetNodes", unsafe {
        sys::cuGraphGetNodes(graph.cu_graph(), ptr::null_mut(), &mut count)
    })?;
    let mut nodes = vec![ptr::null_mut(); count];
    // The driver refuses a list without room.
    if count > 0 {
        // SAFETY: `graph` owns the graph; the list has room for `count` nodes.
        CudaError::check("cuGraphGetNodes", unsafe {
            sys::cuGraphGetNodes(graph.cu_graph(), nodes.as_mut_ptr(), &mut count)
        })?;
    }
    let kinds = nodes.into_iter().map(|node| {
        // A number instead of the binding's enum: a newer driver may have more kinds.
        let mut kind = 0u32;
        // SAFETY: a node of a graph that `graph` owns; the enum has 32 bits.
        let status = unsafe { sys::cuGraphNodeGetType(node, (&raw mut kind).cast()) };
        CudaError::check("cuGraphNodeGetType", status).map(|()| (node, kind))
    });
    kinds.collect()
}

/// Whether a copy in a graph reads or writes host memory that is not pinned.
fn copies_ordinary_memory(copy: sys::CUgraphNode) -> Result<bool, CudaError> {
    const HOST: u32 = sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32;
    const UNIFIED: u32 = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED as u32;
    let mut params = MaybeUninit::<sys::CUDA_MEMCPY3D>::zeroed();
    let params = params.as_mut_ptr();
    // SAFETY: the caller has this node from a graph that is alive; the address is valid for the write.
    let status = unsafe { sys::cuGraphMemcpyNodeGetParams(copy, params) };
    CudaError::check("cuGraphMemcpyNodeGetParams", status)?;
    // SAFETY: the struct was zeroed and filled by the driver. Its enums are read as the numbers that they are.
    let sides = unsafe {
        let (from, to) = (
            &raw const (*params).srcMemoryType,
            &raw const (*params).dstMemoryType,
        );
        [
            (
                from.cast::<u32>().read(),
                (*params).srcHost,
                (*params).srcDevice,
            ),
            (
                to.cast::<u32>().read(),
                (*params).dstHost.cast_const(),
                (*params).dstDevice,
            ),
        ]
    };
    for (kind, host, device) in sides {
        let address = match kind {
            HOST => host.addr() as sys::CUdeviceptr,
            UNIFIED => device,
            _ => continue,
        };
        let mut kind = 0u32;
        // SAFETY: the address is valid for the write of an enum of 32 bits; the driver takes any pointer.
        let status = unsafe {
            sys::cuPointerGetAttribute(
                (&raw mut kind).cast(),
                sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                address,
            )
        };
        // The driver does not know memory that it has not allocated or registered.
        if status == sys::CUresult::CUDA_ERROR_INVALID_VALUE {
            return Ok(true);
        }
        CudaError::check("cuPointerGetAttribute", status)?;
    }
    Ok(false)
}
