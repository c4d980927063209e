//! A training step of a multilayer perceptron, from eager to one graph.

use std::rc::Rc;

use crossover::model::Launches::{Fused, Graph};
use crossover::model::{Launches, Library, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{self, Events, EventsGated, Wall};
use crossover::timing::Rate;
use crossover::workload::HostMemory;
use crossover::workload::mlp_training::{self, Format, Training, cpu, gpu};

pub(crate) fn group() -> Group<Training> {
    let sizes = Sizes::new([16, 256], [16, 256, 1024], [16, 64, 256, 1024, 4096]).odd([1, 3, 17]);
    let one_thread_sizes = sizes.up_to(16, 16, 1024);
    // Where launches count: a large batch hardly tells these apart.
    let launch_sizes = sizes.up_to(256, 256, 4096);
    let eager = |name, clock| {
        Implementation::gpu(name, clock, gpu::eager)
            .library(Library::Cublas)
            .cost(mlp_training::cost_eager)
    };
    let transfer = |name, memory| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            gpu::transfer(gpu, problem, memory)
        })
        .data(memory)
        .launches(Graph)
        .library(Library::Cublas)
        .cost(mlp_training::cost_transfer)
    };
    Group::new(
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
    .words("the training step", "kernel")
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
    .with(step("fused", Events, Format::F32, Fused).sizes(launch_sizes.clone()))
    .with(step("fused-gated", EventsGated, Format::F32, Fused).sizes(launch_sizes))
    .with(step("graph", Events, Format::F32, Graph))
    .with(step("graph-gated", EventsGated, Format::F32, Graph))
    .with(step("graph-awaited", Wall, Format::F32, Graph).awaited())
    .with(narrow("graph-tf32-gated", Format::Tf32))
    .with(narrow("graph-bf16-gated", Format::Bf16).cost(mlp_training::cost_bf16))
    .with(transfer("transfer", HostMemory::Pageable))
    .with(transfer("transfer-pinned", HostMemory::Pinned))
}

/// In few kernels.
fn step(
    name: &'static str,
    clock: Clock,
    format: Format,
    launches: Launches,
) -> Implementation<Training> {
    Implementation::gpu(name, clock, move |gpu, problem: &Rc<Training>| {
        gpu::fused(gpu, problem, format, launches)
    })
    .launches(launches)
    .format(format)
    .library(Library::Cublas)
}

/// The graph in fewer bits than the CPU computes in, so it does not answer who is faster.
fn narrow(name: &'static str, format: Format) -> Implementation<Training> {
    step(name, EventsGated, format, Graph).no_answer()
}
