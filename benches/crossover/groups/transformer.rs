//! Inference with a small transformer, from eager to one graph.

use crossover_suite::model::{Format, Unit};
use crossover_suite::suite::{Group, Sizes};
use crossover_suite::timing::Rate;
use crossover_suite::workload::transformer::{self, Inference, cpu, gpu};

use super::networks::Network;

pub(crate) fn group() -> Group<Inference> {
    let sizes = Sizes::powers_of_two([0, 3], [0, 3, 5], 0..=6).odd([1, 3]);
    let network = Network {
        on_cpu: cpu::best,
        on_gpu: gpu::pass,
        one_thread_sizes: sizes.up_to(1, 1, 64),
        launch_sizes: sizes.up_to(8, 8, 64),
        cost: transformer::cost,
        link_bytes: transformer::link_bytes,
    };
    let group = Group::new("transformer", sizes, Rate::inputs(), |batch| {
        transformer::cost(batch, Format::F32, true)
    })
    .about(
        "Transformer",
        "Inference with four encoder layers over sequences of 128 tokens: from which batch size on \
             does the GPU win, and how much of the time do launches, memory and arithmetic take?",
    )
    .axis("batch", "batch, sequences per run", Unit::Count)
    .words("the transformer", "kernel");
    network.rows(group)
}
