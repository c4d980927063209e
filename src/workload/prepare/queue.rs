//! Copies, kernels and library calls that are prepared once, on one stream or on three that
//! overlap: enqueued one by one, or replayed as one graph.

use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, result, sys};

use crate::device::calls::synchronize;
use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::timing::{CudaError, Launch};

/// A stream of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The stream that is timed, where kernels and library calls run.
    Compute,
    /// Copies to the device that overlap with it.
    Up,
    /// Copies to the host that overlap with both.
    Down,
}

/// What is enqueued.
enum Step {
    ToDevice {
        from: *const c_void,
        to: sys::CUdeviceptr,
        bytes: usize,
        on: On,
    },
    ToHost {
        from: sys::CUdeviceptr,
        to: *mut c_void,
        bytes: usize,
        on: On,
    },
    Block(Box<sys::CUDA_MEMCPY2D>, On),
    Kernel(Launch),
    Call(Box<dyn Fn() -> Result<(), CudaError>>),
    /// What follows on the second waits for what is on the first by then.
    Order(CudaEvent, On, On),
}

/// Prepared work. It holds the addresses that its steps use, not the memory: the owner of a queue
/// keeps that alive and in place.
pub(crate) struct Queue {
    /// Dropped before the streams that it was captured from.
    graph: Option<Graph>,
    gpu: Rc<Gpu>,
    others: Option<[Arc<CudaStream>; 2]>,
    steps: Vec<Step>,
}

impl Queue {
    /// A queue without steps, on the GPU's stream alone.
    pub(crate) fn new(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        gpu.bind()?;
        Ok(Self {
            graph: None,
            gpu: Rc::clone(gpu),
            others: None,
            steps: Vec::new(),
        })
    }

    /// A queue without steps, with streams for copies. These wait for the work on the GPU's stream,
    /// which may still use the memory. [`join`](Self::join) must be the last step.
    pub(crate) fn overlapped(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        let mut queue = Self::new(gpu)?;
        queue.others = Some([gpu.new_stream()?, gpu.new_stream()?]);
        queue.order(On::Compute, On::Up)?;
        queue.order(On::Compute, On::Down)?;
        Ok(queue)
    }

    /// Copies `from` to the device.
    pub(crate) fn upload<T>(&mut self, on: On, from: &[T], to: sys::CUdeviceptr) {
        self.steps.push(Step::ToDevice {
            from: from.as_ptr().cast(),
            to,
            bytes: size_of_val(from),
            on,
        });
    }

    /// Fills `to` from the device.
    pub(crate) fn download<T>(&mut self, on: On, from: sys::CUdeviceptr, to: &mut [T]) {
        self.steps.push(Step::ToHost {
            from,
            to: to.as_mut_ptr().cast(),
            bytes: size_of_val(to),
            on,
        });
    }

    /// Copies a block of a matrix.
    pub(crate) fn block(&mut self, on: On, block: sys::CUDA_MEMCPY2D) {
        self.steps.push(Step::Block(Box::new(block), on));
    }

    /// Launches a kernel.
    pub(crate) fn kernel(&mut self, launch: Launch) {
        self.steps.push(Step::Kernel(launch));
    }

    /// Calls a library, which enqueues on the GPU's stream.
    pub(crate) fn call(&mut self, call: impl Fn() -> Result<(), CudaError> + 'static) {
        self.steps.push(Step::Call(Box::new(call)));
    }

    /// Makes what follows on `then` wait for the steps on `first` so far.
    pub(crate) fn order(&mut self, first: On, then: On) -> Result<(), CudaError> {
        let event = self.gpu.new_event()?;
        self.steps.push(Step::Order(event, first, then));
        Ok(())
    }

    /// Makes the GPU's stream wait for the copies to the host. What uses the copies to the device
    /// must have waited for them.
    pub(crate) fn join(&mut self) -> Result<(), CudaError> {
        self.order(On::Down, On::Compute)
    }

    /// Captures the steps, which are replayed from then on. They run once before, since in a capture
    /// a library may load nothing.
    ///
    /// # Safety
    /// As [`run`](Self::run).
    pub(crate) unsafe fn capture(&mut self) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        unsafe { self.run() }?;
        // SAFETY: the caller's promise; nothing runs.
        let graph = Graph::capture(self.gpu.stream(), || unsafe { self.enqueue() })?;
        self.graph = Some(graph);
        Ok(())
    }

    /// Enqueues everything and waits until it is done, also after an error.
    ///
    /// # Safety
    /// Every address in the steps must be valid for what they do, nothing else may use it until this
    /// returns, and the context must be current on this thread.
    pub(crate) unsafe fn run(&self) -> Result<(), CudaError> {
        let enqueued = match &self.graph {
            // SAFETY: the caller's promise.
            Some(graph) => unsafe { graph.launch() },
            // SAFETY: the caller's promise.
            None => unsafe { self.enqueue() },
        };
        // After an error the GPU's stream may not wait for the others.
        let others = match (&enqueued, &self.others) {
            (Err(_), Some([up, down])) => synchronize(up).and(synchronize(down)),
            _ => Ok(()),
        };
        let waited = self.gpu.synchronize();
        enqueued.and(others).and(waited)
    }

    /// # Safety
    /// As [`run`](Self::run), until it is done.
    unsafe fn enqueue(&self) -> Result<(), CudaError> {
        for step in &self.steps {
            // SAFETY: the caller's promise; streams and events live in `self`.
            unsafe { self.step(step) }?;
        }
        Ok(())
    }

    fn stream(&self, on: On) -> &CudaStream {
        match (on, &self.others) {
            (On::Up, Some([up, _])) => up,
            (On::Down, Some([_, down])) => down,
            _ => self.gpu.stream(),
        }
    }

    /// # Safety
    /// As [`enqueue`](Self::enqueue).
    unsafe fn step(&self, step: &Step) -> Result<(), CudaError> {
        let raw = |on: On| self.stream(on).cu_stream();
        // These call the driver directly: cudarc's functions ask for the current context each time,
        // and a queue has many steps.
        // SAFETY: the caller's promise; streams and events are alive and of one context.
        unsafe {
            match step {
                Step::ToDevice {
                    from,
                    to,
                    bytes,
                    on,
                } => CudaError::check(
                    "cuMemcpyHtoDAsync",
                    sys::cuMemcpyHtoDAsync_v2(*to, *from, *bytes, raw(*on)),
                ),
                Step::ToHost {
                    from,
                    to,
                    bytes,
                    on,
                } => CudaError::check(
                    "cuMemcpyDtoHAsync",
                    sys::cuMemcpyDtoHAsync_v2(*to, *from, *bytes, raw(*on)),
                ),
                Step::Block(block, on) => CudaError::check(
                    "cuMemcpy2DAsync",
                    sys::cuMemcpy2DAsync_v2(&**block, raw(*on)),
                ),
                Step::Kernel(launch) => launch.launch(self.gpu.stream()),
                Step::Call(call) => call(),
                Step::Order(event, first, then) => {
                    result::event::record(event.cu_event(), raw(*first))
                        .map_err(|e| CudaError::new("cuEventRecord", e))?;
                    let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                    result::stream::wait_event(raw(*then), event.cu_event(), flags)
                        .map_err(|e| CudaError::new("cuStreamWaitEvent", e))
                }
            }
        }
    }

    /// Number of kernels and library calls, which count as launches.
    pub(crate) fn launches(&self) -> u32 {
        let computes = |step: &&Step| matches!(step, Step::Kernel(_) | Step::Call(_));
        self.steps.iter().filter(computes).count().max(1) as u32
    }
}
