//! Copies of ordinary memory by several threads, each through pinned buffers of its own. The driver
//! copies such memory through one buffer on one thread.
//!
//! The device's copies touch only the pinned buffers, which live as long as the work on the streams:
//! after an error or a panic nothing is in flight on memory that may be freed.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream, PinnedHostSlice};
use rayon::prelude::*;

use crate::device::Gpu;
use crate::device::copies_and_events::{pinned_places, record, synchronize, wait};
use crate::timing::{Called, CudaError, bind};
use crate::workload::prepare::{Block, Direction};

/// Pinned buffers per thread: while the device copies one, the thread fills or empties the other.
const SLOTS: usize = 2;
/// Bytes of a buffer, and upper bound on those of a block. All buffers together should stay in the
/// CPU's last-level cache, which the device then copies from and to.
const LARGEST: usize = 1 << 20;
/// Below this a block takes longer to be enqueued than to be copied.
const SMALLEST: usize = 1 << 16;
/// From this many bytes on the number of threads is not tried, because each trial needs memory of its
/// own.
const MANY_FROM: usize = 64 << 20;
/// With this many threads the link no longer waits for them.
const MOST_THREADS: usize = 16;

/// Bytes of a block where `threads` threads share out `bytes`.
fn block_bytes(bytes: usize, threads: usize) -> usize {
    (bytes / (SLOTS * threads)).clamp(SMALLEST, LARGEST)
}

/// The numbers of threads to try for `bytes` on this many cores. One core is left to the calling
/// thread.
pub(super) fn threads_to_try(bytes: usize, cores: usize) -> Vec<usize> {
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

/// The buffers of a thread, and the stream that it copies on.
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

/// A prepared copy. It holds addresses, not memory: its owner keeps that alive and in place.
pub(super) struct Staging {
    gpu: Rc<Gpu>,
    direction: Direction,
    begun: CudaEvent,
    lanes: Vec<Lane>,
    blocks: Vec<Block>,
}

impl Staging {
    /// Prepares the copy for `threads` threads.
    ///
    /// # Safety
    /// As long as this lives, as many bytes as `host` has must be valid in host and device memory, and
    /// used by nothing else while it runs.
    pub(super) unsafe fn new(
        gpu: &Rc<Gpu>,
        direction: Direction,
        host: *mut [u8],
        device: CUdeviceptr,
        threads: usize,
    ) -> Result<Self, CudaError> {
        gpu.bind()?;
        let bytes = block_bytes(host.len(), threads);
        let blocks = (0..host.len()).step_by(bytes).map(|start| {
            let from = host.cast::<u8>().wrapping_add(start);
            let block = std::ptr::slice_from_raw_parts_mut(from, bytes.min(host.len() - start));
            Block::whole(block, device + start as CUdeviceptr)
        });
        let slot = || -> Result<Slot, CudaError> {
            Ok(Slot {
                // Writing it makes the system provide the pages before anything is timed.
                memory: gpu.pinned(bytes.min(host.len()), 0)?,
                done: gpu.new_event()?,
                pending: None,
            })
        };
        let lane = |_| -> Result<Lane, CudaError> {
            Ok(Lane {
                stream: match direction {
                    // Uploads share one direction of the link, and keep their order.
                    Direction::Up => gpu.other_streams()[0].clone(),
                    // Streams that only copy do not make launches longer.
                    Direction::Down => gpu.new_stream()?,
                },
                slots: [slot()?, slot()?],
            })
        };
        Ok(Self {
            gpu: Rc::clone(gpu),
            direction,
            begun: gpu.new_event()?,
            lanes: (0..threads).map(lane).collect::<Result<_, _>>()?,
            blocks: blocks.collect(),
        })
    }

    /// Copies everything and waits for its end, also after an error.
    pub(super) fn run(&mut self) -> Result<(), CudaError> {
        let copied = self.copy();
        // Without an error the threads have waited for all their copies. After one, some may still be in
        // flight.
        let waited = match &copied {
            Ok(()) => Ok(()),
            Err(_) => self.wait_for_copies(),
        };
        for slot in self.lanes.iter_mut().flat_map(|lane| &mut lane.slots) {
            slot.pending = None;
        }
        copied.and(waited)
    }

    fn copy(&mut self) -> Result<(), CudaError> {
        record(&self.begun, self.gpu.stream())?;
        let (context, begun, direction) = (self.gpu.context(), &self.begun, self.direction);
        let (blocks, next) = (&self.blocks, AtomicUsize::new(0));
        let take = || blocks.get(next.fetch_add(1, Ordering::Relaxed));
        let on_this_thread = |lane: &mut Lane| {
            bind(context)?;
            wait(&lane.stream, begun)?;
            lane.copy(direction, take)
        };
        match &mut self.lanes[..] {
            [lane] => on_this_thread(lane),
            lanes => (lanes.par_iter_mut().with_max_len(1)).try_for_each(on_this_thread),
        }
    }

    fn wait_for_copies(&self) -> Result<(), CudaError> {
        let each = self.lanes.iter().map(|lane| synchronize(&lane.stream));
        // Waits for all of them, even after an error.
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

impl Lane {
    /// Copies blocks until `take` gives none.
    fn copy<'a>(
        &mut self,
        direction: Direction,
        take: impl Fn() -> Option<&'a Block>,
    ) -> Result<(), CudaError> {
        let mut at = 0;
        while let Some(&block) = take() {
            let slot = &mut self.slots[at];
            at = (at + 1) % SLOTS;
            slot.settle()?;
            let buffer = pinned_places(&mut slot.memory)?.as_mut_ptr().cast::<u8>();
            // SAFETY: the caller of `new` promised the block's memory. The buffer has room for it, `settle`
            // has waited for its last use, and the next `settle` waits for this one.
            unsafe {
                match direction {
                    Direction::Up => block.host.copy_to_nonoverlapping(buffer, block.width),
                    Direction::Down => slot.pending = Some(block),
                }
                let staged = Block {
                    host: buffer,
                    ..block
                };
                staged.enqueue(direction, self.stream.cu_stream())?;
            }
            record(&slot.done, &self.stream)?;
        }
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
        self.done.synchronize().called("cuEventSynchronize")?;
        if let Some(block) = self.pending.take() {
            let buffer = pinned_places(&mut self.memory)?.as_ptr().cast::<u8>();
            // SAFETY: the caller of `new` promised the block's memory, and the device has filled the buffer.
            unsafe { block.host.copy_from_nonoverlapping(buffer, block.width) };
        }
        Ok(())
    }
}
