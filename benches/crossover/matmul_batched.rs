//! 64 small products at once: where does a GPU win that no single one of them would fill?

use crossover::model::{Data, Library, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::matmul::batched::{self, Batched, cpu, gpu};

pub(crate) fn group() -> Group<Batched> {
    let sizes = Sizes::powers_of_two([6, 8], 6..=9, 3..=10).odd([1, 3, 8, 17, 100]);
    Group::new(
        "matmul_batched",
        sizes,
        Rate::flop(|n| 2.0 * batched::BATCH as f64 * n.powi(3)),
        batched::cost,
    )
    .about(
        "Batched matrix product",
        "64 small f32 products at once: where does a GPU win that no single one of them would fill?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .with(Implementation::cpu("over-batch", cpu::over_batch).method("a product a thread"))
    .with(Implementation::cpu("within", cpu::within).method("all threads in each product"))
    .with(Implementation::gpu(
        "cublas",
        Clock::EventsGated,
        gpu::cublas,
    ).library(Library::Cublas))
    .with(Implementation::gpu(
        "cublas-eager",
        Clock::Events,
        gpu::cublas,
    ).library(Library::Cublas))
    .with(Implementation::gpu("transfer", Clock::Wall, gpu::transfer).data(Data::Ordinary).library(Library::Cublas).cost(batched::cost_transfer))
    .with(
        Implementation::gpu("transfer-pinned", Clock::Wall, gpu::transfer_pinned)
.data(Data::Pinned).library(Library::Cublas)
            .cost(batched::cost_transfer),
    )
}
