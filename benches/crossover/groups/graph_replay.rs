//! A chain of small kernels: launched one by one, synchronised after each, replayed as one graph,
//! fused into one kernel.

use crossover_suite::model::Launches::{self, Fused, Graph, OneByOne, Synchronised};
use crossover_suite::model::Unit;
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{self, Events, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::graph_replay::{self, Chain};

pub(crate) fn group() -> Group<Chain> {
    let exponents = [10, 16, 20];
    let sizes =
        Sizes::powers_of_two(exponents, exponents, exponents).odd([1, 1000, 1025, (1 << 16) + 1]);
    let chain = |name, clock: Clock, launches: Launches| {
        Implementation::gpu(name, clock, move |gpu, problem| {
            graph_replay::chain(gpu, problem, launches)
        })
        .launches(launches)
    };
    let ends = Sizes::powers_of_two([10, 20], [10, 20], exponents);
    let fused = |name, clock| {
        chain(name, clock, Fused)
            .cost(graph_replay::cost_fused)
            .sizes(ends.clone())
    };
    Group::new("graph_replay", sizes, Rate::elements(), graph_replay::cost)
        .about(
            "Graph replay",
            "A chain of 32 small elementwise kernels: how long does it take launched one by one, \
             synchronised after each kernel, replayed as one CUDA graph, and fused into one kernel?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("the chain", "kernel")
        .with(chain("eager", Wall, OneByOne))
        .with(chain("sync-each", Wall, Synchronised))
        .with(chain("graph", Wall, Graph))
        .with(fused("fused", Wall))
        .with(chain("eager-events", Events, OneByOne))
        .with(chain("graph-events", Events, Graph))
        .with(fused("fused-events", Events))
}
