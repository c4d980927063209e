//! What the compiler makes of the kernels, without a GPU. Without NVRTC the tests that compile are
//! ignored, unless `CROSSOVER_REQUIRE_NVRTC=1`.

pub(super) mod compile;
pub(super) mod table;

use crossover_suite::device::kernel::{Cubin, Source};
use crossover_suite::device::libraries;
use crossover_suite::limits::LIMITS;

use crate::groups;

/// The sources of every group and that of the machine's limits, each once.
fn sources() -> Vec<&'static Source> {
    let mut sources: Vec<&Source> = groups()
        .iter()
        .flat_map(|group| group.kernels())
        .copied()
        .chain([&LIMITS])
        .collect();
    sources.sort_by_key(|source| source.name);
    sources.dedup_by(|a, b| std::ptr::eq(*a, *b));
    sources
}

/// The architecture of the reference results.
const HOPPER: (u32, u32) = (9, 0);

/// Why the tests that compile kernels are ignored, and what to run; `None` where NVRTC is there, or
/// where CI asks for it, so that its absence is a failure.
pub(super) fn nvrtc_is_missing() -> Option<&'static str> {
    let required = std::env::var_os("CROSSOVER_REQUIRE_NVRTC").is_some_and(|v| v == "1");
    (!required && !libraries::nvrtc()).then_some(
        "The tests that compile kernels are ignored, because NVRTC was not found. To run them:\n\
         python3 -m pip install --no-deps --target target/nvrtc nvidia-cuda-nvrtc==13.0.88 \
         nvidia-cuda-runtime==13.0.96 && export LD_LIBRARY_PATH=$PWD/target/nvrtc/nvidia/cu13/lib",
    )
}

fn compile(source: &Source, arch: (u32, u32)) -> Cubin {
    source
        .compile(arch)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A kernel that spills: it keeps 64 values in 32 registers.
const PLANTED: Source = Source {
    name: "planted.cu",
    text: r#"extern "C" __global__ void __launch_bounds__(1024, 2) planted(float *p) {
        float r[64];
        #pragma unroll
        for (int i = 0; i < 64; i++) r[i] = p[i * 1024 + threadIdx.x];
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 64; i++)
            p[i * 1024 + threadIdx.x] = r[63 - i] * r[i * 7 % 64];
    }"#,
    options: &[],
    oldest: (8, 0),
};
