//! What the first call pays, phase by phase, each in fresh processes, and what a warm one does.

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::workload::cold_start::{self, ColdStart, gpu};

pub(crate) fn group() -> Group<ColdStart> {
    // A phase has no size; an id has.
    let sizes = Sizes::new([], [1], [1]);
    Group::new("cold_start", sizes, None, cold_start::cost)
        .with(Implementation::gpu("driver-init", Wall, gpu::driver_init))
        .with(Implementation::gpu("context", Wall, gpu::context))
        .with(Implementation::gpu("first-stream", Wall, gpu::first_stream))
        .with(Implementation::gpu("warm-stream", Wall, gpu::warm_stream))
        .with(Implementation::gpu("first-alloc", Wall, gpu::first_alloc))
        .with(Implementation::gpu("warm-alloc", Wall, gpu::warm_alloc))
        .with(Implementation::gpu(
            "nvrtc-compile",
            Wall,
            gpu::nvrtc_compile,
        ))
        .with(Implementation::gpu(
            "warm-nvrtc-compile",
            Wall,
            gpu::warm_nvrtc_compile,
        ))
        .with(Implementation::gpu("ptx-jit", Wall, gpu::ptx_jit))
        .with(Implementation::gpu("cubin-load", Wall, gpu::cubin_load))
        .with(Implementation::gpu("first-launch", Wall, gpu::first_launch))
        .with(Implementation::gpu("warm-launch", Wall, gpu::warm_launch))
        .with(Implementation::gpu("first-gemm", Wall, gpu::first_gemm))
        .with(Implementation::gpu("warm-gemm", Wall, gpu::warm_gemm))
}
