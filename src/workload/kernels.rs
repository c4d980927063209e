//! The kernel sources, each one file of `kernels/`. What stands here is compiled by the
//! tests for every architecture it claims.

use crate::device::kernel::Source;
use crate::workload::{
    cold_start, graph_replay, host_sync, loader, matmul, nested_sine, timing_methods, transfer,
};

/// Every source.
pub static ALL: &[&Source] = &[
    &timing_methods::SPIN,
    &cold_start::COLD_START,
    &graph_replay::CHAIN,
    &host_sync::HOST_SYNC,
    &loader::LOADER,
    &matmul::gpu::MATMUL,
    &matmul::precision::PRECISION,
    &nested_sine::NESTED_SINE,
    &transfer::TRANSFER,
];
