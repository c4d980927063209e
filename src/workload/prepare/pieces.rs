//! The ways from host memory to host memory of an operation on one array that can be cut anywhere:
//! whole, on the host's memory in place, or in pieces whose copies overlap.

use cudarc::driver::sys::CUdeviceptr;

use crate::workload::prepare::block::Block;
use crate::workload::prepare::end_to_end::{EndToEnd, Places, Way};
use crate::workload::prepare::steps::Steps;

/// Pieces start at multiples of this many values, so that vector loads stay aligned.
const ALIGNMENT: usize = 1 << 10;
/// Up to this many values launches and copies of one piece take a large share of the time.
const SMALL: usize = 1 << 20;
/// From this many values on pieces may hide more time than they cost.
const CUT_FROM: usize = 1 << 16;
/// Up to this many values queueing the pieces may take longer than the time that it hides, so they
/// are a graph.
const GRAPHS_TO: usize = 1 << 22;

/// The ways to try for an operation on one array.
pub(super) fn ways<O: EndToEnd>(problem: &O) -> Vec<Way<'_, O::Value>> {
    let n = problem.operands()[0].len();
    let mut ways = Vec::new();
    if problem.works_in_place() {
        ways.push(Way::new("the kernel on mapped memory", false, |gpu, at| {
            let mut steps = Steps::new(gpu)?;
            problem.compute(gpu, &mut steps, &at.mapped()?)?;
            Ok(steps)
        }));
    }
    if n <= SMALL {
        ways.extend([false, true].map(|graph| {
            Way::new("in sequence", graph, |gpu, places| {
                places.copied(gpu, |steps, at| problem.compute(gpu, steps, at))
            })
        }));
    }
    ways.extend(numbers_of_pieces(n).into_iter().map(|(pieces, graph)| {
        let name = format!("{pieces} overlapping pieces");
        Way::new(name, graph, move |gpu, places| {
            let stages = problem.stages(gpu, places, pieces)?;
            // SAFETY: promised by whoever implements it; the places live in the routine.
            Ok(unsafe { Steps::of_stages(gpu, stages) }?)
        })
    }));
    ways
}

/// Into how many pieces `n` values are cut, and whether these are a graph.
fn numbers_of_pieces(n: usize) -> Vec<(usize, bool)> {
    let mut pieces = Vec::new();
    if (CUT_FROM..=GRAPHS_TO).contains(&n) {
        pieces.extend([(2, true), (4, true), (8, true)]);
    }
    if n > SMALL {
        pieces.extend([(8, false), (16, false), (32, false)]);
    }
    if n > GRAPHS_TO {
        pieces.push((64, false));
    }
    pieces
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
    fn pieces_by_size() {
        let count = |n| numbers_of_pieces(n).len();
        assert_eq!((count(1 << 10), count(1 << 18)), (0, 3));
        assert_eq!((count(1 << 21), count(1 << 28)), (6, 4));
    }
}
