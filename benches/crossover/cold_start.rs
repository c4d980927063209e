//! What the first call pays, phase by phase, each in fresh processes, and what a warm one does.

use crossover::model::{Data, Does, Phase, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::workload::cold_start::{self, ColdStart, gpu};

pub(crate) fn group() -> Group<ColdStart> {
    // A phase has no size; an id has.
    let sizes = Sizes::new([], [1], [1]).odd([1]);
    Group::new("cold_start", sizes, None, cold_start::cost)
        .about(
            "Cold start",
            "What does the first call of a fresh process pay, phase by phase, and what does a warm one?",
        )
        .axis("n", "n", Unit::Count)
        .no_winner()
        .with(Implementation::gpu("driver-init", Wall, gpu::driver_init).does(Does::Starts(Phase::DriverInit)).data(Data::Awaited))
        .with(Implementation::gpu("context", Wall, gpu::context).does(Does::Starts(Phase::Context)).data(Data::Awaited))
        .with(Implementation::gpu("first-stream", Wall, gpu::first_stream).does(Does::Starts(Phase::FirstStream)).data(Data::Awaited))
        .with(Implementation::gpu("warm-stream", Wall, gpu::warm_stream).does(Does::Starts(Phase::WarmStream)).data(Data::Awaited))
        .with(Implementation::gpu("first-alloc", Wall, gpu::first_alloc).does(Does::Starts(Phase::FirstAlloc)).data(Data::Awaited))
        .with(Implementation::gpu("warm-alloc", Wall, gpu::warm_alloc).does(Does::Starts(Phase::WarmAlloc)).data(Data::Awaited))
        .with(Implementation::gpu(
            "nvrtc-compile",
            Wall,
            gpu::nvrtc_compile).does(Does::Starts(Phase::NvrtcCompile)).data(Data::Awaited))
        .with(Implementation::gpu(
            "warm-nvrtc-compile",
            Wall,
            gpu::warm_nvrtc_compile).does(Does::Starts(Phase::WarmNvrtcCompile)).data(Data::Awaited))
        .with(Implementation::gpu("ptx-jit", Wall, gpu::ptx_jit).does(Does::Starts(Phase::PtxJit)).data(Data::Awaited))
        .with(Implementation::gpu("cubin-load", Wall, gpu::cubin_load).does(Does::Starts(Phase::CubinLoad)).data(Data::Awaited))
        .with(Implementation::gpu("first-launch", Wall, gpu::first_launch).does(Does::Starts(Phase::FirstLaunch)).data(Data::Awaited))
        .with(Implementation::gpu("warm-launch", Wall, gpu::warm_launch).does(Does::Starts(Phase::WarmLaunch)).data(Data::Awaited))
        .with(Implementation::gpu("first-gemm", Wall, gpu::first_gemm).does(Does::Starts(Phase::FirstGemm)).data(Data::Awaited))
        .with(Implementation::gpu("warm-gemm", Wall, gpu::warm_gemm).does(Does::Starts(Phase::WarmGemm)).data(Data::Awaited))
}
