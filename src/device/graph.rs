//! Work captured once from a stream and replayed by one driver call.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::{CudaGraph, CudaStream, sys};

use crate::timing::CudaError;

/// A graph captured from a stream, ready to be replayed on it. Replaying neither allocates
/// nor looks anything up.
///
/// It holds the addresses that the captured work uses, not the memory: whoever owns the
/// graph keeps that alive.
pub struct Graph {
    graph: CudaGraph,
    stream: Arc<CudaStream>,
}

impl Graph {
    /// Captures what `enqueue` puts on `stream`, which must not be the legacy default
    /// stream, and uploads the graph, so that the first replay costs what the others do.
    /// Nothing of it runs yet.
    ///
    /// # Errors
    /// The driver's error, or `enqueue`'s own.
    pub fn capture(
        stream: &Arc<CudaStream>,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .map_err(|e| CudaError::new("cuStreamBeginCapture", e))?;
        let enqueued = enqueue();
        // Ends the capture on failure too: a stream left capturing refuses everything else.
        let captured = stream.end_capture(sys::CUgraphInstantiate_flags(0));
        enqueued?;
        let graph = captured
            .map_err(|e| CudaError::new("cuStreamEndCapture", e))?
            .ok_or_else(|| {
                let message = "the capture was invalidated and left no graph";
                CudaError::with_message("cuStreamEndCapture", message)
            })?;
        graph
            .upload()
            .map_err(|e| CudaError::new("cuGraphUpload", e))?;
        Ok(Self {
            graph,
            stream: stream.clone(),
        })
    }

    /// Counts the kernels, copies and memory sets that `enqueue` puts on `stream`, by capturing it;
    /// nothing of it runs. Call `enqueue` once before: in a capture, a library may load nothing and
    /// allocate nothing.
    ///
    /// # Errors
    /// As [`capture`](Self::capture).
    pub fn count(
        stream: &CudaStream,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<u32, CudaError> {
        stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .map_err(|e| CudaError::new("cuStreamBeginCapture", e))?;
        let enqueued = enqueue();
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive, and ends its capture also where `enqueue` failed.
        let ended = unsafe { sys::cuStreamEndCapture(stream.cu_stream(), &mut graph) };
        let mut nodes = 0;
        let counted = match graph.is_null() {
            true => Ok(()),
            // SAFETY: the graph was just made; without a list the call only counts.
            false => CudaError::check("cuGraphGetNodes", unsafe {
                sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut nodes)
            }),
        };
        if !graph.is_null() {
            // SAFETY: made by the capture, destroyed once.
            let _ = unsafe { sys::cuGraphDestroy(graph) };
        }
        enqueued?;
        CudaError::check("cuStreamEndCapture", ended)?;
        counted?;
        Ok(u32::try_from(nodes).unwrap_or(u32::MAX))
    }

    /// Enqueues the graph on the stream it was captured from.
    ///
    /// # Safety
    /// Every address that the captured work uses must be valid until it has run, and the
    /// stream's context must be current on the calling thread.
    ///
    /// # Errors
    /// The driver's error of `cuGraphLaunch`.
    pub unsafe fn launch(&self) -> Result<(), CudaError> {
        // SAFETY: both handles live as long as `self`; the rest is the caller's.
        let status =
            unsafe { sys::cuGraphLaunch(self.graph.cu_graph_exec(), self.stream.cu_stream()) };
        CudaError::check("cuGraphLaunch", status)
    }
}
