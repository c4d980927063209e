//! The times of the first calls of a process, one by one, and of the preparations before them.
//!
//! The size is the number of the call, from 1. A new process allocates everything that the calls need,
//! and then times in this order: the chain of [`graph_replay`](crate::workload::graph_replay) launched
//! kernel by kernel; its capture and instantiation; the graph; the compilation of the fused kernel;
//! that kernel; and a product by cuBLAS. So the first call of the chain is the first launch of the
//! process, and the first product the first call of the library. All rows come from the same processes.

use std::rc::Rc;
use std::time::Instant;

use crate::device::kernel::Source;
use crate::device::{Gpu, libraries};
use crate::model::{Launches, Phase};
use crate::workload::graph_replay::{Chain, compile_fused, prepared};
use crate::workload::matmul::{self, Matmul};
use crate::workload::prepare::{PhaseTime, Processes, Report, Task};
use crate::workload::routine::{Result, Routine, Workload};

/// Calls of each kind of work.
pub const CALLS: u64 = 10;
/// Values of the chain, and order of the product: small ones, where calls cost more than the work.
const SIZE: u64 = 1024;

/// The work that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalledWork {
    /// 32 kernels, launched one by one.
    Chain,
    /// The kernels of `Chain` as a graph.
    Graph,
    /// The work of `Chain` in one kernel.
    Fused,
    /// A product by cuBLAS.
    Product,
}

/// Name of a time in the process's report: that of the whole call, or of the host's part.
fn name(work: CalledWork, call: u64, submitted: bool) -> String {
    let part = if submitted { "submitted" } else { "awaited" };
    format!("{work:?} {call} {part}")
}

/// One of the calls.
pub struct WarmingUp {
    call: u64,
    processes: Rc<Processes>,
}

impl Workload for WarmingUp {
    fn new(size: u64) -> Self {
        Self {
            call: size,
            processes: Processes::of(Task::WarmingUp),
        }
    }

    fn host_bytes(_: u64) -> u64 {
        matmul::host_bytes(SIZE)
    }

    fn device_bytes(_: u64) -> u64 {
        1 << 30
    }

    fn kernels() -> &'static [&'static Source] {
        Chain::kernels()
    }
}

/// A call in a new process: until the device is done, or, if `submitted`, until the host may go on.
///
/// # Errors
/// Errors of CUDA; where cuBLAS or NVRTC is absent that the work needs.
pub fn call(
    gpu: &Rc<Gpu>,
    problem: &Rc<WarmingUp>,
    work: CalledWork,
    submitted: bool,
) -> Result<Box<dyn Routine>> {
    if work == CalledWork::Product {
        gpu.blas()?;
    }
    phase(gpu, problem, name(work, problem.call, submitted))
}

/// A preparation that a process makes once.
///
/// # Errors
/// As [`call`].
pub fn preparing(gpu: &Rc<Gpu>, problem: &Rc<WarmingUp>, what: Phase) -> Result<Box<dyn Routine>> {
    phase(gpu, problem, what)
}

fn phase(gpu: &Gpu, problem: &WarmingUp, name: impl ToString) -> Result<Box<dyn Routine>> {
    // The processes need this too: where it is missing here, that is a skip and not their failure.
    compile_fused(gpu)?;
    let method = "works of all processes whose last call gave a wrong result";
    Ok(Box::new(PhaseTime::new(
        gpu,
        &problem.processes,
        name,
        method,
    )))
}

/// Times the calls of this process.
pub(crate) fn measure(device: usize) -> Result<Report> {
    let gpu = Rc::new(Gpu::open(device)?);
    let mut report = Report::default();
    let chain = Rc::new(Chain::new(SIZE));
    let mut eager = prepared(&gpu, &chain, Launches::OneByOne)?;
    calls(&gpu, &mut report, CalledWork::Chain, &mut eager)?;
    let mut graph = prepared(&gpu, &chain, Launches::Graph)?;
    let captured = report.once(Phase::GraphCapture, || Ok(graph.steps.capture()?))?;
    report.once(Phase::GraphInstantiate, || {
        Ok(graph.steps.instantiate(captured)?)
    })?;
    calls(&gpu, &mut report, CalledWork::Graph, &mut graph)?;
    report.once(Phase::KernelCompile, || compile_fused(&gpu))?;
    let mut fused = prepared(&gpu, &chain, Launches::Fused)?;
    calls(&gpu, &mut report, CalledWork::Fused, &mut fused)?;
    if libraries::cublas() {
        let mut product = matmul::gpu::cublas_uncalled(&gpu, &Rc::new(Matmul::new(SIZE)))?;
        calls(&gpu, &mut report, CalledWork::Product, &mut product)?;
    }
    Ok(report)
}

fn calls(
    gpu: &Gpu,
    report: &mut Report,
    work: CalledWork,
    routine: &mut dyn Routine,
) -> Result<()> {
    routine.poison()?;
    gpu.synchronize()?;
    for call in 1..=CALLS {
        let start = Instant::now();
        routine.run()?;
        let submitted = start.elapsed();
        gpu.synchronize()?;
        let awaited = start.elapsed();
        for (part, took) in [(true, submitted), (false, awaited)] {
            let ns = took.as_nanos() as f64;
            report.phases.insert(name(work, call, part), ns);
        }
    }
    report.wrong += u64::from(!routine.check()?.passed());
    Ok(())
}
