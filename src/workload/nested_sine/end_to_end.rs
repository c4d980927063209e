//! Nested sine from and to host memory, and how it is cut.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::workload::nested_sine::gpu::fused_launch;
use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::nested_sine::verify::POISON;
use crate::workload::prepare::{
    Block, Downloads, EndToEnd, HostMemory, Places, Stage, Steps, end_to_end,
};
use crate::workload::routine::{Made, RoutineError, Ways};

/// Pieces start at multiples of this many values, so that vector loads stay aligned.
const ALIGNMENT: usize = 1 << 10;
/// Up to this many values launches and copies of one piece take a large share of the time.
const SMALL: usize = 1 << 20;
/// From this many values on pieces may hide more time than they cost.
const CUT_FROM: usize = 1 << 16;
/// Up to this many values queueing the pieces may take longer than the time that it hides, so they
/// are a graph.
const GRAPHS_TO: usize = 1 << 22;

/// Upload, the fused kernel and download, one after the other, from and to host memory of one
/// kind. It synchronises: time it on the wall clock.
pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>, memory: HostMemory) -> Made {
    end_to_end::transfer(gpu, problem, memory, |steps, device| {
        fused(gpu, steps, device, problem.len())
    })
}

/// From pinned memory to pinned memory by the fused kernel, in the way that is fastest in a trial:
/// a copy, the kernel and a copy; the kernel on the host's memory in place; or pieces whose copies
/// both ways overlap with each other and with kernels. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer_pinned(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    end_to_end::pinned(gpu, problem)
}

/// A routine for every way that [`transfer_pinned`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_pinned`].
pub fn transfer_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Ways {
    end_to_end::pinned_ways(gpu, problem)
}

/// From ordinary memory to ordinary memory by the fused kernel: through a copy in pinned memory, or
/// in pieces by several threads through pinned buffers. A trial chooses between these and the
/// number of threads. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer_staged(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    end_to_end::staged(gpu, problem)
}

/// A routine for every way that [`transfer_staged`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_staged`].
pub fn transfer_staged_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Ways {
    end_to_end::staged_ways(gpu, problem)
}

/// A way from pinned memory and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Upload, kernel and download.
    Copies { graph: bool },
    /// The kernel reads and writes the host's memory, mapped into the device's address space.
    Mapped,
    /// At most this many pieces, each stage on a stream of its own.
    Pieces { pieces: usize, graph: bool },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Copies { .. } => f.write_str("in sequence")?,
            Way::Mapped => f.write_str("the kernel on mapped memory")?,
            Way::Pieces { pieces, .. } => write!(f, "{pieces} overlapping pieces")?,
        }
        let graph = matches!(
            self,
            Way::Copies { graph: true } | Way::Pieces { graph: true, .. }
        );
        f.write_str(if graph { ", as a graph" } else { "" })
    }
}

/// The ways to try for `n` values.
fn ways(n: usize) -> Vec<Way> {
    let mut ways = vec![Way::Mapped];
    if n <= SMALL {
        ways.extend([false, true].map(|graph| Way::Copies { graph }));
    }
    let pieces = |of: [usize; 3], graph| of.map(|pieces| Way::Pieces { pieces, graph });
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

impl EndToEnd for NestedSine {
    type Way = Way;

    const POISON: f32 = POISON;

    fn words(&self) -> String {
        format!("nested sine of {} values", self.len())
    }

    fn operands(&self) -> Vec<&[f32]> {
        vec![self.input()]
    }

    fn result(&self) -> usize {
        self.len()
    }

    fn check(&self, result: &[f32]) -> Result<Verified, RoutineError> {
        self.check_output(result)
    }

    fn ways(&self) -> Vec<Way> {
        ways(self.len())
    }

    fn steps(&self, gpu: &Rc<Gpu>, way: Way, places: &Places) -> Result<Steps, RoutineError> {
        let n = self.len();
        let (mut steps, graph) = match way {
            Way::Mapped => {
                let mut steps = Steps::new(gpu)?;
                fused(gpu, &mut steps, &places.mapped()?, n)?;
                (steps, false)
            }
            Way::Copies { graph } => {
                let compute =
                    |steps: &mut Steps, device: &[CUdeviceptr]| fused(gpu, steps, device, n);
                (places.copied(gpu, compute)?, graph)
            }
            Way::Pieces { pieces, graph } => {
                let stages = stages(gpu, n, pieces, places)?;
                // SAFETY: the pieces lie within the places, which live in the routine.
                (unsafe { Steps::of_stages(gpu, stages) }?, graph)
            }
        };
        if graph {
            steps.run()?;
            steps.replay()?;
        }
        Ok(steps)
    }

    fn stages(
        &self,
        gpu: &Rc<Gpu>,
        places: &Places,
        block: usize,
        threads: usize,
    ) -> Result<(Vec<Stage>, Downloads), RoutineError> {
        // A block per thread and piece.
        let pieces = size_of_val(self.input()).div_ceil(block * threads).max(1);
        Ok((stages(gpu, self.len(), pieces, places)?, Downloads::Between))
    }
}

fn fused(
    gpu: &Gpu,
    steps: &mut Steps,
    addresses: &[CUdeviceptr],
    n: usize,
) -> Result<(), RoutineError> {
    let kernel = fused_launch(gpu, addresses[0], addresses[1], n as u64)?;
    // SAFETY: input and output have as many values, and live in the routine.
    unsafe { steps.kernel(kernel) };
    Ok(())
}

fn stages(
    gpu: &Rc<Gpu>,
    n: usize,
    pieces: usize,
    places: &Places,
) -> Result<Vec<Stage>, RoutineError> {
    let stage = |(first, len): (usize, usize)| -> Result<Stage, RoutineError> {
        let block = |at: usize| {
            let host = places.host[at].values.cast::<f32>().wrapping_add(first);
            let offset = (first * size_of::<f32>()) as CUdeviceptr;
            let host = std::ptr::slice_from_raw_parts_mut(host, len);
            Block::whole(host, places.device[at] + offset)
        };
        let (from, to) = (block(0), block(1));
        let kernel = fused_launch(gpu, from.device, to.device, len as u64)?;
        Ok(Stage {
            uploads: vec![from],
            // SAFETY: the piece lies within both, which whoever runs the stages vouches for.
            compute: Some(Box::new(move |stream| unsafe { kernel.launch(stream) })),
            downloads: vec![to],
        })
    };
    cut(n, pieces).map(stage).collect()
}

/// First value and length of at most `pieces` pieces of `n` values.
pub(crate) fn cut(n: usize, pieces: usize) -> impl Iterator<Item = (usize, usize)> {
    let len = n.div_ceil(pieces).next_multiple_of(ALIGNMENT);
    (0..n)
        .step_by(len)
        .map(move |first| (first, len.min(n - first)))
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
