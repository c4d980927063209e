//! The ways from host memory to host memory of an operation on one array that can be cut anywhere:
//! whole, on the host's memory in place, or in pieces whose copies overlap.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::workload::prepare::end_to_end::Places;
use crate::workload::prepare::steps::{Stage, Steps};
use crate::workload::routine::RoutineError;

/// Pieces start at multiples of this many values, so that vector loads stay aligned.
const ALIGNMENT: usize = 1 << 10;
/// Up to this many values launches and copies of one piece take a large share of the time.
const SMALL: usize = 1 << 20;
/// From this many values on pieces may hide more time than they cost.
const CUT_FROM: usize = 1 << 16;
/// Up to this many values queueing the pieces may take longer than the time that it hides, so they
/// are a graph.
const GRAPHS_TO: usize = 1 << 22;

/// A way from pinned memory and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Upload, kernels and download.
    Copies { graph: bool },
    /// The kernels read and write the host's memory, mapped into the device's address space.
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
pub(crate) fn ways(n: usize) -> Vec<Way> {
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

impl Way {
    /// The steps of the way. `compute` adds what computes on the addresses that it is given: those of
    /// the operands, the result and the scratch memory. `stages` cuts the work into pieces.
    ///
    /// # Safety
    /// The stages must lie within the places, which must live as long as the steps.
    pub(crate) unsafe fn steps(
        self,
        gpu: &Rc<Gpu>,
        places: &Places,
        compute: impl FnOnce(&mut Steps, &[CUdeviceptr]) -> Result<(), RoutineError>,
        stages: impl FnOnce(usize) -> Result<Vec<Stage>, RoutineError>,
    ) -> Result<Steps, RoutineError> {
        let (mut steps, graph) = match self {
            Way::Mapped => {
                let mut steps = Steps::new(gpu)?;
                compute(&mut steps, &places.mapped()?)?;
                (steps, false)
            }
            Way::Copies { graph } => (places.copied(gpu, compute)?, graph),
            Way::Pieces { pieces, graph } => {
                // SAFETY: the caller's promise.
                (unsafe { Steps::of_stages(gpu, stages(pieces)?) }?, graph)
            }
        };
        if graph {
            // Once outside of a capture, in which a library may load nothing.
            steps.run()?;
            steps.replay()?;
        }
        Ok(steps)
    }
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
