//! Operations from host memory to host memory: by one plain copy each way, or from pinned memory in the
//! fastest way. An operation declares how it computes and how it can be cut; this module adds copies,
//! memory and the choice.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Gpu, Value};
use crate::model::Verified;
use crate::workload::prepare::choose;
use crate::workload::prepare::host_memory::{Block, HostMemory};
use crate::workload::prepare::memory::Host;
use crate::workload::prepare::prepared::Prepared;
use crate::workload::prepare::steps::{Stage, Steps};
use crate::workload::routine::{Candidates, Result, Routine};

/// The stages of each piece, or the reason why there are none.
pub(crate) type Stages = Result<Vec<Stage>>;

/// A way from pinned memory through the device and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Kernels access the host's memory, mapped into the device's address space.
    Mapped,
    /// Copies and kernels in this many pieces, which overlap.
    Pieces(usize),
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Mapped => f.write_str("mapped memory"),
            Way::Pieces(1) => f.write_str("in sequence"),
            Way::Pieces(pieces) => write!(f, "{pieces} overlapping pieces"),
        }
    }
}

/// An operation that reads operands in host memory and writes its result there.
///
/// # Safety
/// Stages and steps access only the buffers that they are made for.
pub(crate) unsafe trait EndToEnd: Sized + 'static {
    /// The type of operands and result.
    type Value: Value;

    /// The value of an output before it is written.
    const POISON: Self::Value;

    /// Words for the names of choices.
    fn words(&self) -> String;

    fn operands(&self) -> Vec<&[Self::Value]>;

    /// Number of values of the result.
    fn result(&self) -> usize;

    /// Number of values in device memory that it needs between its kernels.
    fn scratch(&self, _gpu: &Gpu) -> usize {
        0
    }

    fn check(&self, result: &[Self::Value]) -> Verified;

    /// The stages of at most this number of pieces, whose copies overlap. One piece is the whole.
    fn stages(&self, gpu: &Rc<Gpu>, buffers: &Buffers<Self::Value>, pieces: usize) -> Stages;

    /// Whether [`mapped`](Self::mapped) may be the fastest way.
    fn may_be_mapped(&self) -> bool {
        true
    }

    /// Steps on mapped memory. The default runs the kernels there.
    fn mapped(&self, gpu: &Rc<Gpu>, buffers: &Buffers<Self::Value>) -> Result<Steps> {
        let mapped = Buffers {
            host: buffers.host.clone(),
            device: buffers.mapped()?,
        };
        let kernels = |stage| Stage {
            uploads: Vec::new(),
            downloads: Vec::new(),
            ..stage
        };
        let stages = self.stages(gpu, &mapped, 1)?.into_iter().map(kernels);
        // SAFETY: the implementation keeps the stages within the buffers, which the routine owns.
        Ok(unsafe { Steps::of_stages(gpu, stages.collect()) }?)
    }

    /// The ways to try from pinned memory.
    fn ways(&self) -> Vec<Way> {
        let mapped = self.may_be_mapped().then_some(Way::Mapped);
        let pieces = numbers_of_pieces(self.operands()[0].len());
        let pieces = pieces.iter().copied().map(Way::Pieces);
        mapped.into_iter().chain(pieces).collect()
    }

    fn steps(&self, gpu: &Rc<Gpu>, buffers: &Buffers<Self::Value>, way: Way) -> Result<Steps> {
        let steps = match way {
            Way::Mapped => self.mapped(gpu, buffers)?,
            Way::Pieces(pieces) => {
                let stages = self.stages(gpu, buffers, pieces)?;
                // SAFETY: the implementation keeps the stages within the buffers, which the routine owns.
                unsafe { Steps::of_stages(gpu, stages) }?
            }
        };
        // A graph of a whole copy, kernel and copy takes up to 1.3 times as long as these one by one (64
        // transforms of 64, H100); the other graphs take as long or less, kernels on mapped memory 0.7 times.
        Ok(if way == Way::Pieces(1) {
            steps
        } else {
            steps.into_graph()?
        })
    }
}

/// The operands and, last, the result, on both sides, and the device's scratch memory behind them. The
/// device's memory is the routine's own: if other implementations shared it, a missing upload would not
/// be noticed.
pub(crate) struct Buffers<T = f32> {
    pub(crate) host: Vec<Host<T>>,
    pub(crate) device: Vec<CUdeviceptr>,
}

impl<T: Value> Buffers<T> {
    fn new<O: EndToEnd<Value = T>>(
        work: &mut Prepared,
        problem: &Rc<O>,
        memory: HostMemory,
    ) -> Result<Self> {
        let lens: Vec<usize> = problem.operands().into_iter().map(<[_]>::len).collect();
        let scratch = Some(problem.scratch(&work.memory.gpu)).filter(|len| *len > 0);
        let device = (lens
            .iter()
            .copied()
            .chain([problem.result()])
            .chain(scratch))
        .map(|len| Ok(work.output::<T>(len)?.address))
        .collect::<Result<_>>()?;
        let mut host = (0..lens.len())
            .map(|at| work.host_input(memory, problem, |problem| problem.operands()[at]))
            .collect::<Result<Vec<_>, _>>()?;
        // Copies to the device rely on it.
        let host_lens = host.iter().map(|host: &Host<T>| host.values.len());
        assert!(host_lens.eq(lens), "operands of one length at each call");
        host.push(work.host_output(memory, O::POISON, problem.result())?);
        Ok(Self { host, device })
    }

    /// The addresses at which the device accesses pinned memory, and those of the scratch memory.
    pub(crate) fn mapped(&self) -> Result<Vec<CUdeviceptr>> {
        let host = self.host.iter().map(|host| Ok(host.mapped()?));
        let scratch = self.device[self.host.len()..].iter();
        host.chain(scratch.map(|&address| Ok(address))).collect()
    }

    /// `len` values of one of the buffers, from the value `first` on.
    pub(crate) fn piece(&self, at: usize, first: usize, len: usize) -> Block {
        let offset = (first * size_of::<T>()) as CUdeviceptr;
        Block::whole(self.host[at].part(first, len), self.device[at] + offset)
    }
}

/// A routine with host memory of this kind, and these steps on it.
fn prepared<O: EndToEnd>(
    gpu: &Rc<Gpu>,
    problem: &Rc<O>,
    memory: HostMemory,
    steps: impl FnOnce(&Buffers<O::Value>) -> Result<Steps>,
) -> Result<Prepared> {
    let mut work = Prepared::new(gpu)?;
    let buffers = Buffers::new(&mut work, problem, memory)?;
    (work.steps, work.waits) = (steps(&buffers)?, true);
    let (problem, result) = (problem.clone(), buffers.host[buffers.host.len() - 1]);
    work.check_by(move |memory| Ok(problem.check(memory.values(result))));
    Ok(work)
}

/// A routine from and to host memory: ordinary memory is copied by one plain copy each way, pinned
/// memory is used in the fastest way by a trial. It synchronises: time it on the wall clock.
pub(crate) fn from_host<O: EndToEnd>(
    gpu: &Rc<Gpu>,
    problem: &Rc<O>,
    memory: HostMemory,
) -> Result<Box<dyn Routine>> {
    let mut chosen = None;
    let mut work = prepared(gpu, problem, memory, |buffers| {
        if memory == HostMemory::Pageable {
            return problem.steps(gpu, buffers, Way::Pieces(1));
        }
        let choice = format!("{} from pinned memory", problem.words());
        let ways = problem.ways();
        let names: Vec<String> = ways.iter().map(Way::to_string).collect();
        let make = |at: usize| problem.steps(gpu, buffers, ways[at]);
        let run = |steps: &mut Steps, times| (0..times).try_for_each(|_| Ok(steps.run()?));
        let (way, steps) = choose::build_fastest(&choice, &names, make, run)?;
        chosen = Some(way);
        Ok(steps)
    })?;
    work.notes.extend(chosen);
    Ok(Box::new(work))
}

/// A routine for every way that [`from_host`] chooses from in pinned memory, with its name. For tests.
pub(crate) fn ways<O: EndToEnd>(gpu: &Rc<Gpu>, problem: &Rc<O>) -> Result<Candidates> {
    let pinned = |way: Way| -> Result<(String, Box<dyn Routine>)> {
        let steps = |buffers: &Buffers<O::Value>| problem.steps(gpu, buffers, way);
        let work = prepared(gpu, problem, HostMemory::Pinned, steps)?;
        Ok((way.to_string(), Box::new(work)))
    };
    problem.ways().into_iter().map(pinned).collect()
}

/// Pieces start at multiples of this many values, so that vector loads stay aligned.
const ALIGNMENT: usize = 1 << 10;
/// From this many values on, overlapping pieces are faster than a whole copy, kernel and copy.
const CUT_FROM: usize = 1 << 19;

/// Numbers of pieces to try for `n` values. On an H100, one of these is within 7 % of the fastest of 1 to
/// 64 pieces, for every operation and size of the size set `default`.
pub(super) fn numbers_of_pieces(n: usize) -> &'static [usize] {
    if n < CUT_FROM { &[1] } else { &[4, 8, 16] }
}

/// First value and length of each of at most `pieces` pieces of `n` values.
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
}
