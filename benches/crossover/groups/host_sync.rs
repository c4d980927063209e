//! A pipeline of small steps, and the host waiting between them.

use crossover_suite::model::{Launches, Residency, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::Wall;
use crossover_suite::workload::host_sync::{self, Pipeline};

pub(crate) fn group() -> Group<Pipeline> {
    let sizes =
        Sizes::powers_of_two([10], [10, 16, 20], (10..=24).step_by(2)).odd([1, 255, 257, 1 << 16]);
    let row = |name, launches| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            host_sync::pipeline(gpu, problem, launches)
        })
        .launches(launches)
        .data(Residency::Awaited)
    };
    Group::new("host_sync", sizes, None, host_sync::cost)
        .about(
            "Host synchronisation",
            "A pipeline of 64 small steps: what does it cost when the host waits between them?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("the pipeline", "step")
        .with(row("async", Launches::OneByOne))
        .with(row("sync-each", Launches::Synchronised))
        .with(row("read-each", Launches::ReadBack))
        .with(row("hybrid", Launches::PartlyOnCpu).cost(host_sync::cost_hybrid))
        .with(row("graph", Launches::Graph))
}
