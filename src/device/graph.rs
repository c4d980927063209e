//! Work captured once from a stream and replayed by one driver call.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::{CudaStream, result, sys};

use crate::timing::{Called, CudaError};

/// A graph captured from a stream, ready to be replayed on it. Replaying neither allocates
/// nor looks anything up.
///
/// It holds the addresses that the captured work uses, not the memory: whoever owns the
/// graph keeps that alive.
pub struct Graph {
    executable: sys::CUgraphExec,
    captured: Captured,
}

/// Captured work, not yet ready to be replayed.
pub(crate) struct Captured {
    /// Null where the capture was invalidated.
    graph: sys::CUgraph,
    stream: Arc<CudaStream>,
}

impl Captured {
    /// Captures the work that `enqueue` puts on `stream`, which must not be the legacy default stream.
    /// Nothing runs. Call `enqueue` once before: a library must not load code or allocate during a
    /// capture.
    ///
    /// # Errors
    /// The driver's error, or `enqueue`'s own.
    pub(crate) fn new(
        stream: &Arc<CudaStream>,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .called("cuStreamBeginCapture")?;
        let enqueued = enqueue();
        let mut captured = Self {
            graph: ptr::null_mut(),
            stream: stream.clone(),
        };
        // Ends the capture on failure too: a stream left capturing refuses everything else.
        // SAFETY: the stream is alive.
        let ended = unsafe { sys::cuStreamEndCapture(stream.cu_stream(), &mut captured.graph) };
        enqueued?;
        CudaError::check("cuStreamEndCapture", ended)?;
        if captured.graph.is_null() {
            let message = "the capture was invalidated and left no graph";
            return Err(CudaError::with_message("cuStreamEndCapture", message));
        }
        Ok(captured)
    }

    /// Number of its nodes.
    fn nodes(&self) -> Result<u32, CudaError> {
        let mut nodes = 0;
        // SAFETY: the graph is alive; without a list the call only counts.
        CudaError::check("cuGraphGetNodes", unsafe {
            sys::cuGraphGetNodes(self.graph, ptr::null_mut(), &mut nodes)
        })?;
        Ok(u32::try_from(nodes).unwrap_or(u32::MAX))
    }

    /// Makes it ready to be replayed, and uploads it, so that the first replay costs as much as the
    /// others.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn instantiate(self) -> Result<Graph, CudaError> {
        // SAFETY: the graph is alive.
        let executable =
            unsafe { result::graph::instantiate(self.graph, sys::CUgraphInstantiate_flags(0)) }
                .called("cuGraphInstantiate")?;
        let graph = Graph {
            executable,
            captured: self,
        };
        // SAFETY: the graph and its stream are alive.
        unsafe { result::graph::upload(graph.executable, graph.captured.stream.cu_stream()) }
            .called("cuGraphUpload")?;
        Ok(graph)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        if !self.graph.is_null() {
            // SAFETY: made by the capture, destroyed once.
            let destroyed = unsafe { result::graph::destroy(self.graph) };
            self.stream.context().record_err(destroyed);
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `instantiate`, destroyed once.
        let destroyed = unsafe { result::graph::exec_destroy(self.executable) };
        self.captured.stream.context().record_err(destroyed);
    }
}

impl Graph {
    /// Captures the work that `enqueue` puts on `stream`, which must not be the legacy default stream,
    /// and uploads the graph, so that the first replay costs as much as the others. Nothing runs yet.
    ///
    /// # Errors
    /// The driver's error, or `enqueue`'s own.
    pub fn capture(
        stream: &Arc<CudaStream>,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        Captured::new(stream, enqueue)?.instantiate()
    }

    /// Counts the kernels, copies and memory sets that `enqueue` puts on `stream`, by capturing it;
    /// nothing runs. Call `enqueue` once before: a library must not load code or allocate during a
    /// capture.
    ///
    /// # Errors
    /// As [`capture`](Self::capture).
    pub fn count(
        stream: &Arc<CudaStream>,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<u32, CudaError> {
        Captured::new(stream, enqueue)?.nodes()
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
            unsafe { sys::cuGraphLaunch(self.executable, self.captured.stream.cu_stream()) };
        CudaError::check("cuGraphLaunch", status)
    }
}
