//! 64 small products at once: where does a GPU win that no single one of them would fill?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::matmul::batched::{self, Batched, cpu, gpu};

pub(crate) fn group() -> Group<Batched> {
    let sizes = Sizes::powers_of_two([6, 8], 6..=9, 3..=10);
    Group::new(
        "matmul_batched",
        sizes,
        Rate::flop(|n| 2.0 * batched::BATCH as f64 * n.powi(3)),
        batched::cost,
    )
    .with(Implementation::cpu("over-batch", cpu::over_batch))
    .with(Implementation::cpu("within", cpu::within))
    .with(Implementation::gpu(
        "cublas",
        Clock::EventsGated,
        gpu::cublas,
    ))
    .with(Implementation::gpu(
        "cublas-eager",
        Clock::Events,
        gpu::cublas,
    ))
    .with(Implementation::gpu("transfer", Clock::Wall, gpu::transfer).cost(batched::cost_transfer))
    .with(
        Implementation::gpu("transfer-pinned", Clock::Wall, gpu::transfer_pinned)
            .cost(batched::cost_transfer),
    )
}
