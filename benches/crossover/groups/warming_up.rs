//! The first calls of a process, one by one, and the preparations before them.

use crossover_suite::model::Launches::{Fused, Graph, OneByOne};
use crossover_suite::model::{Cost, Library, Measures, Phase, Residency, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{self, Submit, Wall};
use crossover_suite::workload::warming_up::{self, CALLS, CalledWork, WarmingUp};

pub(crate) fn group() -> Group<WarmingUp> {
    let sizes = Sizes::new([], [1, 2, 3, CALLS], 1..=CALLS).odd([1, CALLS]);
    let once = Sizes::new([], [1], [1]).odd([1]);
    // A method of its own each, so that no two are taken for the same at work.
    let call = |name, work, clock: Clock| {
        let row = Implementation::gpu(name, clock, move |gpu, problem| {
            warming_up::call(gpu, problem, work, clock == Submit)
        });
        let row = row.measures(Measures::Starts(Phase::EachCall));
        let row = match clock {
            Submit => row,
            _ => row.data(Residency::Awaited),
        };
        match work {
            CalledWork::Chain => row.launches(OneByOne).method("a chain of kernels"),
            CalledWork::Graph => row.launches(Graph).method("the chain as a graph"),
            CalledWork::Fused => row.launches(Fused).method("the chain fused"),
            CalledWork::Product => row.library(Library::Cublas).method("a product"),
        }
    };
    let preparing = |phase: Phase| {
        Implementation::gpu(phase.to_string().leak(), Wall, move |gpu, problem| {
            warming_up::preparing(gpu, problem, phase)
        })
        .measures(Measures::Starts(phase))
        .data(Residency::Awaited)
        .sizes(once.clone())
    };
    Group::new("warming_up", sizes, None, |_| Cost::default())
        .about(
            "Warming up",
            "The first ten calls of a new process, one by one: after how many are they as fast as later ones, \
             and after how many is the cost of compiling, capturing and instantiating recovered?",
        )
        .no_inputs()
        .axis("call", "number of the call in its process", Unit::Count)
        .no_winner()
        .with(call("chain", CalledWork::Chain, Wall))
        .with(call("chain-submit", CalledWork::Chain, Submit))
        .with(call("graph", CalledWork::Graph, Wall))
        .with(call("graph-submit", CalledWork::Graph, Submit))
        .with(call("fused", CalledWork::Fused, Wall))
        .with(call("product", CalledWork::Product, Wall))
        .with(call("product-submit", CalledWork::Product, Submit))
        .with(preparing(Phase::GraphCapture))
        .with(preparing(Phase::GraphInstantiate))
        .with(preparing(Phase::KernelCompile))
}
