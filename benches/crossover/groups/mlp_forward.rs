//! The forward pass of a multilayer perceptron, and a wait after each layer.

use crossover::model::Launches::{self, Graph, OneByOne, Synchronised};
use crossover::model::{Library, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::timing::Rate;
use crossover::workload::mlp_training::{Training, forward};

pub(crate) fn group() -> Group<Training> {
    let sizes = Sizes::new([], [256], [16, 64, 256, 1024, 4096]).odd([1, 3, 17]);
    // The training step has the answers.
    let row = |name, launches: Launches| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            forward::forward(gpu, problem, launches)
        })
        .awaited()
        .launches(launches)
        .library(Library::Cublas)
        .no_answer()
    };
    Group::new("mlp_forward", sizes, Rate::elements(), forward::cost)
        .about(
            "Forward pass",
            "The forward pass of the perceptron of the training step: what does it take alone, and what does it \
             cost when the host waits after each layer?",
        )
        .axis("batch", "batch, inputs per pass", Unit::Count)
        .words("the forward pass", "kernel")
        .with(row("eager-awaited", OneByOne).cost(forward::cost_eager))
        .with(
            // It waits after several kernels, which others that synchronise do after each.
            row("sync-each", Synchronised)
                .method("a wait after each layer")
                .cost(forward::cost_eager),
        )
        .with(row("graph-awaited", Graph))
}
