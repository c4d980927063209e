//! Captures a routine as a CUDA graph, to count its launches and to replay it.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::{CudaStream, result, sys};

use crate::cuda_error::{Called, CudaError};

/// `CU_GRAPH_NODE_TYPE_KERNEL`
const KERNEL: u32 = 0;
/// `CU_GRAPH_NODE_TYPE_MEMCPY`
pub(super) const COPY: u32 = 1;
/// `CU_GRAPH_NODE_TYPE_MEM_ALLOC`
const ALLOCATION: u32 = 10;
/// `CU_GRAPH_NODE_TYPE_MEM_FREE`
const FREE: u32 = 11;
/// `CU_GRAPH_NODE_TYPE_GRAPH`: what the launch of a graph becomes within a capture.
const GRAPH: u32 = 4;

/// The work that was put on a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enqueued {
    /// Launches of kernels and graphs.
    pub launches: u32,
    /// Those of graphs.
    pub graphs: u32,
    /// Copies, memory sets and other nodes.
    pub others: u32,
}

impl Enqueued {
    /// The replay of a graph.
    #[cfg(feature = "criterion")]
    pub(crate) const GRAPH: Self = Self {
        launches: 1,
        graphs: 1,
        others: 0,
    };

    /// The entries that it takes in the stream's queue.
    pub fn all(self) -> u32 {
        self.launches + self.others
    }
}

/// A graph captured from a stream, ready to be replayed on it. Replaying neither allocates
/// nor looks anything up.
///
/// It holds the addresses that the captured work uses, not the memory, and its kernels, not their
/// modules: whoever owns the graph keeps those alive.
#[derive(Debug)]
pub struct Graph {
    executable: sys::CUgraphExec,
    captured: Captured,
}

/// Captured work, not yet ready to be replayed.
#[derive(Debug)]
pub struct Captured {
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
    pub fn new<E: From<CudaError>>(
        stream: &Arc<CudaStream>,
        enqueue: impl FnOnce() -> Result<(), E>,
    ) -> Result<Self, E> {
        stream
            .begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .called("cuStreamBeginCapture")?;
        // The panic goes on below.
        let enqueued = catch_unwind(AssertUnwindSafe(enqueue));
        let mut captured = Self {
            graph: ptr::null_mut(),
            stream: stream.clone(),
        };
        // Ends the capture on failure and after a panic too: a stream left capturing refuses everything else.
        // SAFETY: the stream is alive.
        let ended = unsafe { sys::cuStreamEndCapture(stream.cu_stream(), &mut captured.graph) };
        enqueued.unwrap_or_else(|panic| resume_unwind(panic))?;
        CudaError::check("cuStreamEndCapture", ended)?;
        if captured.graph.is_null() {
            let message = "the capture was invalidated and left no graph";
            return Err(CudaError::with_message("cuStreamEndCapture", message).into());
        }
        Ok(captured)
    }

    /// The work that it has.
    pub(crate) fn enqueued(&self) -> Result<Enqueued, CudaError> {
        let mut enqueued = Enqueued::default();
        for (_, kind) in self.nodes()? {
            match kind {
                KERNEL => enqueued.launches += 1,
                GRAPH => {
                    enqueued.launches += 1;
                    enqueued.graphs += 1;
                }
                _ => enqueued.others += 1,
            }
        }
        Ok(enqueued)
    }

    /// Whether one of its kernels may begin before one that it depends on has ended.
    pub(super) fn overlaps(&self) -> Result<bool, CudaError> {
        const PROGRAMMATIC: u8 = 1;
        let mut count = 0;
        let null = ptr::null_mut();
        // SAFETY: `self` owns the graph; without lists the call only counts.
        let status =
            unsafe { sys::cuGraphGetEdges_v2(self.graph, null, null, ptr::null_mut(), &mut count) };
        CudaError::check("cuGraphGetEdges", status)?;
        if count == 0 {
            return Ok(false);
        }
        let [mut from, mut to] = [vec![ptr::null_mut(); count], vec![ptr::null_mut(); count]];
        // SAFETY: zeros are a value of this struct of numbers.
        let mut edges =
            vec![unsafe { MaybeUninit::<sys::CUgraphEdgeData>::zeroed().assume_init() }; count];
        // SAFETY: `self` owns the graph; the lists have room for `count` edges.
        let status = unsafe {
            sys::cuGraphGetEdges_v2(
                self.graph,
                from.as_mut_ptr(),
                to.as_mut_ptr(),
                edges.as_mut_ptr(),
                &mut count,
            )
        };
        CudaError::check("cuGraphGetEdges", status)?;
        Ok(edges.iter().any(|edge| edge.type_ == PROGRAMMATIC))
    }

    /// Why it cannot be replayed more than once, if its memory forbids it.
    pub(crate) fn reason_to_run_once(&self) -> Result<Option<&'static str>, CudaError> {
        let mut kept = BTreeSet::new();
        for (node, kind) in self.nodes()? {
            let mut address = 0;
            match kind {
                ALLOCATION => {
                    kept.insert(allocated(node)?);
                }
                FREE => {
                    // SAFETY: a node of this kind, of a graph that `self` owns; the address is valid for the write.
                    let status = unsafe { sys::cuGraphMemFreeNodeGetParams(node, &mut address) };
                    CudaError::check("cuGraphMemFreeNodeGetParams", status)?;
                    if !kept.remove(&address) {
                        return Ok(Some("it frees memory that it did not allocate"));
                    }
                }
                _ => {}
            }
        }
        let keeps = "it keeps memory that it allocates, and a second replay would find it still allocated: allocate \
            it once, outside, or free it in the same iteration";
        Ok((!kept.is_empty()).then_some(keeps))
    }

    /// Its nodes, with their kinds.
    pub(super) fn nodes(&self) -> Result<Vec<(sys::CUgraphNode, u32)>, CudaError> {
        let mut count = 0;
        // SAFETY: `self` owns the graph; without a list the call only counts.
        CudaError::check("cuGraphGetNodes", unsafe {
            sys::cuGraphGetNodes(self.graph, ptr::null_mut(), &mut count)
        })?;
        let mut nodes = vec![ptr::null_mut(); count];
        // The driver refuses a list without room.
        if count > 0 {
            // SAFETY: `self` owns the graph; the list has room for `count` nodes.
            CudaError::check("cuGraphGetNodes", unsafe {
                sys::cuGraphGetNodes(self.graph, nodes.as_mut_ptr(), &mut count)
            })?;
        }
        let kinds = nodes.into_iter().map(|node| {
            // A number instead of the binding's enum: a newer driver may have more kinds.
            let mut kind = 0u32;
            // SAFETY: a node of a graph that `self` owns; the enum has 32 bits.
            let status = unsafe { sys::cuGraphNodeGetType(node, (&raw mut kind).cast()) };
            CudaError::check("cuGraphNodeGetType", status).map(|()| (node, kind))
        });
        kinds.collect()
    }

    /// Makes it ready to be replayed, and uploads it, so that the first replay costs as much as the
    /// others.
    ///
    /// # Errors
    /// The driver's.
    pub fn instantiate(self) -> Result<Graph, CudaError> {
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

    /// Counts the work that `enqueue` puts on `stream`, by capturing it; nothing runs. Call `enqueue` once
    /// before: a library must not load code or allocate during a capture.
    ///
    /// # Errors
    /// As [`capture`](Self::capture).
    pub fn count(
        stream: &Arc<CudaStream>,
        enqueue: impl FnOnce() -> Result<(), CudaError>,
    ) -> Result<Enqueued, CudaError> {
        Captured::new(stream, enqueue)?.enqueued()
    }

    /// Enqueues the graph on the stream it was captured from.
    ///
    /// # Safety
    /// Every address that the captured work uses must be valid, and every module of its kernels loaded,
    /// until it has run; and the stream's context must be current on the calling thread.
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

/// The address of what a node allocates.
fn allocated(node: sys::CUgraphNode) -> Result<sys::CUdeviceptr, CudaError> {
    let mut params = MaybeUninit::<sys::CUDA_MEM_ALLOC_NODE_PARAMS>::zeroed();
    let params = params.as_mut_ptr();
    // SAFETY: the caller has this node from a graph that is alive; the address is valid for the write.
    let status = unsafe { sys::cuGraphMemAllocNodeGetParams(node, params) };
    CudaError::check("cuGraphMemAllocNodeGetParams", status)?;
    // SAFETY: the struct was zeroed and filled by the driver, and an address is a number.
    Ok(unsafe { (*params).dptr })
}

/// Whether a copy in a graph reads or writes host memory that is not pinned.
pub(super) fn copies_ordinary_memory(copy: sys::CUgraphNode) -> Result<bool, CudaError> {
    const HOST: u32 = sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32;
    const UNIFIED: u32 = sys::CUmemorytype::CU_MEMORYTYPE_UNIFIED as u32;
    let mut params = MaybeUninit::<sys::CUDA_MEMCPY3D>::zeroed();
    let params = params.as_mut_ptr();
    // SAFETY: the caller has this node from a graph that is alive; the address is valid for the write.
    let status = unsafe { sys::cuGraphMemcpyNodeGetParams(copy, params) };
    CudaError::check("cuGraphMemcpyNodeGetParams", status)?;
    /// A side: the kind of its memory, as a number instead of an enum, and both addresses.
    #[repr(C)]
    #[allow(dead_code, reason = "the layout is the driver's")]
    struct Side {
        offsets: [usize; 4],
        kind: u32,
        host: *const c_void,
        device: sys::CUdeviceptr,
        array: *const c_void,
        reserved: *const c_void,
        pitch_and_height: [usize; 2],
    }
    const { assert!(size_of::<[Side; 2]>() + 3 * size_of::<usize>() == size_of::<sys::CUDA_MEMCPY3D>()) };
    // SAFETY: the struct was zeroed and filled by the driver, and begins with two sides.
    let sides = unsafe { params.cast::<[Side; 2]>().read() };
    for Side {
        kind, host, device, ..
    } in sides
    {
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
