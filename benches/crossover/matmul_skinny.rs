//! M rows times a 4096 x 4096 matrix: the product that reads more than it computes. From
//! which M on does the GPU win, and does it with the data on the host?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::matmul::skinny::{self, Skinny, cpu, gpu};

pub(crate) fn group() -> Group<Skinny> {
    let sizes = Sizes::powers_of_two([0, 6], [0, 4, 6], 0..=8);
    Group::new(
        "matmul_skinny",
        sizes,
        Rate::flop(|m| 2.0 * m * (skinny::ORDER as f64).powi(2)),
        skinny::cost,
    )
    .with(Implementation::cpu("gemm", cpu::gemm))
    .with(Implementation::cpu("columns", cpu::columns))
    .with(Implementation::gpu(
        "cublas",
        Clock::EventsGated,
        gpu::cublas,
    ))
    // B takes 64 MiB, of which a large L2 cache keeps a good part from one call to the next.
    .with(Implementation::gpu(
        "cublas-cold",
        Clock::EventsCold,
        gpu::cublas,
    ))
    .with(Implementation::gpu(
        "cublas-eager",
        Clock::Events,
        gpu::cublas,
    ))
    .with(Implementation::gpu("transfer", Clock::Wall, gpu::transfer).cost(skinny::cost_transfer))
    .with(
        Implementation::gpu("transfer-pinned", Clock::Wall, gpu::transfer_pinned)
            .cost(skinny::cost_transfer),
    )
}
