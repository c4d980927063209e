//! A pipeline of 64 small steps: what does the host's waiting between them cost?

use crossover::model::{Data, Launches, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::workload::host_sync::{self, Pipeline, gpu};

pub(crate) fn group() -> Group<Pipeline> {
    let sizes =
        Sizes::powers_of_two([10], [10, 16, 20], (10..=24).step_by(2)).odd([1, 255, 257, 1 << 16]);
    Group::new("host_sync", sizes, None, host_sync::cost)
        .about(
            "Host synchronisation",
            "A pipeline of 64 small steps: what does each wait of the host between them cost?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("the pipeline", "step")
        .with(Implementation::gpu("async", Wall, gpu::asynchronous).data(Data::Awaited))
        .with(
            Implementation::gpu("sync-each", Wall, gpu::sync_each)
                .data(Data::Awaited)
                .launches(Launches::Synchronised),
        )
        .with(
            Implementation::gpu("read-each", Wall, gpu::read_each)
                .data(Data::Awaited)
                .launches(Launches::ReadBack),
        )
        .with(
            Implementation::gpu("hybrid", Wall, gpu::hybrid)
                .data(Data::Awaited)
                .launches(Launches::PartlyOnCpu)
                .cost(host_sync::cost_hybrid),
        )
        .with(
            Implementation::gpu("graph", Wall, gpu::graph)
                .data(Data::Awaited)
                .launches(Launches::Graph),
        )
}
