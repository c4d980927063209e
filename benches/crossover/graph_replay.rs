//! A chain of 32 small elementwise kernels: what does the host pay to launch them one by one,
//! to wait after each, and to replay them as one graph?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::graph_replay::{self, Chain, Launching};

pub(crate) fn group() -> Group<Chain> {
    let all = [10, 16, 20];
    let sizes = Sizes::powers_of_two(all, all, all);
    let chain = |name, clock, launching| {
        Implementation::gpu(name, clock, move |gpu, problem| {
            graph_replay::chain(gpu, problem, launching)
        })
    };
    Group::new("graph_replay", sizes, Rate::elements(), graph_replay::cost)
        .with(chain("eager", Clock::Wall, Launching::Eager))
        .with(chain("sync-each", Clock::Wall, Launching::SyncEach))
        .with(chain("graph", Clock::Wall, Launching::Graph))
        .with(chain("eager-events", Clock::Events, Launching::Eager))
        .with(chain("graph-events", Clock::Events, Launching::Graph))
}
