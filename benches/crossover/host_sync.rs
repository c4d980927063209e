//! A pipeline of 64 small steps: what does the host's waiting between them cost?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::workload::host_sync::{self, Pipeline, Wait};

pub(crate) fn group() -> Group<Pipeline> {
    let sizes = Sizes::powers_of_two([10], [10, 16, 20], (10..=24).step_by(2));
    let row = |name, wait| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            host_sync::pipeline(gpu, problem, wait)
        })
    };
    Group::new("host_sync", sizes, None, host_sync::cost)
        .with(row("async", Wait::Never))
        .with(row("sync-each", Wait::EachStep))
        .with(row("read-each", Wait::ReadEachStep))
        .with(row("hybrid", Wait::CpuSteps).cost(host_sync::cost_hybrid))
        .with(row("graph", Wait::Graph))
}
