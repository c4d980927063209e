//! The consumer of the batches: a kernel that reads every byte.

use std::cell::Cell;
use std::rc::Rc;

use cudarc::driver::CudaStream;

use crate::timing::{CudaError, EventPair, Launch};
use crate::workload::lessons::loader::images::BATCHES;
use crate::workload::lessons::loader::problem::{COSINE, Expected, SINE, STEPS, verify};
use crate::workload::lessons::loader::problem::{LOADER, Loader};
use crate::workload::prepare::{Device, Prepared};
use crate::workload::routine::RoutineError;

/// Threads per block, as the kernel declares.
const THREADS: u32 = 256;

/// The kernel on each batch.
pub(super) struct Consumer {
    launches: Vec<Launch>,
    /// Around each launch while [`timed`](Self::timed) is set.
    marks: Vec<EventPair>,
    pub(super) timed: Cell<bool>,
}

impl Consumer {
    /// A consumer that reads batch `i` from buffer `i` modulo the number of buffers. The routine owns the
    /// buffers, gets the results, and checks them.
    pub(super) fn new(
        work: &mut Prepared,
        problem: &Rc<Loader>,
        buffers: &[Device<u8>],
    ) -> Result<Rc<Self>, RoutineError> {
        let gpu = work.memory.gpu().clone();
        let function = gpu.function(&LOADER, "consume")?;
        let blocks = 8 * gpu.properties().multiprocessors;
        let results = BATCHES * blocks as usize;
        let (means, bytes) = (
            work.unobserved::<f64>(results)?,
            work.unobserved::<u64>(results)?,
        );
        let launch = |batch: usize| {
            let result = batch * blocks as usize;
            Launch::new(function.clone(), (blocks, 1, 1), (THREADS, 1, 1))
                .arg(buffers[batch % buffers.len()].address)
                .arg(problem.images.batch_bytes() as u64)
                .arg(COSINE)
                .arg(SINE)
                .arg(STEPS)
                .arg(means.at(result))
                .arg(bytes.at(result))
        };
        let marks = (0..BATCHES).map(|_| EventPair::new(gpu.context()));
        let consumer = Rc::new(Self {
            launches: (0..BATCHES).map(launch).collect(),
            marks: marks.collect::<Result<_, _>>()?,
            timed: Cell::new(false),
        });
        work.keep(&consumer);
        let problem = problem.clone();
        work.check_by(move |memory| {
            let (means, bytes) = (memory.read(means)?, memory.read(bytes)?);
            let of_batches = means
                .chunks(blocks as usize)
                .zip(bytes.chunks(blocks as usize));
            let pixels = problem.images.batch_bytes() as f64;
            let found = of_batches.map(|(means, bytes)| Expected {
                mean: means.iter().sum::<f64>() / pixels,
                bytes: bytes.iter().fold(0, |sum, b| sum.wrapping_add(*b)),
            });
            Ok(verify(&found.collect::<Vec<_>>(), problem.expected()))
        });
        Ok(consumer)
    }

    /// Enqueues the kernel on a batch that is in its buffer, or will be by the time it runs.
    pub(super) fn enqueue(&self, batch: usize, stream: &CudaStream) -> Result<(), CudaError> {
        if self.timed.get() {
            self.marks[batch].start(stream)?;
        }
        // SAFETY: the arguments are those the kernel declares; the buffer holds a batch, the results have room
        // for every block of every batch, and the routine that owns all of them keeps this.
        unsafe { self.launches[batch].launch(stream) }?;
        if self.timed.get() {
            self.marks[batch].end(stream)?;
        }
        Ok(())
    }

    /// Nanoseconds that the kernels of the last timed epoch took together.
    pub(super) fn kernels_ns(&self) -> Result<f64, CudaError> {
        self.marks.iter().map(EventPair::elapsed_ns).sum()
    }
}
