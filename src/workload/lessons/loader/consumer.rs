//! The consumer of the batches: a kernel that reads every byte.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, sys};

use crate::device::Gpu;
use crate::model::Verified;
use crate::timing::{CudaError, EventPair, Launch};
use crate::workload::lessons::loader::images::BATCHES;
use crate::workload::lessons::loader::problem::{COSINE, Expected, SINE, STEPS, verify};
use crate::workload::lessons::loader::problem::{LOADER, Loader};
use crate::workload::routine::RoutineError;

/// Threads per block, as the kernel declares.
const THREADS: u32 = 256;

/// The kernel on each batch, and its results.
pub(super) struct Consumer {
    gpu: Rc<Gpu>,
    launches: Vec<Launch>,
    blocks: usize,
    means: CudaSlice<f64>,
    bytes: CudaSlice<u64>,
    /// Around each launch while [`timed`](Self::timed) is set.
    marks: Vec<EventPair>,
    pub(super) timed: bool,
}

impl Consumer {
    /// A consumer that reads batch `i` from buffer `i` modulo the number of buffers.
    pub(super) fn new(
        gpu: &Rc<Gpu>,
        problem: &Loader,
        buffers: &[CudaSlice<u8>],
    ) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let function = gpu.function(&LOADER, "consume")?;
        let blocks = 8 * gpu.properties().multiprocessors;
        let means: CudaSlice<f64> = gpu.alloc(BATCHES * blocks as usize)?;
        let bytes: CudaSlice<u64> = gpu.alloc(BATCHES * blocks as usize)?;
        let stream = gpu.stream();
        let launches = (0..BATCHES)
            .map(|batch| {
                let result = (batch * blocks as usize * size_of::<u64>()) as sys::CUdeviceptr;
                Launch::new(function.clone(), (blocks, 1, 1), (THREADS, 1, 1))
                    .arg(buffers[batch % buffers.len()].device_ptr(stream).0)
                    .arg(problem.images.batch_bytes() as u64)
                    .arg(COSINE)
                    .arg(SINE)
                    .arg(STEPS)
                    .arg(means.device_ptr(stream).0 + result)
                    .arg(bytes.device_ptr(stream).0 + result)
            })
            .collect();
        let marks = (0..BATCHES)
            .map(|_| EventPair::new(gpu.context()))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            gpu: gpu.clone(),
            launches,
            blocks: blocks as usize,
            means,
            bytes,
            marks,
            timed: false,
        })
    }

    pub(super) fn poison(&mut self) -> Result<(), CudaError> {
        self.gpu.poison(&mut self.means)?;
        self.gpu.poison(&mut self.bytes)
    }

    /// Enqueues the kernel on a batch that is in its buffer, or will be by the time it runs.
    pub(super) fn enqueue(&self, batch: usize) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        if self.timed {
            self.marks[batch].start(stream)?;
        }
        // SAFETY: the arguments are those the kernel declares; the buffer holds a batch, the
        // results have room for every block of every batch, and all of them live as long as
        // the epoch that owns this.
        unsafe { self.launches[batch].launch(stream) }?;
        if self.timed {
            self.marks[batch].end(stream)?;
        }
        Ok(())
    }

    /// Nanoseconds that the kernels of the last timed epoch took together.
    pub(super) fn kernels_ns(&self) -> Result<f64, CudaError> {
        self.marks.iter().map(EventPair::elapsed_ns).sum()
    }

    pub(super) fn check(&self, problem: &Loader) -> Result<Verified, CudaError> {
        let means = self.gpu.download(&self.means)?;
        let bytes = self.gpu.download(&self.bytes)?;
        let pixels = problem.images.batch_bytes() as f64;
        let found: Vec<Expected> = (means.chunks(self.blocks))
            .zip(bytes.chunks(self.blocks))
            .map(|(means, bytes)| Expected {
                mean: means.iter().sum::<f64>() / pixels,
                bytes: bytes.iter().fold(0, |sum, b| sum.wrapping_add(*b)),
            })
            .collect();
        Ok(verify(&found, problem.expected()))
    }
}
