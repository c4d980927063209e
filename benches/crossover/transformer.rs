//! Inference with a small transformer, from eager to one graph.

use crossover::model::Unit;
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Rate;
use crossover::workload::transformer::{self, Inference, cpu};

pub(crate) fn group() -> Group<Inference> {
    let sizes = Sizes::powers_of_two([0, 3], 0..=6, 0..=6).odd([1, 3, 5]);
    let one_thread_sizes = sizes.up_to(1, 8, 64);
    Group::new("transformer", sizes, Rate::elements(), transformer::cost)
        .about(
            "Transformer",
            "Four encoder layers over sequences of 128 tokens: from which batch does the GPU win, \
             and how much of it is launching, memory and arithmetic?",
        )
        .axis("batch", "batch, sequences per run", Unit::Count)
        .words("the transformer", "kernel")
        .with(Implementation::cpu("best", cpu::best))
        .with(
            Implementation::cpu("best-1-thread", cpu::one_thread)
                .one_thread()
                .no_answer()
                .sizes(one_thread_sizes),
        )
}
