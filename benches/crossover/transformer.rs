//! Inference with a small transformer, from eager to one graph.

use std::rc::Rc;

use crossover::model::Launches::{Fused, Graph};
use crossover::model::{Launches, Library, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{self, Events, EventsGated, Wall};
use crossover::timing::Rate;
use crossover::workload::HostMemory;
use crossover::workload::transformer::{self, Format, Inference, cpu, gpu};

pub(crate) fn group() -> Group<Inference> {
    let sizes = Sizes::powers_of_two([0, 3], [0, 3, 5], 0..=6).odd([1, 3, 5]);
    let one_thread_sizes = sizes.up_to(1, 1, 64);
    // Where launches count: a large batch hardly tells these apart.
    let launch_sizes = sizes.up_to(8, 8, 64);
    let eager = |name, clock| {
        Implementation::gpu(name, clock, gpu::eager)
            .library(Library::Cublas)
            .cost(transformer::cost_eager)
    };
    let transfer = |name, memory| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            gpu::transfer(gpu, problem, memory)
        })
        .data(memory)
        .launches(Graph)
        .library(Library::Cublas)
        .cost(transformer::cost_transfer)
    };
    Group::new("transformer", sizes, Rate::elements(), transformer::cost)
        .about(
            "Transformer",
            "Inference with four encoder layers over sequences of 128 tokens: from which batch size on \
             does the GPU win, and how much of the time do launches, memory and arithmetic take?",
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
        .with(eager("eager", Events))
        .with(eager("eager-gated", EventsGated).sizes(launch_sizes.clone()))
        .with(eager("eager-awaited", Wall).awaited())
        .with(few("fused", Events, Format::F32, Fused).sizes(launch_sizes.clone()))
        .with(few("fused-gated", EventsGated, Format::F32, Fused).sizes(launch_sizes))
        .with(few("graph", Events, Format::F32, Graph))
        .with(few("graph-gated", EventsGated, Format::F32, Graph))
        .with(few("graph-awaited", Wall, Format::F32, Graph).awaited())
        .with(narrow("graph-tf32-gated", Format::Tf32))
        .with(narrow("graph-bf16-gated", Format::Bf16).cost(transformer::cost_bf16))
        .with(transfer("transfer", HostMemory::Pageable))
        .with(transfer("transfer-pinned", HostMemory::Pinned))
}

/// In few kernels.
fn few(
    name: &'static str,
    clock: Clock,
    format: Format,
    launches: Launches,
) -> Implementation<Inference> {
    Implementation::gpu(name, clock, move |gpu, problem: &Rc<Inference>| {
        gpu::fused(gpu, problem, format, launches)
    })
    .launches(launches)
    .format(format)
    .library(Library::Cublas)
}

/// The graph in fewer bits than the CPU computes in, so it does not answer who is faster.
fn narrow(name: &'static str, format: Format) -> Implementation<Inference> {
    few(name, EventsGated, format, Graph).no_answer()
}
