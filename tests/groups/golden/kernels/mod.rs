//! What the compiler makes of the kernels, read from their machine code without a GPU.
//!
//! Needs NVRTC, and nvdisasm for the instructions. Without them the tests say so and pass,
//! unless `CROSSOVER_REQUIRE_NVRTC=1` or `CROSSOVER_REQUIRE_NVDISASM=1`.

pub(super) mod compile;
pub(super) mod occupancy;
pub(super) mod sass;
pub(super) mod table;

use std::sync::OnceLock;

use crossover::device::kernel::{Cubin, Source};
use crossover::device::libraries;
use crossover::device::libraries::NO_NVRTC;
use crossover::machine::CEILINGS;

use crate::suite;

/// The sources of every group and that of the machine's limits, each once.
fn sources() -> Vec<&'static Source> {
    let mut sources: Vec<&Source> = suite::groups()
        .iter()
        .flat_map(|group| group.kernels())
        .copied()
        .chain([&CEILINGS])
        .collect();
    sources.sort_by_key(|source| source.name);
    sources.dedup_by(|a, b| std::ptr::eq(*a, *b));
    sources
}

/// The architecture of the reference results.
const HOPPER: (u32, u32) = (9, 0);

/// Whether NVRTC is there. Where CI asks for it, its absence is a failure.
fn nvrtc() -> bool {
    let there = libraries::nvrtc();
    if !there {
        let required = std::env::var_os("CROSSOVER_REQUIRE_NVRTC").is_some_and(|v| v == "1");
        assert!(
            !required,
            "CROSSOVER_REQUIRE_NVRTC=1, but {NO_NVRTC}; is its folder on LD_LIBRARY_PATH?"
        );
        eprintln!("skipped: {NO_NVRTC}");
    }
    there
}

fn compile(source: &Source, arch: (u32, u32)) -> Cubin {
    source
        .compile(arch)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Every source, compiled once for Hopper.
fn on_hopper() -> &'static [(&'static str, Cubin)] {
    static CUBINS: OnceLock<Vec<(&str, Cubin)>> = OnceLock::new();
    CUBINS.get_or_init(|| {
        let compiled = |source: &'static Source| (source.name, compile(source, HOPPER));
        sources().into_iter().map(compiled).collect()
    })
}

/// A kernel that does everything that [`table`] forbids: it spills, multiplies on a tensor core,
/// and reads and writes four bytes at a time.
const PLANTED: Source = Source {
    name: "planted.cu",
    text: r#"extern "C" __global__ void __launch_bounds__(1024, 2) planted(float *p) {
        float r[64], d[4];
        #pragma unroll
        for (int i = 0; i < 64; i++) r[i] = p[i * 1024 + threadIdx.x];
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                     : "r"(1), "r"(2), "r"(3), "r"(4), "r"(5), "r"(6), "f"(r[0]));
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 64; i++)
            p[i * 1024 + threadIdx.x] = d[i % 4] + r[63 - i] * r[i * 7 % 64];
    }"#,
    options: &[],
    oldest: (8, 0),
};
