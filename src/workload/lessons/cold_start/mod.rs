//! What the first call pays and a warm one does not, each phase measured in child processes, with
//! the driver's JIT cache off.
//!
//! The clock is the host's; the device is synchronised at the end of each phase.

use std::rc::Rc;

use crate::device::kernel::Source;
use crate::device::libraries::{self, NO_NVRTC};
use crate::device::{Absence, Gpu};
use crate::model::{Cost, Phase};
use crate::workload::prepare::{PhaseTime, Processes, Task, kernels};
use crate::workload::routine::{Made, Workload};
pub(crate) use child::measure;

mod child;

/// The kernel of the first launch.
pub static COLD_START: Source = kernels!("cold_start.cu");

/// The measured processes.
pub struct ColdStart {
    pub(super) processes: Rc<Processes>,
}

impl Workload for ColdStart {
    fn new(_: u64) -> Self {
        Self {
            processes: Rc::new(Processes::new(Task::ColdStart)),
        }
    }

    fn host_bytes(_: u64) -> u64 {
        0
    }

    fn device_bytes(_: u64) -> u64 {
        1 << 30
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&COLD_START] }
    }
}

/// The cost of a phase: it has none but time.
pub fn cost(_: u64) -> Cost {
    Cost::default()
}

/// Requires the library that the phase needs.
fn require(phase: Phase, gpu: &Gpu) -> Result<(), Absence> {
    match phase {
        Phase::DriverInit
        | Phase::Context
        | Phase::FirstStream
        | Phase::WarmStream
        | Phase::FirstAlloc
        | Phase::WarmAlloc
        | Phase::FirstCall
        | Phase::EachCall
        | Phase::GraphCapture
        | Phase::GraphInstantiate => Ok(()),
        // These load and launch what the same process has compiled.
        Phase::KernelCompile
        | Phase::NvrtcCompile
        | Phase::WarmNvrtcCompile
        | Phase::PtxJit
        | Phase::CubinLoad
        | Phase::FirstLaunch
        | Phase::WarmLaunch => libraries::nvrtc().then_some(()).ok_or(NO_NVRTC),
        Phase::FirstGemm | Phase::WarmGemm => gpu.blas().map(drop),
    }
}

/// One phase of the measured processes, whose times it returns as its own.
///
/// # Errors
/// The [`Absence`] of the library that the phase needs.
pub fn phase(gpu: &Rc<Gpu>, problem: &Rc<ColdStart>, phase: Phase) -> Made {
    require(phase, gpu)?;
    Ok(Box::new(PhaseTime::new(
        gpu,
        &problem.processes,
        phase.name(),
        "values of the first launch and the first product that are wrong, every one",
    )))
}
