//! A training step of a multilayer perceptron, from eager to one graph.

use crossover::model::Unit;
use crossover::suite::{Group, Sizes};
use crossover::timing::Rate;
use crossover::workload::mlp_training::{self, Training, cpu, gpu};

use super::networks::Network;

pub(crate) fn group() -> Group<Training> {
    let sizes = Sizes::new([16, 256], [16, 256, 1024], [16, 64, 256, 1024, 4096]).odd([1, 3, 17]);
    let network = Network {
        on_cpu: [cpu::best, cpu::one_thread],
        on_gpu: gpu::step,
        one_thread_sizes: sizes.up_to(16, 16, 1024),
        launch_sizes: sizes.up_to(256, 256, 4096),
        costs: [
            mlp_training::cost_eager,
            mlp_training::cost_bf16,
            mlp_training::cost_transfer,
        ],
    };
    let group = Group::new(
        "mlp_training",
        sizes,
        Rate::elements(),
        mlp_training::cost,
    )
    .about(
        "Training step",
        "A whole training step of a perceptron with 3.1 million parameters: from which batch \
         size on does the GPU win, and how much of the time do launches, memory and arithmetic take?",
    )
    .axis("batch", "batch, inputs per step", Unit::Count)
    .words("the training step", "kernel");
    network.rows(group)
}
