//! Break-even reuse: how many operations pay for moving the data, how many calls for the
//! cold start.
//!
//! With T the time end to end, D the work alone on data already on the device and C the
//! best CPU time, moving costs T − D once and each operation saves C − D. From
//! k = (T − D) / (C − D) operations on the same data on, the GPU is ahead. D is the
//! headline answer's time with the data on the device and the calls queued.
//!
//! The cold start is the cost of a process before its first result: the sum of the measured phases, in whichever
//! group they are.

use std::sync::Arc;

use serde::Serialize;

use crossover_words::Clock;

use crate::analysis::answer::crossover_answer::{
    CrossoverAnswer, best_cpu, curve, headlines, of_group,
};
use crate::model::role::{Library, Measures, Phase, Residency};
use crate::store::curves::{Benchmark, Group, Series};
use crate::store::machine_results::MachineResults;

/// One size of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReuseRow {
    /// Problem size.
    pub size: u64,
    /// Operations on the same data that pay for moving it once; infinite where the CPU is
    /// faster even on data already moved, at most 1 where one operation pays.
    pub operations: f64,
    /// Calls on data on the device that pay for the cold start, where that was measured.
    pub calls: Option<f64>,
}

/// Break-even by size for one way of moving the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reuse {
    /// The group.
    pub group: String,
    /// The implementation that moves the data.
    pub transfer: String,
    /// The implementation on data already moved.
    pub resident: String,
    /// Sizes measured end to end, ascending.
    pub rows: Vec<ReuseRow>,
}

/// All tables of a machine. `found` are its answers.
pub fn find(machine: &MachineResults, found: &[CrossoverAnswer]) -> Vec<Reuse> {
    let tables = |group: &Arc<Group>| -> Option<Vec<Reuse>> {
        let mut asked = headlines(of_group(found, &group.name));
        let resident =
            asked.find(|f| f.question == Residency::Queued && f.gpu_machine.is_none())?;
        let series = resident.gpu_series(group)?;
        let start = start(machine, First::of(series));
        let cold = start.map(|start| start.total_ns());
        let (device, (cpu, _)) = (curve(series), best_cpu(group));
        let row = |b: &Benchmark| {
            let size = b.size as f64;
            let (c, d) = (cpu.at(size)?.median, device.at(size)?.median);
            Some(ReuseRow {
                size: b.size,
                operations: pays((b.median_ns - d).max(0.0), c, d),
                calls: cold.map(|cold| pays(cold, c, d)),
            })
        };
        let table = |series: &Series| Reuse {
            group: group.name.clone(),
            transfer: series.implementation.clone(),
            resident: resident.gpu.clone(),
            rows: series.steady_points().filter_map(row).collect(),
        };
        let tables = group.moving().map(table);
        Some(tables.filter(|table| !table.rows.is_empty()).collect())
    };
    let tables = machine.groups.iter().filter_map(tables);
    tables.flatten().collect()
}

/// How many times `cpu - gpu` make up for `once`; infinite where the GPU saves nothing.
fn pays(once: f64, cpu: f64, gpu: f64) -> f64 {
    match cpu - gpu {
        saved if saved > 0.0 => once / saved,
        _ => f64::INFINITY,
    }
}

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
    let phases = |wanted: &[Phase]| -> Option<Vec<&Benchmark>> {
        wanted.iter().map(|one| phase(machine, *one)).collect()
    };
    let mut cold = phases(&[DriverInit, Context, FirstStream, FirstAlloc])?;
    let warm = match first {
        First::Kernel => {
            let code = phases(&[NvrtcCompile, PtxJit]);
            cold.extend(code.or_else(|| phases(&[CubinLoad]))?);
            cold.push(phase(machine, FirstLaunch)?);
            phase(machine, WarmLaunch)
        }
        First::Product => {
            cold.push(phase(machine, FirstGemm)?);
            phase(machine, WarmGemm)
        }
    };
    cold.sort_by(|a, b| b.median_ns.total_cmp(&a.median_ns));
    Some(Start { phases: cold, warm })
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
