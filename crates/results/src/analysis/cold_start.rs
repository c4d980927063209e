//! The cost of a process before its first result: the sum of the measured phases, in whichever group
//! they are.

use crate::model::role::{Library, Measures, Phase};
use crate::store::curves::{Benchmark, Series};
use crate::store::machine_results::MachineResults;
use crossover_words::Clock;

/// The first result that is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// A kernel from CUDA C++ source.
    Kernel,
    /// A product by cuBLAS.
    Product,
}

impl First {
    /// The first result that an implementation needs: by its library, or a kernel.
    pub fn of(series: &Series) -> Self {
        match series.role.library {
            Some(Library::Cublas) => First::Product,
            _ => First::Kernel,
        }
    }
}

/// The phases up to a first result.
#[derive(Clone, Debug)]
pub struct Start<'a> {
    /// The longest first.
    pub phases: Vec<&'a Benchmark>,
    /// The last phase in a warm process, if measured.
    pub warm: Option<&'a Benchmark>,
}

impl Start<'_> {
    /// All phases together, ns.
    pub fn total_ns(&self) -> f64 {
        self.phases.iter().map(|b| b.median_ns).sum()
    }
}

/// One measured phase.
pub fn phase(machine: &MachineResults, phase: Phase) -> Option<&Benchmark> {
    let mut series = machine.groups.iter().flat_map(|group| &group.series);
    let measured =
        |s: &&Series| s.role.measures == Measures::Starts(phase) && s.clock == Some(Clock::Wall);
    series.find(measured)?.points.last()
}

/// The phases up to `first`; `None` where one of them was not measured. Source is compiled to
/// PTX, which the driver compiles on loading; a CUBIN stands for both where they are missing.
pub fn start(machine: &MachineResults, first: First) -> Option<Start<'_>> {
    use Phase::{
        Context, CubinLoad, DriverInit, FirstAlloc, FirstGemm, FirstLaunch, FirstStream,
        NvrtcCompile, PtxJit, WarmGemm, WarmLaunch,
    };
    let phases = |all: &[Phase]| -> Option<Vec<&Benchmark>> {
        all.iter().map(|one| phase(machine, *one)).collect()
    };
    let mut all = phases(&[DriverInit, Context, FirstStream, FirstAlloc])?;
    let warm = match first {
        First::Kernel => {
            let code = phases(&[NvrtcCompile, PtxJit]);
            all.extend(code.or_else(|| phases(&[CubinLoad]))?);
            all.push(phase(machine, FirstLaunch)?);
            phase(machine, WarmLaunch)
        }
        First::Product => {
            all.push(phase(machine, FirstGemm)?);
            phase(machine, WarmGemm)
        }
    };
    all.sort_by(|a, b| b.median_ns.total_cmp(&a.median_ns));
    Some(Start { phases: all, warm })
}

/// The phase that a result measures.
pub(crate) fn phase_of(benchmark: &Benchmark) -> Option<Phase> {
    match benchmark.role.measures {
        Measures::Starts(phase) => Some(phase),
        _ => None,
    }
}

/// Words for a phase, inside a sentence.
pub fn words(benchmark: &Benchmark) -> &str {
    match phase_of(benchmark) {
        Some(Phase::DriverInit) => "the driver's start",
        Some(Phase::Context) => "the context",
        Some(Phase::FirstStream) => "the first stream",
        Some(Phase::FirstAlloc) => "the first allocation",
        Some(Phase::NvrtcCompile) => "NVRTC",
        Some(Phase::PtxJit) => "the driver's JIT",
        Some(Phase::CubinLoad) => "loading the CUBIN",
        Some(Phase::FirstLaunch) => "the launch",
        Some(Phase::FirstGemm) => "cuBLAS",
        _ => &benchmark.implementation,
    }
}
