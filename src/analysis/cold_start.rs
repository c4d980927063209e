//! What a fresh process pays before its first result, put together from the phases that the
//! group `cold_start` measures.

use crate::results::curves::Benchmark;
use crate::results::machine::Machine;
use crate::timing::Clock;

const GROUP: &str = "cold_start";

/// The first result that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// A kernel from CUDA C++ source.
    Kernel,
    /// A product by cuBLAS.
    Product,
}

impl First {
    /// What an implementation needs, by its name.
    pub(crate) fn of(implementation: &str) -> Self {
        match implementation.starts_with("cublas") {
            true => First::Product,
            false => First::Kernel,
        }
    }
}

/// The phases up to a first result.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    /// In the order in which they happen.
    pub phases: Vec<&'a Benchmark>,
    /// The last phase once more in a process that is warm, where it was measured.
    pub warm: Option<&'a Benchmark>,
}

impl Start<'_> {
    /// All phases together, ns.
    pub(crate) fn total_ns(&self) -> f64 {
        self.phases.iter().map(|b| b.median_ns).sum()
    }
}

/// One measured phase.
pub(crate) fn phase<'a>(machine: &'a Machine, name: &str) -> Option<&'a Benchmark> {
    let group = machine.group(GROUP)?;
    let series = group.find(&format!("gpu/{name}"))?;
    (series.clock == Some(Clock::Wall))
        .then(|| series.points.last())
        .flatten()
}

/// The phases up to `first`; `None` where one of them was not measured. Source is compiled to
/// PTX, which the driver compiles on loading; a CUBIN stands for both where they are missing.
pub(crate) fn start(machine: &Machine, first: First) -> Option<Start<'_>> {
    let phases = |names: &[&str]| -> Option<Vec<&Benchmark>> {
        names.iter().map(|name| phase(machine, name)).collect()
    };
    let mut all = phases(&["driver-init", "context", "first-stream", "first-alloc"])?;
    let warm = match first {
        First::Kernel => {
            let code = phases(&["nvrtc-compile", "ptx-jit"]);
            all.extend(code.or_else(|| phases(&["cubin-load"]))?);
            all.push(phase(machine, "first-launch")?);
            phase(machine, "warm-launch")
        }
        First::Product => {
            all.push(phase(machine, "first-gemm")?);
            phase(machine, "warm-gemm")
        }
    };
    Some(Start { phases: all, warm })
}
