//! The groups, a module for each. `docs/architecture.md` describes what they use.

use crossover_suite::suite::AnyGroup;

mod all_reduce;
mod cold_start;
mod fft;
mod graph_replay;
mod host_sync;
mod loader;
mod matmul;
mod matmul_batched;
mod matmul_devices;
mod matmul_f64;
mod matmul_skinny;
mod memory;
mod mlp_training;
mod nested_sine;
mod networks;
mod peer_copy;
mod precision;
mod product_chain;
mod reduction;
mod shaped;
mod streams;
mod timing_methods;
mod transfer;
mod transformer;
mod warming_up;

/// In the order in which they run. `tests/groups` verifies them.
pub(crate) fn all() -> Vec<AnyGroup> {
    let groups: Vec<AnyGroup> = vec![
        matmul::group().into(),
        matmul_batched::group().into(),
        matmul_skinny::group().into(),
        matmul_f64::group().into(),
        precision::group().into(),
        nested_sine::group().into(),
        reduction::group().into(),
        fft::group().into(),
        mlp_training::group().into(),
        transformer::group().into(),
        graph_replay::group().into(),
        cold_start::group().into(),
        warming_up::group().into(),
        timing_methods::group().into(),
        transfer::group().into(),
        streams::group().into(),
        loader::group().into(),
        host_sync::group().into(),
        product_chain::group().into(),
        memory::group().into(),
        // A second device that was opened stays open for the rest of the run.
        peer_copy::group().into(),
        all_reduce::group().into(),
        matmul_devices::group().into(),
    ];
    let groups = groups.into_iter();
    groups.map(AnyGroup::verified_by_tests).collect()
}
