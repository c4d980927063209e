//! Ordinary host memory to the device and back by several threads, each through pinned buffers of
//! its own. The driver's own copies of such memory go through one buffer on one thread.
//!
//! The work is a list of stages. A stage uploads blocks, computes, and downloads blocks; the next
//! one need not wait for its end. Threads take blocks from one list in order. The calling thread
//! enqueues the computation of a stage as soon as all its uploads are enqueued.
//!
//! The device's copies never touch the caller's memory, only the pinned buffers, which live as long
//! as the work on the streams: after an error or a panic nothing is in flight on memory that may be
//! freed.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, PinnedHostSlice};

use crate::device::{
    Gpu,
    copies_and_events::{pinned_mut, record, synchronize, wait},
};
use crate::timing::{CudaError, bind};
use crate::workload::prepare::block::{Block, Direction};
use crate::workload::prepare::staging::through::SLOTS;
use crate::workload::prepare::steps::{Call, Stage};

mod through;

pub(crate) use through::{Through, block_bytes, threads_to_try};

/// A block that a thread takes.
struct Job {
    block: Block,
    way: Direction,
    stage: usize,
}

/// The buffers of a thread and the stream of its downloads.
struct Lane {
    stream: Arc<CudaStream>,
    slots: [Slot; SLOTS],
}

struct Slot {
    memory: PinnedHostSlice<u8>,
    /// The device has filled or emptied the buffer.
    done: CudaEvent,
    /// A download to be copied from the buffer to its place once it has arrived.
    pending: Option<Block>,
}

/// Prepared work. It holds addresses, not memory: its owner keeps that alive and in place.
pub(crate) struct Staging {
    gpu: Rc<Gpu>,
    begun: CudaEvent,
    /// The stream of all uploads: they share one direction of the link, and keep their order.
    up: Arc<CudaStream>,
    lanes: Vec<Lane>,
    jobs: Vec<Job>,
    computes: Vec<Option<Call>>,
    /// Number of uploads of each stage.
    uploads: Vec<usize>,
    uploaded: Vec<CudaEvent>,
    computed: Vec<CudaEvent>,
}

/// Where the downloads of a stage stand in the list from which threads take blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Downloads {
    /// After the uploads of the next stage: where a stage computes for less time than it takes to
    /// be uploaded.
    Between,
    /// After all uploads: a thread that waits for a long computation uploads nothing.
    Last,
}

impl Staging {
    /// Prepares `stages` for `threads` threads, in blocks of at most `bytes` bytes.
    ///
    /// # Safety
    /// As long as this lives, the blocks must be valid in host and device memory, and used by nothing
    /// else while it runs; those of downloads must be distinct on the host.
    pub(crate) unsafe fn new(
        gpu: &Rc<Gpu>,
        stages: Vec<Stage>,
        downloads: Downloads,
        threads: usize,
        bytes: usize,
    ) -> Result<Self, CudaError> {
        gpu.bind()?;
        let mut uploads = Vec::new();
        let mut computes = Vec::new();
        let mut blocks: Vec<[Vec<Job>; 2]> = Vec::new();
        for (stage, work) in stages.into_iter().enumerate() {
            let jobs = |of: Vec<Block>, way| -> Vec<Job> {
                let pieces = of.into_iter().flat_map(|block| block.cut(bytes));
                pieces.map(|block| Job { block, way, stage }).collect()
            };
            let (up, down) = (
                jobs(work.uploads, Direction::Up),
                jobs(work.downloads, Direction::Down),
            );
            uploads.push(up.len());
            computes.push(work.compute);
            blocks.push([up, down]);
        }
        let jobs = in_order(blocks, downloads);
        let largest = jobs.iter().map(|job| job.block.bytes()).max().unwrap_or(0);
        let lane = |_| -> Result<Lane, CudaError> {
            let slot = || -> Result<Slot, CudaError> {
                let mut memory = gpu.alloc_pinned(largest.max(1))?;
                // Writing it makes the system provide the pages before anything is timed.
                pinned_mut(&mut memory)?.fill(0);
                Ok(Slot {
                    memory,
                    done: gpu.new_event()?,
                    pending: None,
                })
            };
            Ok(Lane {
                stream: gpu.new_stream()?,
                slots: [slot()?, slot()?],
            })
        };
        let events = || -> Result<Vec<CudaEvent>, CudaError> {
            uploads.iter().map(|_| gpu.new_event()).collect()
        };
        Ok(Self {
            begun: gpu.new_event()?,
            up: gpu.new_stream()?,
            lanes: (0..threads.max(1)).map(lane).collect::<Result<_, _>>()?,
            jobs,
            computes,
            uploaded: events()?,
            computed: events()?,
            uploads,
            gpu: Rc::clone(gpu),
        })
    }

    /// Does all the work and waits for its end, also after an error.
    pub(crate) fn run(&mut self) -> Result<(), CudaError> {
        let done = self.work();
        // Without an error the threads have waited for all their downloads. After one, copies to and
        // from the buffers may still be in flight.
        let others = match &done {
            Ok(()) => Ok(()),
            Err(_) => self.wait_for_copies(),
        };
        let waited = self.gpu.synchronize();
        for slot in self.lanes.iter_mut().flat_map(|lane| &mut lane.slots) {
            slot.pending = None;
        }
        done.and(others).and(waited)
    }

    fn work(&mut self) -> Result<(), CudaError> {
        let timed = self.gpu.stream();
        record(&self.begun, timed)?;
        wait(&self.up, &self.begun)?;
        let shared = Shared {
            context: self.gpu.context(),
            up: &self.up,
            jobs: &self.jobs,
            computed: &self.computed,
            next: AtomicUsize::new(0),
            left: (self.uploads.iter().copied().map(AtomicUsize::new)).collect(),
            ready: self
                .uploads
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
            failed: AtomicBool::new(false),
            error: Mutex::new(None),
        };
        let mut stages = Stages {
            timed,
            up: &self.up,
            computes: &self.computes,
            uploaded: &self.uploaded,
            computed: &self.computed,
            next: 0,
        };
        match &mut self.lanes[..] {
            [lane] => {
                let outcome = lane.work(&shared, || stages.go_on(&shared));
                shared.note(outcome.and_then(|()| stages.go_on(&shared)));
            }
            lanes => rayon::in_place_scope(|scope| {
                for lane in lanes {
                    let shared = &shared;
                    scope.spawn(move |_| {
                        let _guard = FailsOnPanic(shared);
                        let outcome = bind(shared.context);
                        shared.note(outcome.and_then(|()| lane.work(shared, || Ok(()))));
                    });
                }
                while !stages.are_done() && !shared.has_failed() {
                    shared.note(stages.go_on(&shared));
                    std::thread::yield_now();
                }
            }),
        }
        match shared.error.into_inner() {
            Ok(None) => Ok(()),
            Ok(Some(error)) => Err(error),
            Err(poisoned) => poisoned.into_inner().map_or(Ok(()), Err),
        }
    }

    fn wait_for_copies(&self) -> Result<(), CudaError> {
        let lanes = self.lanes.iter().map(|lane| &lane.stream);
        let each = [&self.up].into_iter().chain(lanes).map(|s| synchronize(s));
        // All of them, whatever the first says.
        each.fold(Ok(()), Result::and)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // After a panic, copies to or from the buffers may be in flight. Errors are those of earlier
        // calls, which have reported them.
        let _ = self.wait_for_copies();
    }
}

/// The list that threads take blocks from.
fn in_order(stages: Vec<[Vec<Job>; 2]>, downloads: Downloads) -> Vec<Job> {
    let (mut jobs, mut late) = (Vec::new(), Vec::new());
    for [up, down] in stages {
        jobs.extend(up);
        if downloads == Downloads::Between {
            jobs.append(&mut late);
        }
        late.extend(down);
    }
    jobs.append(&mut late);
    jobs
}

/// What the threads share.
struct Shared<'a> {
    context: &'a CudaContext,
    up: &'a CudaStream,
    jobs: &'a [Job],
    computed: &'a [CudaEvent],
    next: AtomicUsize,
    /// Number of uploads of each stage that are not enqueued yet.
    left: Vec<AtomicUsize>,
    /// Whether the event of each stage's end is recorded.
    ready: Vec<AtomicBool>,
    failed: AtomicBool,
    /// The first error.
    error: Mutex<Option<CudaError>>,
}

impl Shared<'_> {
    fn take(&self) -> Option<&Job> {
        self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    fn note(&self, outcome: Result<(), CudaError>) {
        if let Err(error) = outcome {
            let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
            self.failed.store(true, Ordering::Release);
        }
    }
}

/// Notes a failure when its thread panics, so that no other thread waits for that one.
struct FailsOnPanic<'a>(&'a Shared<'a>);

impl Drop for FailsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Release);
        }
    }
}

/// The stages that the calling thread enqueues, in order.
struct Stages<'a> {
    timed: &'a CudaStream,
    up: &'a CudaStream,
    computes: &'a [Option<Call>],
    uploaded: &'a [CudaEvent],
    computed: &'a [CudaEvent],
    next: usize,
}

impl Stages<'_> {
    fn are_done(&self) -> bool {
        self.next == self.computes.len()
    }

    /// Enqueues the computation of every stage whose uploads are all enqueued.
    fn go_on(&mut self, shared: &Shared<'_>) -> Result<(), CudaError> {
        while let Some(compute) = self.computes.get(self.next)
            && shared.left[self.next].load(Ordering::Acquire) == 0
        {
            record(&self.uploaded[self.next], self.up)?;
            wait(self.timed, &self.uploaded[self.next])?;
            compute
                .as_ref()
                .map_or(Ok(()), |compute| compute(self.timed))?;
            record(&self.computed[self.next], self.timed)?;
            shared.ready[self.next].store(true, Ordering::Release);
            self.next += 1;
        }
        Ok(())
    }
}

impl Lane {
    /// Takes blocks until none is left. `between` is called before each and after the last.
    fn work(
        &mut self,
        shared: &Shared<'_>,
        mut between: impl FnMut() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let mut at = 0;
        while let Some(job) = shared.take() {
            between()?;
            let slot = &mut self.slots[at];
            at = (at + 1) % SLOTS;
            slot.settle()?;
            match job.way {
                Direction::Up => {
                    let buffer = pinned_mut(&mut slot.memory)?;
                    // SAFETY: promised to `Staging::new`; the buffer is this thread's, and idle. It
                    // stays as it is until `done`, which the next `settle` waits for.
                    unsafe {
                        job.block.pack(buffer);
                        let packed = job.block.packed(buffer.as_mut_ptr());
                        packed.enqueue(job.way, shared.up.cu_stream())?;
                    }
                    record(&slot.done, shared.up)?;
                    shared.left[job.stage].fetch_sub(1, Ordering::Release);
                }
                Direction::Down => {
                    while !shared.ready[job.stage].load(Ordering::Acquire) {
                        if shared.has_failed() {
                            return Ok(());
                        }
                        std::thread::yield_now();
                    }
                    wait(&self.stream, &shared.computed[job.stage])?;
                    let packed = (job.block).packed(pinned_mut(&mut slot.memory)?.as_mut_ptr());
                    // SAFETY: as for an upload.
                    unsafe { packed.enqueue(job.way, self.stream.cu_stream()) }?;
                    record(&slot.done, &self.stream)?;
                    slot.pending = Some(job.block);
                }
            }
            if shared.has_failed() {
                return Ok(());
            }
        }
        between()?;
        for _ in 0..SLOTS {
            self.slots[at].settle()?;
            at = (at + 1) % SLOTS;
        }
        Ok(())
    }
}

impl Slot {
    /// Waits until the device is done with the buffer, and copies a download to its place.
    fn settle(&mut self) -> Result<(), CudaError> {
        self.done
            .synchronize()
            .map_err(|e| CudaError::new("cuEventSynchronize", e))?;
        if let Some(block) = self.pending.take() {
            // SAFETY: promised to `Staging::new`; the device is done with the buffer.
            unsafe { block.unpack(pinned_mut(&mut self.memory)?) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_comes_after_the_uploads_of_its_stage() {
        let of = |stage| {
            let mut byte = [0u8];
            let block = Block::whole(&raw mut byte[..], 0);
            [Direction::Up, Direction::Down].map(|way| vec![Job { block, way, stage }])
        };
        let order = |downloads| -> Vec<(Direction, usize)> {
            let jobs = in_order((0..3).map(of).collect(), downloads);
            jobs.iter().map(|job| (job.way, job.stage)).collect()
        };
        use Direction::{Down, Up};
        let between = [(Up, 0), (Up, 1), (Down, 0), (Up, 2), (Down, 1), (Down, 2)];
        assert_eq!(order(Downloads::Between), between);
        let last = [(Up, 0), (Up, 1), (Up, 2), (Down, 0), (Down, 1), (Down, 2)];
        assert_eq!(order(Downloads::Last), last);
    }
}
