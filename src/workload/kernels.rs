//! The kernel sources, each one file of `kernels/`. What stands here is compiled by the
//! tests for every architecture it claims.

use super::{cold_start, graph_replay, host_sync, loader, matmul, nested_sine, transfer};
use crate::device::kernel::Source;

/// Kernels of known duration: `empty()`, `spin(unsigned long long nanoseconds)`, and
/// `spin_timed(unsigned long long nanoseconds, unsigned long long *spun)`, each for a grid of
/// one block of one thread.
pub static SPIN: Source = Source {
    name: "spin.cu",
    text: include_str!("../../kernels/spin.cu"),
    options: &[],
    oldest: (7, 5),
};

/// Every source.
pub static ALL: &[&Source] = &[
    &SPIN,
    &cold_start::COLD_START,
    &graph_replay::CHAIN,
    &host_sync::HOST_SYNC,
    &loader::LOADER,
    &matmul::gpu::MATMUL,
    &matmul::precision::PRECISION,
    &nested_sine::NESTED_SINE,
    &transfer::TRANSFER,
];
