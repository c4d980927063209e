//! The phases of a start, as routines for `cargo bench`.

use std::rc::Rc;

use crate::device::libraries::{self, NO_NVRTC};
use crate::device::{Absence, Gpu};
use crate::model::Phase;
use crate::workload::lessons::cold_start::problem::ColdStart;
use crate::workload::prepare::PhaseTime;
use crate::workload::routine::Made;

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
