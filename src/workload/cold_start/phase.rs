//! The phases of a start, as routines for `cargo bench`.

use std::rc::Rc;

use crate::device::absence::Absence;
use crate::device::gpu::Gpu;
use crate::device::kernel::NO_NVRTC;
use crate::device::libraries;
use crate::workload::child_process::PhaseTime;
use crate::workload::cold_start::problem::ColdStart;
use crate::workload::routine::Made;

/// What a process does at its start, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// `cuInit`: the driver starts.
    DriverInit,
    /// The context of the device.
    Context,
    /// The first stream.
    FirstStream,
    /// A further stream.
    WarmStream,
    /// The first allocation, 1 MiB.
    FirstAlloc,
    /// A further allocation.
    WarmAlloc,
    /// CUDA C++ to PTX by NVRTC, the library's own start included.
    NvrtcCompile,
    /// The same once more.
    WarmNvrtcCompile,
    /// PTX to machine code by the driver's JIT, its cache off.
    PtxJit,
    /// Machine code loaded as it is.
    CubinLoad,
    /// The first launch, waited for.
    FirstLaunch,
    /// A further launch, waited for.
    WarmLaunch,
    /// A cuBLAS handle and its first product, N = 256, waited for.
    FirstGemm,
    /// A further product.
    WarmGemm,
}

impl Phase {
    /// Its name in ids and in the report of a child process.
    pub fn name(self) -> &'static str {
        match self {
            Phase::DriverInit => "driver-init",
            Phase::Context => "context",
            Phase::FirstStream => "first-stream",
            Phase::WarmStream => "warm-stream",
            Phase::FirstAlloc => "first-alloc",
            Phase::WarmAlloc => "warm-alloc",
            Phase::NvrtcCompile => "nvrtc-compile",
            Phase::WarmNvrtcCompile => "warm-nvrtc-compile",
            Phase::PtxJit => "ptx-jit",
            Phase::CubinLoad => "cubin-load",
            Phase::FirstLaunch => "first-launch",
            Phase::WarmLaunch => "warm-launch",
            Phase::FirstGemm => "first-gemm",
            Phase::WarmGemm => "warm-gemm",
        }
    }

    /// Finds the library that the phase needs.
    fn needs(self, gpu: &Gpu) -> Result<(), Absence> {
        match self {
            Phase::DriverInit
            | Phase::Context
            | Phase::FirstStream
            | Phase::WarmStream
            | Phase::FirstAlloc
            | Phase::WarmAlloc => Ok(()),
            // What is loaded and launched was compiled in the same process.
            Phase::NvrtcCompile
            | Phase::WarmNvrtcCompile
            | Phase::PtxJit
            | Phase::CubinLoad
            | Phase::FirstLaunch
            | Phase::WarmLaunch => libraries::nvrtc().then_some(()).ok_or(NO_NVRTC),
            Phase::FirstGemm | Phase::WarmGemm => gpu.blas().map(drop),
        }
    }
}

/// One phase of the measured processes.
///
/// # Errors
/// The [`Absence`] of the library that the phase needs.
pub fn phase(gpu: &Rc<Gpu>, problem: &Rc<ColdStart>, phase: Phase) -> Made {
    phase.needs(gpu)?;
    Ok(Box::new(PhaseTime::new(
        gpu,
        &problem.processes,
        phase.name(),
        "values of the first launch and the first product that are wrong, every one",
    )))
}
