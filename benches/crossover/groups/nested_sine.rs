//! Four sines on each element: in kernels of their own, fused, and as a graph.

use crossover_suite::model::Launches::{Fused, Graph};
use crossover_suite::model::{LinkBytes, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsGated, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::HostMemory::{Pageable, Pinned};
use crossover_suite::workload::nested_sine::{self, NestedSine, cpu, gpu};

pub(crate) fn group() -> Group<NestedSine> {
    let sizes = Sizes::powers_of_two(
        [10, 14, 18, 20, 22],
        [10, 13, 16, 18, 20, 22, 24, 26, 28],
        10..=32,
    )
    .odd([1, 3, 511, 1000, 1025, (1 << 20) + 1]);
    let per_kernel = |name, clock| {
        Implementation::gpu(name, clock, gpu::per_kernel).cost(nested_sine::cost_per_kernel)
    };
    let fused = |name, clock| Implementation::gpu(name, clock, gpu::fused).launches(Fused);
    let graph = |name, clock| {
        Implementation::gpu(name, clock, gpu::graph)
            .launches(Graph)
            .cost(nested_sine::cost_per_kernel)
    };
    // The four kernels before fusing.
    let unfused_on_device =
        Sizes::powers_of_two([10, 14, 18, 20, 22], [10, 16, 20, 22, 24, 28], 10..=32);
    // Rows that are not answers need no sizes close to the crossover.
    let lesson_sizes = Sizes::powers_of_two([10, 18, 22], [10, 16, 22, 28], 10..=32);
    // The unfused kernels from host memory as well, as tutorials have them.
    let far = [10, 14, 18, 20, 22, 24, 26, 28, 30, 31, 32];
    Group::new("nested_sine", sizes.clone(), Rate::elements(), nested_sine::cost)
        .about(
            "Nested sine",
            "y = sin(sin(sin(sin x))) of f32 elements uniform in [-3, 3): what does it save to fuse four \
             elementwise kernels, and what to replay them as a CUDA graph?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("nested sine", "sine")
        .with(
            Implementation::cpu("std", cpu::std)
                .method("f32::sin")
                .sizes(Sizes::powers_of_two([10, 14, 18], [10, 16], 10..=28)),
        )
        .with(
            Implementation::cpu("simd", cpu::simd)
                .cost(nested_sine::cost_vector)
                .sizes(sizes.up_to(1 << 22, 1 << 26, 1 << 32)),
        )
        .with(
            Implementation::cpu("simd-passes", cpu::in_passes)
                .method("a pass over memory per sine")
                .reference_only()
                .cost(nested_sine::cost_per_kernel)
                .sizes(Sizes::powers_of_two([], [10, 20, 26], far).odd([1, 1000, (1 << 17) + 1])),
        )
        .with(per_kernel("per-kernel", Events).sizes(unfused_on_device.clone()))
        .with(per_kernel("per-kernel-gated", EventsGated).sizes(lesson_sizes.clone()))
        .with(fused("fused", Events))
        .with(fused("fused-awaited", Wall).awaited())
        .with(fused("fused-gated", EventsGated).sizes(lesson_sizes.clone()))
        .with(
            Implementation::gpu("fused-sinf", EventsGated, gpu::fused_sinf)
                .launches(Fused)
                .method("sinf")
                .sizes(lesson_sizes.clone()),
        )
        .with(graph("graph", Events).sizes(unfused_on_device))
        .with(graph("graph-gated", EventsGated).sizes(lesson_sizes))
        .with_transfers(
            gpu::from_host,
            |n| LinkBytes::new(4.0 * n as f64, 4.0 * n as f64),
            |row, memory| {
                let row = row.launches(Fused);
                row.sizes(match memory {
                    Pageable => Sizes::powers_of_two([10, 18, 22], [10, 16, 20, 26], 10..=32),
                    Pinned => sizes.up_to(1 << 22, 1 << 26, 1 << 32),
                })
            },
        )
        .with(
            Implementation::gpu("per-kernel-transfer", Wall, gpu::transfer_per_kernel)
                .data(Pageable)
                .reference_only()
                .cost(nested_sine::cost_transfer_per_kernel)
                .sizes(Sizes::powers_of_two([], [10, 20], far)),
        )
}
