//! What the first call pays and a warm one does not, each phase measured in fresh processes:
//! the executable starts itself again, with the driver's JIT cache off.
//!
//! A phase happens once in a process, so Criterion cannot repeat it: the processes are run
//! first, and each of Criterion's samples is one process's time. The clock is the host's,
//! the device synchronised at the end of each phase.

mod child;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::process::Command;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::{Routine, RoutineError, Workload};
use crate::device::Gpu;
use crate::device::kernel::Source;
use crate::record::{Cost, Verified};

pub use child::run as run_child;

/// The kernel of the first launch.
pub static COLD_START: Source = Source {
    name: "cold_start.cu",
    text: include_str!("../../../kernels/cold_start.cu"),
    options: &[],
    oldest: (7, 5),
};

/// Set in a process that is to measure its own start on this device.
const CHILD: &str = "CROSSOVER_COLD_START_DEVICE";

/// Processes: Criterion's warm-up takes the first, its ten samples the others.
const PROCESSES: usize = 11;

/// What one process measured.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    /// Nanoseconds by phase; a phase whose library is absent is not there.
    phases: BTreeMap<String, f64>,
    /// Values that the first launch or the first product got wrong.
    wrong: u64,
}

/// The measured processes; run when the first phase is.
pub struct ColdStart {
    reports: OnceCell<Vec<Report>>,
}

impl Workload for ColdStart {
    fn new(_: u64) -> Self {
        Self {
            reports: OnceCell::new(),
        }
    }

    fn host_bytes(_: u64) -> u64 {
        0
    }

    fn device_bytes(_: u64) -> u64 {
        1 << 30
    }
}

/// Nothing but time.
pub fn cost(_: u64) -> Cost {
    Cost::default()
}

impl ColdStart {
    fn reports(&self, gpu: &Gpu) -> Result<&[Report], RoutineError> {
        if let Some(reports) = self.reports.get() {
            return Ok(reports);
        }
        let mut reports = Vec::with_capacity(PROCESSES);
        for _ in 0..PROCESSES {
            reports.push(fresh_process(gpu.properties().ordinal)?);
        }
        Ok(self.reports.get_or_init(|| reports))
    }
}

fn fresh_process(device: usize) -> Result<Report, RoutineError> {
    let output = Command::new(std::env::current_exe()?)
        .env(CHILD, device.to_string())
        // The JIT is measured, not the cache of an earlier run's.
        .env("CUDA_CACHE_DISABLE", "1")
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "a fresh process failed ({}): {}",
            output.status,
            said.trim()
        )
        .into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A phase of a process's start.
struct Phase {
    name: &'static str,
    problem: Rc<ColdStart>,
    gpu: Rc<Gpu>,
    next: usize,
}

impl Routine for Phase {
    fn poison(&mut self) -> Result<(), RoutineError> {
        // Each process poisons its own memory.
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.problem.reports(&self.gpu).map(drop)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let reports = self.problem.reports(&self.gpu)?;
        Ok(Verified {
            error: reports.iter().map(|r| r.wrong).sum::<u64>() as f64,
            bound: 0.0,
            method: "values of the first launch and the first product that are wrong, every one"
                .to_owned(),
        })
    }

    fn time(&mut self, iterations: u64) -> Option<Result<f64, RoutineError>> {
        let sample = self.problem.reports(&self.gpu).and_then(|reports| {
            let report = &reports[self.next % reports.len()];
            let ns = report.phases.get(self.name).copied();
            ns.ok_or_else(|| format!("the fresh process has no phase {}", self.name).into())
        });
        self.next += 1;
        Some(sample.map(|ns| ns * iterations as f64))
    }
}

type Made = Result<Box<dyn Routine>, RoutineError>;

/// Phases for `cargo bench`.
pub mod gpu {
    use super::*;

    macro_rules! phases {
        ($($(#[$doc:meta])* $function:ident => $name:literal),* $(,)?) => {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// When a fresh process cannot be run, or its libraries are absent.
            pub fn $function(gpu: &Rc<Gpu>, problem: &Rc<ColdStart>) -> Made {
                phase(gpu, problem, $name)
            }
        )*};
    }

    phases! {
        /// `cuInit`: the driver starts.
        driver_init => "driver-init",
        /// The context of the device.
        context => "context",
        /// The first stream.
        first_stream => "first-stream",
        /// A further stream.
        warm_stream => "warm-stream",
        /// The first allocation, 1 MiB.
        first_alloc => "first-alloc",
        /// A further allocation.
        warm_alloc => "warm-alloc",
        /// CUDA C++ to PTX by NVRTC, the library's own start included.
        nvrtc_compile => "nvrtc-compile",
        /// The same once more.
        warm_nvrtc_compile => "warm-nvrtc-compile",
        /// PTX to machine code by the driver's JIT, its cache off.
        ptx_jit => "ptx-jit",
        /// Machine code loaded as it is.
        cubin_load => "cubin-load",
        /// The first launch, waited for.
        first_launch => "first-launch",
        /// A further launch, waited for.
        warm_launch => "warm-launch",
        /// A cuBLAS handle and its first product, N = 256, waited for.
        first_gemm => "first-gemm",
        /// A further product.
        warm_gemm => "warm-gemm",
    }

    fn phase(gpu: &Rc<Gpu>, problem: &Rc<ColdStart>, name: &'static str) -> Made {
        use crate::device::{Absence, kernel::NO_NVRTC, present};
        if name.contains("gemm") {
            gpu.blas()?;
        }
        let needs_nvrtc = ["nvrtc", "ptx", "cubin", "launch"];
        if needs_nvrtc.iter().any(|n| name.contains(n)) && !present::nvrtc() {
            return Err(Box::<Absence>::new(NO_NVRTC));
        }
        Ok(Box::new(Phase {
            name,
            problem: problem.clone(),
            gpu: gpu.clone(),
            next: 0,
        }))
    }
}
