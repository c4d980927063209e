//! A chain of small kernels: launched one by one, synchronised after each, replayed as one graph.

use crossover::model::Launches::{self, Graph, OneByOne, Synchronised};
use crossover::model::Unit;
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{self, Events, Wall};
use crossover::timing::Rate;
use crossover::workload::graph_replay::{self, Chain};

pub(crate) fn group() -> Group<Chain> {
    let all = [10, 16, 20];
    let sizes = Sizes::powers_of_two(all, all, all).odd([1, 1000, 1025, (1 << 16) + 1]);
    let chain = |name, clock: Clock, launches: Launches| {
        Implementation::gpu(name, clock, move |gpu, problem| {
            graph_replay::chain(gpu, problem, launches)
        })
        .launches(launches)
    };
    Group::new("graph_replay", sizes, Rate::elements(), graph_replay::cost)
        .about(
            "Graph replay",
            "A chain of 32 small elementwise kernels: launched one by one, synchronised after each, or \
             replayed as one CUDA graph?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("the chain", "kernel")
        .with(chain("eager", Wall, OneByOne))
        .with(chain("sync-each", Wall, Synchronised))
        .with(chain("graph", Wall, Graph))
        .with(chain("eager-events", Events, OneByOne))
        .with(chain("graph-events", Events, Graph))
}
