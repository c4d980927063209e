//! Nested sine end to end from pinned memory, in the way that is fastest at its size.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, PinnedHostSlice, sys};

use crate::device::calls::{mapped_address, pinned, pinned_mut};
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::nested_sine::gpu::fused_launch;
use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::nested_sine::verify::POISON;
use crate::workload::prepare::host_memory::{fill, pinned_copy};
use crate::workload::prepare::queue::{On, Queue};
use crate::workload::prepare::trial;
use crate::workload::routine::{Made, Routine, RoutineError, Ways};

/// Pieces start at multiples of this many values, so that vector loads stay aligned.
const ALIGNMENT: usize = 1 << 10;
/// Up to this many values launches and copies of one piece take a large share of the time.
const SMALL: usize = 1 << 20;
/// From this many values on pieces may hide more time than they cost.
const CUT_FROM: usize = 1 << 16;
/// Up to this many values queueing the pieces may take longer than the time that it hides, so they
/// are a graph.
const GRAPHS_TO: usize = 1 << 22;

/// From pinned memory to pinned memory by the fused kernel, in the way that is fastest in a trial:
/// a copy, the kernel and a copy; the kernel on the host's memory in place; or pieces whose copies
/// both ways overlap with each other and with kernels. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer_pinned(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    Ok(Box::new(FromPinned::fastest(gpu, problem)?))
}

/// A routine for every way that [`transfer_pinned`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_pinned`].
pub fn transfer_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Ways {
    let each = |way: Way| -> Result<(String, Box<dyn Routine>), RoutineError> {
        let mut routine = FromPinned::new(gpu, problem)?;
        routine.queue = Some(routine.queue(way)?);
        Ok((way.to_string(), Box::new(routine)))
    };
    ways(problem.len()).into_iter().map(each).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Upload, kernel and download.
    Copies { graph: bool },
    /// The kernel reads and writes the host's memory, mapped into the device's address space.
    Mapped,
    /// At most this many pieces, each stage on a stream of its own.
    Pieces { pieces: u8, graph: bool },
}

impl Way {
    fn is_graph(self) -> bool {
        match self {
            Way::Copies { graph } | Way::Pieces { graph, .. } => graph,
            Way::Mapped => false,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Copies { .. } => f.write_str("in sequence")?,
            Way::Mapped => f.write_str("the kernel on mapped memory")?,
            Way::Pieces { pieces, .. } => write!(f, "{pieces} overlapping pieces")?,
        }
        f.write_str(if self.is_graph() { ", as a graph" } else { "" })
    }
}

/// The ways to try for `n` values.
fn ways(n: usize) -> Vec<Way> {
    let mut ways = vec![Way::Mapped];
    if n <= SMALL {
        ways.extend([false, true].map(|graph| Way::Copies { graph }));
    }
    let pieces = |of: [u8; 3], graph| of.map(|pieces| Way::Pieces { pieces, graph });
    if (CUT_FROM..=GRAPHS_TO).contains(&n) {
        ways.extend(pieces([2, 4, 8], true));
    }
    if n > SMALL {
        ways.extend(pieces([8, 16, 32], false));
    }
    if n > GRAPHS_TO {
        ways.push(Way::Pieces {
            pieces: 64,
            graph: false,
        });
    }
    ways
}

/// Nested sine from pinned memory and back.
pub(super) struct FromPinned {
    /// Dropped before the memory that it has the addresses of. `None` only until it is chosen.
    queue: Option<Queue>,
    gpu: Rc<Gpu>,
    problem: Rc<NestedSine>,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
    from: PinnedHostSlice<f32>,
    to: PinnedHostSlice<f32>,
    notes: Vec<String>,
}

impl FromPinned {
    /// In the fastest way.
    pub(super) fn fastest(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Self, RoutineError> {
        let mut this = Self::new(gpu, problem)?;
        let choice = format!("nested sine of {} values from pinned memory", problem.len());
        let ways = ways(problem.len());
        // SAFETY: the memory lives in `this`, and nothing else uses it; the context is current on this
        // thread since it was allocated.
        let (chosen, queue) =
            unsafe { trial::fastest_queue(&choice, &ways, |way| this.queue(way)) }?;
        this.notes = vec![chosen];
        this.queue = Some(queue);
        Ok(this)
    }

    fn new(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Self, RoutineError> {
        gpu.bind()?;
        let n = problem.len();
        let mut to = gpu.alloc_pinned(n)?;
        // Nothing may be read before it is written.
        fill(pinned_mut(&mut to)?, POISON);
        Ok(Self {
            queue: None,
            x: gpu.alloc(n)?,
            y: gpu.alloc(n)?,
            from: pinned_copy(gpu, problem.input())?,
            to,
            gpu: Rc::clone(gpu),
            problem: Rc::clone(problem),
            notes: Vec::new(),
        })
    }

    /// The steps of a way, with the addresses of this memory.
    fn queue(&mut self, way: Way) -> Result<Queue, RoutineError> {
        let gpu = &self.gpu;
        let n = self.problem.len();
        let x = self.x.device_ptr(gpu.stream()).0;
        let y = self.y.device_ptr(gpu.stream()).0;
        let from = pinned(&self.from)?;
        let to = pinned_mut(&mut self.to)?;
        let mut queue = match way {
            Way::Mapped => {
                let (from, to) = (mapped_address(from)?, mapped_address(to)?);
                let mut queue = Queue::new(gpu)?;
                queue.kernel(fused_launch(gpu, from, to, n as u64)?);
                queue
            }
            Way::Copies { .. } => {
                let mut queue = Queue::new(gpu)?;
                queue.upload(On::Compute, from, x);
                queue.kernel(fused_launch(gpu, x, y, n as u64)?);
                queue.download(On::Compute, y, to);
                queue
            }
            Way::Pieces { pieces, .. } => {
                let mut queue = Queue::overlapped(gpu)?;
                for (first, len) in cut(n, pieces.into()) {
                    let range = first..first + len;
                    let offset = (first * size_of::<f32>()) as sys::CUdeviceptr;
                    queue.upload(On::Up, &from[range.clone()], x + offset);
                    queue.order(On::Up, On::Compute)?;
                    queue.kernel(fused_launch(gpu, x + offset, y + offset, len as u64)?);
                    queue.order(On::Compute, On::Down)?;
                    queue.download(On::Down, y + offset, &mut to[range]);
                }
                queue.join()?;
                queue
            }
        };
        if way.is_graph() {
            // SAFETY: the memory lives in `self`, which nothing else uses meanwhile.
            unsafe { queue.capture() }?;
        }
        Ok(queue)
    }

    /// The memory that it reads.
    pub(super) fn from(&mut self) -> Result<&mut [f32], CudaError> {
        pinned_mut(&mut self.from)
    }

    /// The memory that it has written.
    pub(super) fn to(&self) -> Result<&[f32], CudaError> {
        pinned(&self.to)
    }
}

/// First value and length of at most `pieces` pieces of `n` values.
pub(crate) fn cut(n: usize, pieces: usize) -> impl Iterator<Item = (usize, usize)> {
    let len = n.div_ceil(pieces).next_multiple_of(ALIGNMENT);
    (0..n)
        .step_by(len)
        .map(move |first| (first, len.min(n - first)))
}

impl Routine for FromPinned {
    fn poison(&mut self) -> Result<(), RoutineError> {
        fill(pinned_mut(&mut self.to)?, POISON);
        // Else an upload that never happens would go unnoticed.
        self.gpu.poison(&mut self.x)?;
        self.gpu.poison(&mut self.y)?;
        Ok(self.gpu.synchronize()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let queue = self.queue.as_ref().ok_or("no way has been chosen")?;
        // SAFETY: the memory lives in `self`, which is borrowed; the context is current since
        // `new` on this thread, which it cannot leave.
        Ok(unsafe { queue.run() }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.problem.check_output(pinned(&self.to)?)
    }

    fn launches(&self) -> u32 {
        self.queue.as_ref().map_or(1, Queue::launches)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once_and_stay_aligned() {
        for n in [1, 1000, 1024, 1 << 20, (1 << 20) + 1] {
            for pieces in [1, 2, 8, 64] {
                let cut: Vec<_> = cut(n, pieces).collect();
                assert!(cut.len() <= pieces);
                assert_eq!(cut.iter().map(|p| p.1).sum::<usize>(), n);
                assert!(cut.windows(2).all(|p| p[0].0 + p[0].1 == p[1].0));
                assert!(cut.iter().all(|p| p.0 % ALIGNMENT == 0 && p.1 > 0));
            }
        }
    }

    #[test]
    fn ways_by_size() {
        let pieces = |n| {
            let of = ways(n).into_iter();
            of.filter(|way| matches!(way, Way::Pieces { .. })).count()
        };
        assert_eq!(
            (pieces(1 << 10), pieces(1 << 18), pieces(1 << 28)),
            (0, 3, 4)
        );
        for e in 0..32 {
            let ways = ways(1 << e);
            let mut names: Vec<String> = ways.iter().map(Way::to_string).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), ways.len(), "2^{e}");
        }
    }
}
