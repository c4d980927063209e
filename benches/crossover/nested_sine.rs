//! y = sin(sin(sin(sin x))): what does fusing four elementwise kernels into one save, and what
//! does replaying them as a graph?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::HostMemory;
use crossover::workload::nested_sine::{self, NestedSine, cpu, gpu};

pub(crate) fn group() -> Group<NestedSine> {
    let sizes = Sizes::powers_of_two(
        [10, 14, 18, 20, 22],
        [10, 13, 16, 18, 20, 22, 24, 26, 28],
        10..=32,
    );
    let std_sizes = sizes.up_to(1 << 18, 1 << 22, 1 << 28);
    let simd_sizes = sizes.up_to(1 << 22, 1 << 26, 1 << 32);
    let copied_sizes = sizes.up_to(1 << 22, 1 << 28, 1 << 32);
    let four = nested_sine::cost_per_kernel;
    let copied = nested_sine::cost_transfer;
    let transfer = |memory| move |gpu: &_, problem: &_| gpu::transfer(gpu, problem, memory);
    use Clock::{Events, EventsGated, Wall};

    Group::new("nested_sine", sizes, Rate::elements(), nested_sine::cost)
        .with(Implementation::cpu("std", cpu::std).sizes(std_sizes))
        .with(
            Implementation::cpu("simd", cpu::simd)
                .cost(nested_sine::cost_vector)
                .sizes(simd_sizes),
        )
        .with(Implementation::gpu("per-kernel", Events, gpu::per_kernel).cost(four))
        .with(Implementation::gpu("per-kernel-gated", EventsGated, gpu::per_kernel).cost(four))
        .with(Implementation::gpu("fused", Events, gpu::fused))
        .with(Implementation::gpu("fused-gated", EventsGated, gpu::fused))
        .with(Implementation::gpu(
            "fused-sinf",
            EventsGated,
            gpu::fused_sinf,
        ))
        .with(Implementation::gpu(
            "fused-fast",
            EventsGated,
            gpu::fused_fast,
        ))
        .with(Implementation::gpu("graph", Events, gpu::graph).cost(four))
        .with(Implementation::gpu("graph-gated", EventsGated, gpu::graph).cost(four))
        .with(
            Implementation::gpu("transfer", Wall, transfer(HostMemory::Pageable))
                .cost(copied)
                .sizes(copied_sizes.clone()),
        )
        .with(
            Implementation::gpu("transfer-pinned", Wall, transfer(HostMemory::Pinned))
                .cost(copied)
                .sizes(copied_sizes),
        )
}
