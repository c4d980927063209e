//! Operations from host memory to host memory: by one plain copy each way, or from pinned memory in the
//! fastest way. An operation declares how it computes and how it can be cut; this module adds copies,
//! memory and the choice.

use std::fmt::Display;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Gpu, Value};
use crate::model::Verified;
use crate::workload::prepare::block::Block;
use crate::workload::prepare::choose;
use crate::workload::prepare::host_memory::HostMemory;
use crate::workload::prepare::pieces::{SMALL, numbers_of_pieces};
use crate::workload::prepare::prepared::{Host, Prepared};
use crate::workload::prepare::steps::{Stage, Steps, Stream};
use crate::workload::routine::{Done, Made, Routine, RoutineError, Ways};

/// The stages of each piece, or the reason why there are none.
pub(crate) type Stages = Result<Vec<Stage>, RoutineError>;

/// Makes the steps of a way.
type MakeSteps<'a, T> = Box<dyn Fn(&Rc<Gpu>, &Buffers<T>) -> Result<Steps, RoutineError> + 'a>;

/// A way from pinned memory through the device and back.
pub(crate) struct TransferPlan<'a, T> {
    pub(crate) name: String,
    graph: bool,
    steps: MakeSteps<'a, T>,
}

impl<'a, T> TransferPlan<'a, T> {
    /// A way whose steps are launched one by one or as a graph, which its name then tells.
    pub(crate) fn new(
        name: impl Display,
        graph: bool,
        steps: impl Fn(&Rc<Gpu>, &Buffers<T>) -> Result<Steps, RoutineError> + 'a,
    ) -> Self {
        let launched = if graph { ", as a graph" } else { "" };
        Self {
            name: format!("{name}{launched}"),
            graph,
            steps: Box::new(steps),
        }
    }

    fn steps(&self, gpu: &Rc<Gpu>, places: &Buffers<T>) -> Result<Steps, RoutineError> {
        let mut steps = (self.steps)(gpu, places)?;
        if self.graph {
            // Run once before the capture, during which a library must not load code.
            steps.run()?;
            steps.replay()?;
        }
        Ok(steps)
    }
}

/// An operation that reads operands in host memory and writes its result there.
///
/// # Safety
/// The stages must lie within the places.
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

    fn check(&self, result: &[Self::Value]) -> Result<Verified, RoutineError>;

    /// Adds steps that compute on the operands, the result and the scratch memory at these addresses.
    fn compute(&self, gpu: &Rc<Gpu>, steps: &mut Steps, at: &[CUdeviceptr]) -> Done;

    /// Whether kernels may read and write the host's memory in place.
    fn works_in_place(&self) -> bool {
        true
    }

    /// The stages of at most so many pieces, whose copies overlap.
    fn stages(&self, gpu: &Rc<Gpu>, places: &Buffers<Self::Value>, pieces: usize) -> Stages;

    /// The ways to try from pinned memory. The default is for an operation on one array: whole, in
    /// place in the host's memory, or in pieces.
    fn ways(&self) -> Vec<TransferPlan<'_, Self::Value>> {
        let n = self.operands()[0].len();
        let mut ways = Vec::new();
        if self.works_in_place() {
            ways.push(TransferPlan::new(
                "the kernel on mapped memory",
                false,
                |gpu, at| {
                    let mut steps = Steps::new(gpu)?;
                    self.compute(gpu, &mut steps, &at.mapped()?)?;
                    Ok(steps)
                },
            ));
        }
        if n <= SMALL {
            ways.extend([false, true].map(|graph| {
                TransferPlan::new("in sequence", graph, |gpu, places| {
                    places.copied(gpu, |steps, at| self.compute(gpu, steps, at))
                })
            }));
        }
        ways.extend(numbers_of_pieces(n).into_iter().map(|(pieces, graph)| {
            let name = format!("{pieces} overlapping pieces");
            TransferPlan::new(name, graph, move |gpu, places| {
                let stages = self.stages(gpu, places, pieces)?;
                // SAFETY: the implementation keeps the stages within the places, which the routine owns.
                Ok(unsafe { Steps::of_stages(gpu, stages) }?)
            })
        }));
        ways
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
    ) -> Result<Self, RoutineError> {
        let lens = problem.operands().into_iter().map(<[_]>::len);
        let scratch = Some(problem.scratch(work.memory.gpu())).filter(|len| *len > 0);
        let device = (lens.chain([problem.result()]).chain(scratch))
            .map(|len| Ok(work.output::<T>(len)?.address))
            .collect::<Result<_, RoutineError>>()?;
        let mut host = (0..problem.operands().len())
            .map(|at| work.host_input(memory, problem, |problem| problem.operands()[at]))
            .collect::<Result<Vec<_>, _>>()?;
        host.push(work.host_output(memory, O::POISON, problem.result())?);
        Ok(Self { host, device })
    }

    /// The addresses at which the device accesses pinned memory, and those of the scratch memory.
    pub(crate) fn mapped(&self) -> Result<Vec<CUdeviceptr>, RoutineError> {
        let host = self.host.iter().map(|host| Ok(host.mapped()?));
        let scratch = self.device[self.host.len()..].iter();
        host.chain(scratch.map(|&address| Ok(address))).collect()
    }

    fn last(&self) -> Host<T> {
        self.host[self.host.len() - 1]
    }

    /// `len` values of one of the places, from the value `first` on.
    pub(crate) fn piece(&self, at: usize, first: usize, len: usize) -> Block {
        let offset = (first * size_of::<T>()) as CUdeviceptr;
        Block::whole(self.host[at].part(first, len), self.device[at] + offset)
    }

    /// Uploads, the steps of `compute`, and a download, one after the other.
    pub(crate) fn copied(
        &self,
        gpu: &Rc<Gpu>,
        compute: impl FnOnce(&mut Steps, &[CUdeviceptr]) -> Result<(), RoutineError>,
    ) -> Result<Steps, RoutineError> {
        let mut steps = Steps::new(gpu)?;
        let operands = self.host.len() - 1;
        for (host, &device) in self.host[..operands].iter().zip(&self.device) {
            // SAFETY: `new` made both with as many values, in the routine that these steps are for.
            unsafe { steps.upload(Stream::Compute, host.values, device) };
        }
        compute(&mut steps, &self.device)?;
        let (from, to) = (self.device[operands], self.last().values);
        // SAFETY: `new` made both with the length of the result, in the routine that these steps are for.
        unsafe { steps.download(Stream::Compute, from, to) };
        Ok(steps)
    }
}

/// A routine from and to host memory: ordinary memory is copied by one plain copy each way, pinned
/// memory is used in the fastest way by a trial. It synchronises: time it on the wall clock.
pub(crate) fn from_host<O: EndToEnd>(gpu: &Rc<Gpu>, problem: &Rc<O>, memory: HostMemory) -> Made {
    match memory {
        HostMemory::Pageable => plain(gpu, problem),
        HostMemory::Pinned => from_pinned(gpu, problem),
    }
}

fn checked<O: EndToEnd>(work: &mut Prepared, problem: &Rc<O>, result: Host<O::Value>) {
    let problem = problem.clone();
    work.check_by(move |memory| problem.check(memory.values(result)));
}

/// Plain copies from and to ordinary memory.
fn plain<O: EndToEnd>(gpu: &Rc<Gpu>, problem: &Rc<O>) -> Made {
    let mut work = Prepared::new(gpu)?;
    let places = Buffers::new(&mut work, problem, HostMemory::Pageable)?;
    let compute = |steps: &mut Steps, device: &[CUdeviceptr]| problem.compute(gpu, steps, device);
    (work.steps, work.waits) = (places.copied(gpu, compute)?, true);
    checked(&mut work, problem, places.last());
    Ok(Box::new(work))
}

/// The fastest way from pinned memory by a trial.
fn from_pinned<O: EndToEnd>(gpu: &Rc<Gpu>, problem: &Rc<O>) -> Made {
    let mut work = Prepared::new(gpu)?;
    let places = Buffers::new(&mut work, problem, HostMemory::Pinned)?;
    let choice = format!("{} from pinned memory", problem.words());
    let ways = problem.ways();
    let names: Vec<&str> = ways.iter().map(|way| &*way.name).collect();
    let make = |at: usize| ways[at].steps(gpu, &places);
    let run = |steps: &mut Steps, times| (0..times).try_for_each(|_| Ok(steps.run()?));
    let (way, steps) = choose::made_by(&choice, &names, make, run)?;
    work.notes.push(way);
    (work.steps, work.waits) = (steps, true);
    checked(&mut work, problem, places.last());
    Ok(Box::new(work))
}

/// A routine for every way that [`from_host`] chooses from in pinned memory, with its name. For tests.
pub(crate) fn ways<O: EndToEnd>(gpu: &Rc<Gpu>, problem: &Rc<O>) -> Ways {
    let pinned =
        |way: TransferPlan<'_, O::Value>| -> Result<(String, Box<dyn Routine>), RoutineError> {
            let mut work = Prepared::new(gpu)?;
            let places = Buffers::new(&mut work, problem, HostMemory::Pinned)?;
            (work.steps, work.waits) = (way.steps(gpu, &places)?, true);
            checked(&mut work, problem, places.last());
            Ok((way.name, Box::new(work)))
        };
    problem.ways().into_iter().map(pinned).collect()
}
