//! An epoch: how the batches reach the device, and their consumer, a kernel that reads every byte.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crossover_results::statistics::median::median;

use crate::device::Gpu;
use crate::device::copies_and_events::{copy_to_device, record, synchronize, wait};
use crate::timing::{Called, CudaError, EventPair, Launch};
use crate::workload::lessons::loader::problem::{
    BATCHES, COSINE, Expected, IMAGE, Images, LOADER, Loader, SINE, STEPS, verify,
};
use crate::workload::prepare::{Buffer, Device, HostMemory, Prepared, Stream};
use crate::workload::routine::{Result, Routine, RoutineError};

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
pub fn epoch(gpu: &Rc<Gpu>, problem: &Rc<Loader>, feed: Feed) -> Result<Box<dyn Routine>> {
    let mut work = Prepared::new(gpu)?;
    let (source, buffers) = match feed {
        Feed::InSequence(memory) => (BatchSource::Buffer(buffer(gpu, problem, memory)?), 1),
        Feed::Threads(threads) => (
            BatchSource::Pipeline(Pipeline::new(gpu, problem, threads)?),
            2,
        ),
    };
    let device = (0..buffers)
        .map(|_| work.unobserved(problem.images.batch_bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let consumer = Consumer::new(&mut work, problem, &device)?;
    // The buffers were allocated in the order of one stream and are used on two.
    gpu.synchronize()?;
    let epoch = RefCell::new(Epoch {
        gpu: gpu.clone(),
        problem: problem.clone(),
        source,
        device: device.iter().map(|buffer| buffer.address).collect(),
        consumer: consumer.clone(),
    });
    let run = move |_: &_| epoch.borrow_mut().run();
    work.steps.call_on(Stream::Compute, BATCHES as u32, run);
    work.waits = true;
    work.measure = Some(Box::new(move |steps| {
        consumer.timed.set(true);
        let share = |_| {
            let start = Instant::now();
            steps.run()?;
            let wall = start.elapsed().as_nanos() as f64;
            Ok(consumer.kernels_ns()? / wall)
        };
        let shares: Result<Vec<f64>, CudaError> = (0..TIMED_EPOCHS).map(share).collect();
        consumer.timed.set(false);
        let running = median(shares?).map(|share| ("kernel_running_share".to_owned(), share));
        let samples = [("sample_bytes".to_owned(), IMAGE as f64)];
        Ok(samples.into_iter().chain(running).collect())
    }));
    Ok(Box::new(work))
}

enum BatchSource {
    Buffer(Buffer<u8>),
    Pipeline(Pipeline),
}

/// Host memory for one batch.
fn buffer(gpu: &Gpu, problem: &Loader, memory: HostMemory) -> Result<Buffer<u8>, CudaError> {
    Buffer::filled(gpu, memory, 1, problem.images.batch_bytes)
}

/// All batches of an epoch, fed to the device one way.
struct Epoch {
    gpu: Rc<Gpu>,
    problem: Rc<Loader>,
    source: BatchSource,
    device: Vec<CUdeviceptr>,
    consumer: Rc<Consumer>,
}

impl Epoch {
    /// Enqueues the epoch. Nothing but the last kernels may be under way when this returns.
    fn run(&mut self) -> Result<(), CudaError> {
        let (gpu, images, consumer) = (&self.gpu, &self.problem.images, &self.consumer);
        match &mut self.source {
            BatchSource::Buffer(host) => {
                let (host, stream) = (host.values_mut(), gpu.stream());
                for batch in 0..BATCHES {
                    if batch > 0 {
                        // This batch is gathered into the buffer of the one before.
                        gpu.synchronize()?;
                    }
                    images.gather(batch, host);
                    copy(host, self.device[0], stream)?;
                    consumer.enqueue(batch, stream)?;
                }
                Ok(())
            }
            BatchSource::Pipeline(pipeline) => pipeline.run(gpu, images, &self.device, consumer),
        }
    }
}

impl Drop for Epoch {
    fn drop(&mut self) {
        // After an error the device may still be reading a buffer that is about to go.
        let _ = self.gpu.synchronize();
    }
}

/// Enqueues a copy to the device. The caller keeps `host` as it is until it has waited for the
/// copy.
fn copy(host: &[u8], to: CUdeviceptr, stream: &CudaStream) -> Result<(), CudaError> {
    // SAFETY: both sides hold a batch. The callers are in this file: one synchronises before
    // it writes the buffer again, the other waits for the event behind the copy.
    unsafe { copy_to_device(host, to, stream) }
}

/// Threads that gather batches ahead into pinned buffers, one buffer more than threads, a stream for
/// the copies, and two buffers on the device.
struct Pipeline {
    threads: ThreadPool,
    copies: Arc<CudaStream>,
    slots: Vec<Buffer<u8>>,
    /// One per slot: the copy out of it has arrived.
    copied: Vec<CudaEvent>,
    /// One per buffer on the device: its batch has been consumed.
    consumed: [CudaEvent; 2],
}

impl Pipeline {
    fn new(gpu: &Rc<Gpu>, problem: &Loader, threads: usize) -> Result<Self> {
        assert!(threads > 0, "batches are gathered by one thread at least");
        let slots = || 0..=threads;
        Ok(Self {
            threads: ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|at| format!("loader-{at}"))
                .build()?,
            copies: gpu.other_streams()[0].clone(),
            slots: (slots().map(|_| buffer(gpu, problem, HostMemory::Pinned)))
                .collect::<Result<_, _>>()?,
            copied: (slots().map(|_| gpu.new_event())).collect::<Result<_, _>>()?,
            consumed: [gpu.new_event()?, gpu.new_event()?],
        })
    }

    fn run(
        &mut self,
        gpu: &Gpu,
        images: &Images,
        device: &[CUdeviceptr],
        consumer: &Consumer,
    ) -> Result<(), CudaError> {
        let (copies, copied, consumed) = (&self.copies, &self.copied, &self.consumed);
        let slots = (self.slots.iter_mut())
            .map(|slot| Mutex::new(slot.values_mut()))
            .collect::<Vec<_>>();
        let (slots, ahead) = (&slots, slots.len());
        self.threads.in_place_scope_fifo(|scope| {
            // Orders a batch to be gathered into its slot, which must be free.
            let order = |batch: usize| {
                let (say, gathered) = sync_channel(1);
                scope.spawn_fifo(move |_| {
                    images.gather(batch, &mut held(&slots[batch % ahead]));
                    // After an error nobody receives this.
                    let _ = say.send(());
                });
                gathered
            };
            let mut ordered: VecDeque<Receiver<()>> = (0..ahead).map(order).collect();
            for batch in 0..BATCHES {
                if ordered
                    .pop_front()
                    .is_some_and(|gathered| gathered.recv().is_err())
                {
                    // A thread panicked, and the scope panics once this has returned.
                    return Err(CudaError::with_message("loader", "a thread panicked"));
                }
                let (slot, buffer) = (batch % ahead, batch % device.len());
                if batch >= device.len() {
                    wait(copies, &consumed[buffer])?;
                }
                copy(&held(&slots[slot]), device[buffer], copies)?;
                record(&copied[slot], copies)?;
                wait(gpu.stream(), &copied[slot])?;
                consumer.enqueue(batch, gpu.stream())?;
                record(&consumed[buffer], gpu.stream())?;
                // The slot of the batch before is free once its copy has arrived; that of this
                // batch is copied meanwhile.
                if batch >= 1 && batch - 1 + ahead < BATCHES {
                    copied[(batch - 1) % ahead]
                        .synchronize()
                        .called("cuEventSynchronize")?;
                    ordered.push_back(order(batch - 1 + ahead));
                }
            }
            // The consumer waits for every copy, and the routine for the consumer.
            Ok(())
        })
    }
}

/// The memory of a slot. A panic of the thread that wrote it has ended the epoch.
fn held<'a, 'b>(slot: &'a Mutex<&'b mut [u8]>) -> MutexGuard<'a, &'b mut [u8]> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        // After an error the device may still be reading a slot.
        let _ = synchronize(&self.copies);
    }
}

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
        let gpu = work.memory.gpu.clone();
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
                .arg(problem.images.batch_bytes as u64)
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
            let pixels = problem.images.batch_bytes as f64;
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
