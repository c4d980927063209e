//! M rows times a 4096 x 4096 matrix: the product that reads more than it computes. From
//! which M on does the GPU win, and does it with the data on the host?

use crossover::model::{Data, Library, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::matmul::skinny::{self, Skinny, cpu, gpu};

pub(crate) fn group() -> Group<Skinny> {
    let sizes = Sizes::powers_of_two([0, 6], [0, 4, 6], 0..=8).odd([1, 2, 7, 16]);
    Group::new(
        "matmul_skinny",
        sizes,
        Rate::flop(|m| 2.0 * m * (skinny::ORDER as f64).powi(2)),
        skinny::cost,
    )
    .about(
        "Skinny matrix product",
        "M rows times a 4096 × 4096 matrix, a product that reads more than it computes: where does the CPU hold out longest?",
    )
    .axis("M", "M, rows of the left matrix", Unit::Count)
    .with(Implementation::cpu("gemm", cpu::gemm))
    .with(Implementation::cpu("columns", cpu::columns).method("a block of columns a thread"))
    .with(Implementation::gpu(
        "cublas",
        Clock::EventsGated,
        gpu::cublas,
    ).library(Library::Cublas))
    // B takes 64 MiB, of which a large L2 cache keeps a good part from one call to the next.
    .with(Implementation::gpu(
        "cublas-cold",
        Clock::EventsCold,
        gpu::cublas,
    ).library(Library::Cublas))
    .with(Implementation::gpu(
        "cublas-eager",
        Clock::Events,
        gpu::cublas,
    ).library(Library::Cublas))
    .with(Implementation::gpu("transfer", Clock::Wall, gpu::transfer).data(Data::Ordinary).library(Library::Cublas).cost(skinny::cost_transfer))
    .with(
        Implementation::gpu("transfer-pinned", Clock::Wall, gpu::transfer_pinned)
.data(Data::Pinned).library(Library::Cublas)
            .cost(skinny::cost_transfer),
    )
}
