//! A chain of 32 small elementwise kernels: what does the host pay to launch them one by one,
//! to wait after each, and to replay them as one graph?

use crossover::model::Launches::{Graph, Synchronised};
use crossover::model::Unit;
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::graph_replay::{self, Chain, gpu};

pub(crate) fn group() -> Group<Chain> {
    let all = [10, 16, 20];
    let sizes = Sizes::powers_of_two(all, all, all).odd([1, 1000, 1025, (1 << 16) + 1]);
    Group::new("graph_replay", sizes, Rate::elements(), graph_replay::cost)
        .about(
            "Graph replay",
            "A chain of 32 small elementwise kernels: launched one by one, synchronised after each, or \
             replayed as one CUDA graph?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("the chain", "kernel")
        .with(Implementation::gpu("eager", Clock::Wall, gpu::eager))
        .with(Implementation::gpu(
            "sync-each",
            Clock::Wall,
            gpu::sync_each,
        ).launches(Synchronised))
        .with(Implementation::gpu("graph", Clock::Wall, gpu::graph).launches(Graph))
        .with(Implementation::gpu(
            "eager-events",
            Clock::Events,
            gpu::eager,
        ))
        .with(Implementation::gpu(
            "graph-events",
            Clock::Events,
            gpu::graph,
        ).launches(Graph))
}
