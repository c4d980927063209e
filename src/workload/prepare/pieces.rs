//! The ways from host memory to host memory of an operation on one array that can be cut anywhere:
//! whole, on the host's memory in place, or in pieces whose copies overlap.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::workload::prepare::block::Block;
use crate::workload::prepare::end_to_end::{EndToEnd, Places};
use crate::workload::prepare::prepared::Value;
use crate::workload::prepare::staging::Downloads;
use crate::workload::prepare::steps::{Stage, Steps};
use crate::workload::routine::{Done, RoutineError};

/// Pieces start at multiples of this many values, so that vector loads stay aligned.
const ALIGNMENT: usize = 1 << 10;
/// Up to this many values launches and copies of one piece take a large share of the time.
const SMALL: usize = 1 << 20;
/// From this many values on pieces may hide more time than they cost.
const CUT_FROM: usize = 1 << 16;
/// Up to this many values queueing the pieces may take longer than the time that it hides, so they
/// are a graph.
const GRAPHS_TO: usize = 1 << 22;

/// What is done with each piece, or why it cannot be.
pub(crate) type Stages = Result<Vec<Stage>, RoutineError>;

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

impl Way {
    /// The steps of the way.
    fn steps<O: InPieces>(
        self,
        gpu: &Rc<Gpu>,
        problem: &O,
        places: &Places<O::Value>,
    ) -> Result<Steps, RoutineError> {
        let compute = |steps: &mut Steps, at: &[CUdeviceptr]| problem.compute(gpu, steps, at);
        let (mut steps, graph) = match self {
            Way::Mapped => {
                let mut steps = Steps::new(gpu)?;
                compute(&mut steps, &places.mapped()?)?;
                (steps, false)
            }
            Way::Copies { graph } => (places.copied(gpu, compute)?, graph),
            Way::Pieces { pieces, graph } => {
                let stages = problem.stages(gpu, places, pieces)?;
                // SAFETY: promised by whoever implements it; the places live in the routine.
                (unsafe { Steps::of_stages(gpu, stages) }?, graph)
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

/// An operation on one array that can be cut.
///
/// # Safety
/// The stages must lie within the places.
pub(crate) unsafe trait InPieces: Sized + 'static {
    /// As [`EndToEnd::Value`].
    type Value: Value;

    /// As [`EndToEnd::POISON`].
    const POISON: Self::Value;

    /// As [`EndToEnd::words`].
    fn words(&self) -> String;

    fn operand(&self) -> &[Self::Value];

    /// Values of the result.
    fn result(&self) -> usize;

    /// As [`EndToEnd::scratch`].
    fn scratch(&self, _gpu: &Gpu) -> usize {
        0
    }

    fn check(&self, result: &[Self::Value]) -> Result<Verified, RoutineError>;

    /// Whether kernels may read and write the host's memory in place.
    fn works_in_place(&self) -> bool {
        true
    }

    /// As [`EndToEnd::compute`].
    fn compute(&self, gpu: &Rc<Gpu>, steps: &mut Steps, at: &[CUdeviceptr]) -> Done;

    /// At most so many pieces.
    fn stages(&self, gpu: &Rc<Gpu>, places: &Places<Self::Value>, pieces: usize) -> Stages;
}

impl<O: InPieces> EndToEnd for O {
    type Value = O::Value;
    type Way = Way;

    const POISON: O::Value = O::POISON;

    fn words(&self) -> String {
        InPieces::words(self)
    }

    fn operands(&self) -> Vec<&[O::Value]> {
        vec![self.operand()]
    }

    fn result(&self) -> usize {
        InPieces::result(self)
    }

    fn scratch(&self, gpu: &Gpu) -> usize {
        InPieces::scratch(self, gpu)
    }

    fn check(&self, result: &[O::Value]) -> Result<Verified, RoutineError> {
        InPieces::check(self, result)
    }

    fn compute(&self, gpu: &Rc<Gpu>, steps: &mut Steps, at: &[CUdeviceptr]) -> Done {
        InPieces::compute(self, gpu, steps, at)
    }

    fn ways(&self) -> Vec<Way> {
        let mut ways = ways(self.operand().len());
        ways.retain(|way| *way != Way::Mapped || self.works_in_place());
        ways
    }

    fn steps(
        &self,
        gpu: &Rc<Gpu>,
        way: Way,
        places: &Places<O::Value>,
    ) -> Result<Steps, RoutineError> {
        way.steps(gpu, self, places)
    }

    fn stages(
        &self,
        gpu: &Rc<Gpu>,
        places: &Places<O::Value>,
        block: usize,
        threads: usize,
    ) -> Result<(Vec<Stage>, Downloads), RoutineError> {
        // A block per thread and piece.
        let pieces = size_of_val(self.operand()).div_ceil(block * threads).max(1);
        let stages = InPieces::stages(self, gpu, places, pieces)?;
        Ok((stages, Downloads::Between))
    }
}

/// `len` values of one of the places from the value `first` on.
pub(crate) fn piece<T>(places: &Places<T>, at: usize, first: usize, len: usize) -> Block {
    let host = places.host[at].values.cast::<T>().wrapping_add(first);
    let offset = (first * size_of::<T>()) as CUdeviceptr;
    let host = std::ptr::slice_from_raw_parts_mut(host, len);
    Block::whole(host, places.device[at] + offset)
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
