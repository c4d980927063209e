//! Ordinary host memory to the device and back by several threads, each through pinned buffers of
//! its own. The driver's own copies of such memory go through one buffer on one thread.
//!
//! The work is a list of stages. A stage uploads blocks, computes, and downloads blocks; the next
//! one need not wait for its end. Threads take blocks from one list in order. The thread that
//! calls gives the device its work as soon as the blocks of a stage are on their way.
//!
//! No copy of the device touches the caller's memory, only the pinned buffers, which live as long
//! as the streams' work: an error or a panic on the way leaves nothing in flight on memory that
//! may go.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, PinnedHostSlice, sys};

use crate::device::calls::{pinned_mut, record, synchronize, wait};
use crate::device::gpu::Gpu;
use crate::timing::{CudaError, bind};

/// Pinned buffers of a thread: while one is copied by the device, the other is filled or emptied.
const SLOTS: usize = 2;
/// Bytes of a buffer, and of a block at most. All buffers together should stay in the CPU's last
/// cache, from which and to which the device then copies.
const LARGEST: usize = 1 << 20;
/// Below this a block takes longer to be enqueued than to be copied.
const SMALLEST: usize = 1 << 16;

/// Bytes of a block where `bytes` are shared out among so many threads.
pub(super) fn block_bytes(bytes: usize, threads: usize) -> usize {
    (bytes / (SLOTS * threads).max(1)).clamp(SMALLEST, LARGEST)
}

/// From here on the number of threads is not tried: each way would have memory of its own.
const MANY_FROM: usize = 64 << 20;
/// More threads than this leave the link nothing to wait for.
const MOST_THREADS: usize = 16;

/// Numbers of threads that are worth a trial for so many bytes on this machine. One core is left
/// to the thread that gives the device its work.
pub(super) fn threads_to_try(bytes: usize) -> Vec<usize> {
    tried(bytes, rayon::current_num_threads())
}

fn tried(bytes: usize, cores: usize) -> Vec<usize> {
    let most = cores.saturating_sub(1).clamp(1, MOST_THREADS);
    if bytes >= MANY_FROM {
        return vec![most];
    }
    let mut tried: Vec<usize> = [1, 4, 8, MOST_THREADS]
        .into_iter()
        .map(|threads| threads.min(most))
        .filter(|threads| *threads == 1 || bytes >= threads * SMALLEST)
        .collect();
    tried.dedup();
    tried
}

/// How an operation gets at ordinary memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Through {
    /// The calling thread copies everything to pinned memory, and the result from it.
    Copied,
    /// So many threads, each through its buffers.
    Threads(usize),
}

impl Through {
    /// What is worth a trial for so many bytes.
    pub(super) fn ways(bytes: usize) -> Vec<Self> {
        /// Above this many bytes one thread is too slow to be tried.
        const COPIED_TO: usize = 16 << 20;
        /// Below this many bytes waking threads takes longer than copying.
        const THREADS_FROM: usize = 1 << 18;
        let mut ways = Vec::new();
        if bytes <= COPIED_TO {
            ways.push(Through::Copied);
        }
        if bytes >= THREADS_FROM {
            ways.extend(threads_to_try(bytes).into_iter().map(Through::Threads));
        }
        ways
    }

    pub(super) fn name(self) -> String {
        match self {
            Through::Copied => "copied to pinned memory and from it".to_owned(),
            Through::Threads(1) => "one thread through pinned buffers".to_owned(),
            Through::Threads(threads) => format!("{threads} threads through pinned buffers"),
        }
    }
}

/// Rows of bytes in ordinary host memory and on the device. What has no gaps is one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) host: *mut u8,
    /// Bytes from one row to the next.
    pub(super) host_pitch: usize,
    pub(super) device: sys::CUdeviceptr,
    pub(super) device_pitch: usize,
    /// Bytes of a row.
    pub(super) width: usize,
    pub(super) rows: usize,
}

// SAFETY: a block is an address and lengths; whoever runs the work vouches for what lies there,
// and no two threads take the same block.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Memory without gaps.
    pub(super) fn whole(host: *mut u8, device: sys::CUdeviceptr, bytes: usize) -> Self {
        Self {
            host,
            host_pitch: bytes,
            device,
            device_pitch: bytes,
            width: bytes,
            rows: 1,
        }
    }

    /// The same in pieces of at most so many bytes, or of one row where that is more.
    fn cut(self, bytes: usize) -> Vec<Self> {
        if self.width == 0 || self.rows == 0 {
            return Vec::new();
        }
        if self.rows == 1 {
            let starts = (0..self.width).step_by(bytes);
            return starts
                .map(|start| Self {
                    host: self.host.wrapping_add(start),
                    device: self.device + start as sys::CUdeviceptr,
                    width: bytes.min(self.width - start),
                    ..self
                })
                .collect();
        }
        let rows = (bytes / self.width).max(1);
        let starts = (0..self.rows).step_by(rows);
        starts
            .map(|row| Self {
                host: self.host.wrapping_add(row * self.host_pitch),
                device: self.device + (row * self.device_pitch) as sys::CUdeviceptr,
                rows: rows.min(self.rows - row),
                ..self
            })
            .collect()
    }

    fn bytes(&self) -> usize {
        self.width * self.rows
    }

    /// # Safety
    /// The rows must be readable on the host, and nobody may write them meanwhile.
    unsafe fn pack(&self, to: &mut [u8]) {
        for (row, to) in to[..self.bytes()].chunks_exact_mut(self.width).enumerate() {
            let from = self.host.wrapping_add(row * self.host_pitch);
            // SAFETY: the caller's promise; a buffer of the driver overlaps with nothing.
            unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        }
    }

    /// # Safety
    /// The rows must be writable on the host, and nobody may use them meanwhile.
    unsafe fn unpack(&self, from: &[u8]) {
        for (row, from) in from[..self.bytes()].chunks_exact(self.width).enumerate() {
            let to = self.host.wrapping_add(row * self.host_pitch);
            // SAFETY: as in `pack`.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        }
    }

    /// The copy between a buffer and the device, in either direction.
    fn copy(&self, buffer: *mut u8, way: Direction) -> sys::CUDA_MEMCPY2D {
        use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST};
        let up = way == Direction::Up;
        let (from, to) = if up { (HOST, DEVICE) } else { (DEVICE, HOST) };
        let (from_pitch, to_pitch) = match up {
            true => (self.width, self.device_pitch),
            false => (self.device_pitch, self.width),
        };
        sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: from,
            srcHost: if up { buffer.cast() } else { std::ptr::null() },
            srcDevice: if up { 0 } else { self.device },
            srcArray: std::ptr::null_mut(),
            srcPitch: from_pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: to,
            dstHost: if up {
                std::ptr::null_mut()
            } else {
                buffer.cast()
            },
            dstDevice: if up { self.device } else { 0 },
            dstArray: std::ptr::null_mut(),
            dstPitch: to_pitch,
            WidthInBytes: self.width,
            Height: self.rows,
        }
    }

    /// Enqueues the copy between the device and a buffer.
    ///
    /// # Safety
    /// The block must lie in device memory, the buffer must hold as many bytes, and neither may be
    /// used until the copy is done.
    unsafe fn enqueue(
        &self,
        buffer: *mut u8,
        way: Direction,
        stream: &CudaStream,
    ) -> Result<(), CudaError> {
        let stream = stream.cu_stream();
        // SAFETY: the caller's promise.
        unsafe {
            match (self.rows, way) {
                (1, Direction::Up) => CudaError::check(
                    "cuMemcpyHtoDAsync",
                    sys::cuMemcpyHtoDAsync_v2(self.device, buffer.cast(), self.width, stream),
                ),
                (1, Direction::Down) => CudaError::check(
                    "cuMemcpyDtoHAsync",
                    sys::cuMemcpyDtoHAsync_v2(buffer.cast(), self.device, self.width, stream),
                ),
                _ => CudaError::check(
                    "cuMemcpy2DAsync",
                    sys::cuMemcpy2DAsync_v2(&self.copy(buffer, way), stream),
                ),
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// A block that a thread takes.
struct Job {
    block: Block,
    way: Direction,
    stage: usize,
}

/// Enqueues what a stage computes, on the GPU's stream.
type Compute = Box<dyn Fn() -> Result<(), CudaError>>;

/// Uploads, what is computed once they are there, and downloads of its result.
pub(super) struct Stage {
    pub(super) uploads: Vec<Block>,
    pub(super) compute: Option<Compute>,
    pub(super) downloads: Vec<Block>,
}

/// A thread's buffers and the stream of its downloads.
struct Lane {
    stream: Arc<CudaStream>,
    slots: [Slot; SLOTS],
}

struct Slot {
    memory: PinnedHostSlice<u8>,
    /// The device has filled or emptied it.
    done: CudaEvent,
    /// To be copied to the host's memory once it is done.
    pending: Option<Block>,
}

/// Prepared work. It holds addresses, not memory: whoever owns it keeps that alive and in place.
pub(super) struct Staging {
    gpu: Rc<Gpu>,
    begun: CudaEvent,
    /// Of all uploads: the link has one direction to the device, and one order.
    up: Arc<CudaStream>,
    lanes: Vec<Lane>,
    jobs: Vec<Job>,
    computes: Vec<Option<Compute>>,
    /// Uploads of each stage.
    uploads: Vec<usize>,
    uploaded: Vec<CudaEvent>,
    computed: Vec<CudaEvent>,
}

/// When a stage's downloads come up in the list that threads take blocks from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Downloads {
    /// After the uploads of the next stage: where a stage computes for less time than it takes to
    /// be uploaded.
    Between,
    /// After all uploads: a thread that waits for a long computation uploads nothing.
    Last,
}

impl Staging {
    /// `stages` by so many threads, in blocks of so many bytes at most.
    pub(super) fn new(
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
                // Written, so that the pages are there before anything is timed.
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

    /// Does all of it and waits for its end, also after an error.
    ///
    /// # Safety
    /// The blocks must be valid in host and device memory and used by nothing else until this
    /// returns, those of downloads be distinct on the host, and the context be current.
    pub(super) unsafe fn run(&mut self) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        let done = unsafe { self.work() };
        // The blocks that threads have fetched are there. After an error copies may still be on
        // their way, to and from the buffers.
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

    /// # Safety
    /// As [`run`](Self::run).
    unsafe fn work(&mut self) -> Result<(), CudaError> {
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
                // SAFETY: the caller's promise.
                let outcome = unsafe { lane.work(&shared, || stages.go_on(&shared)) };
                shared.note(outcome.and_then(|()| stages.go_on(&shared)));
            }
            lanes => rayon::in_place_scope(|scope| {
                for lane in lanes {
                    let shared = &shared;
                    scope.spawn(move |_| {
                        let _guard = FailsOnPanic(shared);
                        let outcome = bind(shared.context).and_then(|()| {
                            // SAFETY: the caller's promise.
                            unsafe { lane.work(shared, || Ok(())) }
                        });
                        shared.note(outcome);
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
        // A panic may have left copies to or from the buffers behind. Errors belong to earlier
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
    /// Uploads of each stage that are not enqueued yet.
    left: Vec<AtomicUsize>,
    /// Whether the event of each stage's end is recorded.
    ready: Vec<AtomicBool>,
    failed: AtomicBool,
    /// The first.
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

/// A thread that panics lets nobody wait for it.
struct FailsOnPanic<'a>(&'a Shared<'a>);

impl Drop for FailsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Release);
        }
    }
}

/// The stages in order, as the calling thread gives them to the device.
struct Stages<'a> {
    timed: &'a CudaStream,
    up: &'a CudaStream,
    computes: &'a [Option<Compute>],
    uploaded: &'a [CudaEvent],
    computed: &'a [CudaEvent],
    next: usize,
}

impl Stages<'_> {
    fn are_done(&self) -> bool {
        self.next == self.computes.len()
    }

    /// Enqueues what every stage computes whose uploads are on their way.
    fn go_on(&mut self, shared: &Shared<'_>) -> Result<(), CudaError> {
        while let Some(compute) = self.computes.get(self.next)
            && shared.left[self.next].load(Ordering::Acquire) == 0
        {
            record(&self.uploaded[self.next], self.up)?;
            wait(self.timed, &self.uploaded[self.next])?;
            compute.as_ref().map_or(Ok(()), |compute| compute())?;
            record(&self.computed[self.next], self.timed)?;
            shared.ready[self.next].store(true, Ordering::Release);
            self.next += 1;
        }
        Ok(())
    }
}

impl Lane {
    /// Takes blocks until none is left. `between` is called before each and after the last.
    ///
    /// # Safety
    /// As [`Staging::run`].
    unsafe fn work(
        &mut self,
        shared: &Shared<'_>,
        mut between: impl FnMut() -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let mut at = 0;
        while let Some(job) = shared.take() {
            between()?;
            let slot = &mut self.slots[at];
            at = (at + 1) % SLOTS;
            // SAFETY: the caller's promise.
            unsafe { slot.settle() }?;
            match job.way {
                Direction::Up => {
                    let buffer = pinned_mut(&mut slot.memory)?;
                    // SAFETY: the caller's promise; the buffer is this thread's, and idle. It
                    // stays as it is until `done`, which the next `settle` waits for.
                    unsafe {
                        job.block.pack(buffer);
                        job.block
                            .enqueue(buffer.as_mut_ptr(), Direction::Up, shared.up)?;
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
                    let buffer = pinned_mut(&mut slot.memory)?.as_mut_ptr();
                    // SAFETY: as for an upload.
                    unsafe { job.block.enqueue(buffer, Direction::Down, &self.stream) }?;
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
            // SAFETY: the caller's promise.
            unsafe { self.slots[at].settle() }?;
            at = (at + 1) % SLOTS;
        }
        Ok(())
    }
}

impl Slot {
    /// Waits until the device is done with the buffer, and hands over what it has fetched.
    ///
    /// # Safety
    /// As [`Staging::run`].
    unsafe fn settle(&mut self) -> Result<(), CudaError> {
        self.done
            .synchronize()
            .map_err(|e| CudaError::new("cuEventSynchronize", e))?;
        if let Some(block) = self.pending.take() {
            // SAFETY: the caller's promise; the device is done with the buffer.
            unsafe { block.unpack(pinned_mut(&mut self.memory)?) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(host: &mut [u8], pitch: usize, width: usize, rows: usize) -> Block {
        assert!((rows - 1) * pitch + width <= host.len());
        Block {
            host: host.as_mut_ptr(),
            host_pitch: pitch,
            device: 1 << 20,
            device_pitch: 2 * pitch,
            width,
            rows,
        }
    }

    #[test]
    fn pieces_cover_a_block_once() {
        let mut host = vec![0; 1000];
        let whole = Block::whole(host.as_mut_ptr(), 4096, 1000);
        for bytes in [1, 7, 64, 1000, 4000] {
            let pieces = whole.cut(bytes);
            assert_eq!(pieces.iter().map(Block::bytes).sum::<usize>(), 1000);
            assert!(pieces.iter().all(|p| p.bytes() <= bytes && p.rows == 1));
            let next = |p: &Block| p.device + p.width as sys::CUdeviceptr;
            assert!(pieces.windows(2).all(|p| next(&p[0]) == p[1].device));
        }
        let rows = strided(&mut host, 100, 30, 10);
        for bytes in [1, 30, 89, 90, 1000] {
            let pieces = rows.cut(bytes);
            assert_eq!(pieces.iter().map(|p| p.rows).sum::<usize>(), 10);
            assert!(pieces.iter().all(|p| p.bytes() <= bytes.max(30)));
            let last = pieces.last().unwrap();
            let begun = (10 - last.rows) * 200;
            assert_eq!(last.device, (1 << 20) + begun as sys::CUdeviceptr);
        }
        assert!(Block::whole(host.as_mut_ptr(), 0, 0).cut(64).is_empty());
    }

    #[test]
    fn rows_are_packed_and_come_back() {
        let mut host: Vec<u8> = (0..100).collect();
        let block = strided(&mut host, 20, 7, 5);
        let mut buffer = vec![0; 64];
        // SAFETY: the block lies within `host`, which nothing else uses meanwhile.
        unsafe { block.pack(&mut buffer) };
        assert_eq!(buffer[..8], [0, 1, 2, 3, 4, 5, 6, 20]);
        assert_eq!(buffer[34], 86);
        let mut back = vec![255; 100];
        let to = strided(&mut back, 20, 7, 5);
        // SAFETY: as above.
        unsafe { to.unpack(&buffer) };
        assert_eq!(back[20..27], [20, 21, 22, 23, 24, 25, 26]);
        assert_eq!(back.iter().filter(|byte| **byte == 255).count(), 100 - 35);
    }

    #[test]
    fn a_download_comes_after_the_uploads_of_its_stage() {
        let of = |stage| {
            let block = Block::whole(std::ptr::null_mut(), 0, 1);
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

    #[test]
    fn blocks_are_small_enough_for_every_thread_and_large_enough_for_a_copy() {
        assert_eq!(block_bytes(1 << 10, 1), SMALLEST);
        assert_eq!(block_bytes(1 << 30, 16), LARGEST);
        assert_eq!(block_bytes(8 << 20, 16), 1 << 18);
        assert_eq!(tried(1 << 10, 16), [1]);
        assert_eq!(tried(8 << 20, 16), [1, 4, 8, 15]);
        assert_eq!(tried(8 << 20, 2), [1]);
        assert_eq!(tried(1 << 30, 16), [15]);
    }
}
