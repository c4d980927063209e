//! A training step of a multilayer perceptron, from eager to one graph.

use crossover_suite::model::Launches::{self, OneByOne, Synchronised};
use crossover_suite::model::{Format, Library, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::Wall;
use crossover_suite::timing::Rate;
use crossover_suite::workload::mlp_training::{self, Training, cpu, gpu};

use super::networks::Network;

pub(crate) fn group() -> Group<Training> {
    let sizes = Sizes::new([16, 256], [16, 256, 1024], [16, 64, 256, 1024, 4096]).odd([1, 3, 17]);
    let network = Network {
        on_cpu: cpu::best,
        on_gpu: gpu::step,
        one_thread_sizes: sizes.up_to(16, 16, 1024),
        launch_sizes: sizes.up_to(256, 256, 4096),
        cost: mlp_training::cost,
        link_bytes: mlp_training::link_bytes,
    };
    let group = Group::new(
        "mlp_training",
        sizes,
        Rate::inputs(),
        |batch| mlp_training::cost(batch, Format::F32, true),
    )
    .about(
        "Training step",
        "A whole training step of a perceptron with 3.1 million parameters: from which batch \
         size on does the GPU win, and how much of the time do launches, memory and arithmetic take?",
    )
    .axis("batch", "batch, inputs per step", Unit::Count)
    .words("the training step", "kernel");
    let forward = |name, method, launches: Launches| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            gpu::forward(gpu, problem, launches)
        })
        .awaited()
        .launches(launches)
        .method(method)
        .library(Library::Cublas)
        .reference_only()
        .cost(mlp_training::cost_forward)
        .sizes(Sizes::new([], [256], [16, 64, 256, 1024, 4096]))
    };
    // This row waits after several kernels, other synchronising rows after each.
    let awaited = "forward pass, a wait after each layer";
    (network.rows(group))
        .with(forward("forward-eager-awaited", "forward pass", OneByOne))
        .with(forward("forward-sync-each", awaited, Synchronised))
}
