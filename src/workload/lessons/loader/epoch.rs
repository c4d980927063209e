//! An epoch: how the batches reach the device.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DevicePtr};

use crate::device::{
    Gpu,
    copies_and_events::{copy_to_device, record, wait},
};
use crate::model::Verified;
use crate::timing::CudaError;
use crate::workload::lessons::loader::consumer::Consumer;
use crate::workload::lessons::loader::images::{BATCHES, IMAGE};
use crate::workload::lessons::loader::problem::Loader;
use crate::workload::lessons::loader::worker::Worker;
use crate::workload::prepare::{Buffer, HostMemory};
use crate::workload::routine::{Made, Routine, RoutineError};
use crossover_results::statistics::median::median;

/// Epochs that the share of the time in which a kernel runs rests on; their median counts.
const TIMED_EPOCHS: usize = 3;

/// How batches come to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feed {
    /// One thread and one buffer: gather, copy, consume, wait, in sequence.
    InSequence(HostMemory),
    /// This many threads gather the next batches into pinned buffers, one buffer more than threads,
    /// while the device copies and consumes; the copies are on a stream of their own.
    Threads(usize),
}

/// An epoch of all batches, which reach the device by `feed`.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation, and a thread that cannot be started.
///
/// # Panics
/// On [`Feed::Threads`] of 0.
pub fn epoch(gpu: &Rc<Gpu>, problem: &Rc<Loader>, feed: Feed) -> Made {
    let (source, buffers) = match feed {
        Feed::InSequence(memory) => (Source::Buffer(buffer(gpu, problem, memory)?), 1),
        Feed::Threads(threads) => (Source::Pipeline(Pipeline::new(gpu, problem, threads)?), 2),
    };
    let device = (0..buffers)
        .map(|_| gpu.alloc(problem.images.batch_bytes()))
        .collect::<Result<Vec<_>, _>>()?;
    let consumer = Consumer::new(gpu, problem, &device)?;
    // The buffers were allocated in the order of one stream and are used on two.
    gpu.synchronize()?;
    Ok(Box::new(Epoch {
        gpu: gpu.clone(),
        problem: problem.clone(),
        source,
        device,
        consumer,
    }))
}

enum Source {
    Buffer(Buffer<u8>),
    Pipeline(Pipeline),
}

/// Host memory for one batch.
fn buffer(gpu: &Gpu, problem: &Loader, memory: HostMemory) -> Result<Buffer<u8>, CudaError> {
    Buffer::filled(gpu, memory, 1, problem.images.batch_bytes())
}

/// All batches of an epoch, fed to the device one way.
struct Epoch {
    gpu: Rc<Gpu>,
    problem: Rc<Loader>,
    source: Source,
    /// A feed in sequence uses the first alone.
    device: Vec<CudaSlice<u8>>,
    consumer: Consumer,
}

impl Routine for Epoch {
    fn poison(&mut self) -> Result<(), RoutineError> {
        for buffer in &mut self.device {
            self.gpu.poison(buffer)?;
        }
        self.consumer.poison()?;
        // The stream of the copies does not wait for the clock's.
        Ok(self.gpu.synchronize()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let Self {
            gpu,
            problem,
            device,
            consumer,
            ..
        } = self;
        match &mut self.source {
            Source::Buffer(host) => {
                in_sequence(gpu, problem, host.values_mut()?, &device[0], consumer)
            }
            Source::Pipeline(pipeline) => pipeline.run(gpu, device, consumer),
        }
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.consumer.check(&self.problem)?)
    }

    fn launches(&self) -> u32 {
        BATCHES as u32
    }

    fn extra(&mut self) -> Result<BTreeMap<String, f64>, RoutineError> {
        self.consumer.timed = true;
        let mut shares = Vec::with_capacity(TIMED_EPOCHS);
        for _ in 0..TIMED_EPOCHS {
            let start = Instant::now();
            self.run()?;
            let wall = start.elapsed().as_nanos() as f64;
            shares.push(self.consumer.kernels_ns()? / wall);
        }
        self.consumer.timed = false;
        let running = median(shares).map(|share| ("kernel_running_share".to_owned(), share));
        let samples = [("sample_bytes".to_owned(), IMAGE as f64)];
        Ok(samples.into_iter().chain(running).collect())
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // After an error the device may still be reading a buffer that is about to go.
        let _ = self.gpu.synchronize();
    }
}

fn in_sequence(
    gpu: &Gpu,
    problem: &Loader,
    host: &mut [u8],
    device: &CudaSlice<u8>,
    consumer: &Consumer,
) -> Result<(), RoutineError> {
    let stream = gpu.stream();
    for batch in 0..BATCHES {
        problem.images.gather(batch, host);
        copy(host, device, stream)?;
        consumer.enqueue(batch)?;
        // The next batch is gathered into the same buffer.
        gpu.synchronize()?;
    }
    Ok(())
}

/// Enqueues a copy to the device. The caller keeps `host` as it is until it has waited for the
/// copy.
fn copy(host: &[u8], device: &CudaSlice<u8>, stream: &CudaStream) -> Result<(), CudaError> {
    let to = device.device_ptr(stream).0;
    // SAFETY: both sides hold a batch. The callers are in this file: one synchronises before
    // it writes the buffer again, the other waits for the event behind the copy.
    unsafe { copy_to_device(host, to, stream) }
}

/// Threads that gather batches ahead into pinned buffers, one more than threads, a stream for
/// the copies, and two buffers on the device.
struct Pipeline {
    // Dropped first: a worker may be writing into a slot.
    workers: Vec<Worker>,
    copies: Arc<CudaStream>,
    slots: Vec<Slot>,
    /// One per buffer on the device: its batch has been consumed.
    consumed: [CudaEvent; 2],
}

struct Slot {
    address: NonNull<u8>,
    /// The copy out of this slot has arrived.
    copied: CudaEvent,
    /// The memory at `address`.
    _memory: Buffer<u8>,
}

impl Pipeline {
    fn new(gpu: &Rc<Gpu>, problem: &Loader, threads: usize) -> Result<Self, RoutineError> {
        assert!(threads > 0, "batches are gathered by one thread at least");
        let slots = (0..=threads)
            .map(|_| {
                let mut memory = buffer(gpu, problem, HostMemory::Pinned)?;
                Ok(Slot {
                    address: NonNull::from(memory.values_mut()?).cast(),
                    copied: gpu.new_event()?,
                    _memory: memory,
                })
            })
            .collect::<Result<Vec<_>, CudaError>>()?;
        Ok(Self {
            workers: (0..threads)
                .map(|_| Worker::start(&problem.images, slots.len()))
                .collect::<Result<_, _>>()?,
            copies: gpu.new_stream()?,
            slots,
            consumed: [gpu.new_event()?, gpu.new_event()?],
        })
    }

    /// Orders a batch to be gathered into its slot, which must be free.
    fn order(&mut self, batch: usize) -> Result<(), RoutineError> {
        let slot = self.slots[batch % self.slots.len()].address;
        let worker = batch % self.workers.len();
        // SAFETY: a slot holds a batch. It is ordered anew only after its worker was waited
        // for and the copy out of it has arrived, and the workers are dropped before it.
        unsafe { self.workers[worker].order(batch, slot) }
    }

    /// After an error this must not be called again: batches may be left in the pipeline.
    fn run(
        &mut self,
        gpu: &Gpu,
        device: &[CudaSlice<u8>],
        consumer: &Consumer,
    ) -> Result<(), RoutineError> {
        let ahead = self.slots.len();
        let bytes = device[0].len();
        for batch in 0..ahead {
            self.order(batch)?;
        }
        for batch in 0..BATCHES {
            let threads = self.workers.len();
            self.workers[batch % threads].wait()?;
            let slot = &self.slots[batch % ahead];
            let buffer = batch % device.len();
            if batch >= device.len() {
                wait(&self.copies, &self.consumed[buffer])?;
            }
            // SAFETY: the worker is done with the slot, which holds a batch.
            let gathered = unsafe { std::slice::from_raw_parts(slot.address.as_ptr(), bytes) };
            copy(gathered, &device[buffer], &self.copies)?;
            record(&slot.copied, &self.copies)?;
            wait(gpu.stream(), &slot.copied)?;
            consumer.enqueue(batch)?;
            record(&self.consumed[buffer], gpu.stream())?;
            // The slot of the batch before is free once its copy has arrived; that of this
            // batch is copied meanwhile.
            if batch >= 1 && batch - 1 + ahead < BATCHES {
                self.slots[(batch - 1) % ahead]
                    .copied
                    .synchronize()
                    .map_err(|e| CudaError::new("cuEventSynchronize", e))?;
                self.order(batch - 1 + ahead)?;
            }
        }
        // The consumer waited for every copy.
        Ok(gpu.synchronize()?)
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // After an error the device may still be reading a slot.
        let _ = self.copies.synchronize();
    }
}
