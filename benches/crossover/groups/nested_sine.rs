//! Four sines on each element: in kernels of their own, fused, and as a graph.

use crossover::model::Launches::{Fused, Graph};
use crossover::model::{Residency, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{Events, EventsGated, Wall};
use crossover::timing::Rate;
use crossover::workload::nested_sine::{self, NestedSine, cpu, gpu, unfused};
use crossover::workload::{HostMemory, Transfer};

pub(crate) fn group() -> Group<NestedSine> {
    let sizes = Sizes::powers_of_two(
        [10, 14, 18, 20, 22],
        [10, 13, 16, 18, 20, 22, 24, 26, 28],
        10..=32,
    )
    .odd([1, 3, 511, 1000, 1025, (1 << 20) + 1]);
    let std_sizes = Sizes::powers_of_two([10, 14, 18], [10, 16, 22], 10..=28);
    let simd_sizes = sizes.up_to(1 << 22, 1 << 26, 1 << 32);
    let copied_sizes = sizes.up_to(1 << 22, 1 << 26, 1 << 32);
    let per_kernel = |name, clock| {
        Implementation::gpu(name, clock, gpu::per_kernel).cost(nested_sine::cost_per_kernel)
    };
    let fused = |name, clock| Implementation::gpu(name, clock, gpu::fused).launches(Fused);
    let graph = |name, clock| {
        Implementation::gpu(name, clock, gpu::graph)
            .launches(Graph)
            .cost(nested_sine::cost_per_kernel)
    };
    // What four kernels take that can be one.
    let unfused_on_device =
        Sizes::powers_of_two([10, 14, 18, 20, 22], [10, 16, 20, 22, 24, 28], 10..=32);
    // Rows that are not answers need no sizes close to the crossover.
    let lesson_sizes = Sizes::powers_of_two([10, 18, 22], [10, 16, 22, 28], 10..=32);
    let ordinary_sizes = Sizes::powers_of_two([10, 18, 22], [10, 16, 20, 26], 10..=32);
    let moved = |row: Implementation<NestedSine>, data: Residency| {
        row.data(data)
            .launches(Fused)
            .cost(nested_sine::cost_transfer)
    };

    let from_host = |name, by| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            gpu::from_host(gpu, problem, by)
        })
    };

    // What is not fused, from host memory as well: as tutorials have it, beside what is fair.
    let far = [10, 14, 18, 20, 22, 24, 26, 28, 30, 31, 32];
    let unfused_sizes = Sizes::powers_of_two([], [10, 20], far);
    let passes_sizes = Sizes::powers_of_two([], [10, 20, 26], far).odd([1, 1000, (1 << 17) + 1]);
    let four_kernels = |name, memory| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            unfused::transfer(gpu, problem, memory)
        })
        .data(memory)
        .no_answer()
        .cost(nested_sine::cost_transfer_per_kernel)
        .sizes(unfused_sizes.clone())
    };

    Group::new("nested_sine", sizes, Rate::elements(), nested_sine::cost)
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
                .sizes(std_sizes),
        )
        .with(
            Implementation::cpu("simd", cpu::simd)
                .cost(nested_sine::cost_vector)
                .sizes(simd_sizes),
        )
        .with(
            Implementation::cpu("simd-passes", unfused::cpu)
                .method("a pass over memory per sine")
                .no_answer()
                .cost(nested_sine::cost_per_kernel)
                .sizes(passes_sizes),
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
        .with(
            Implementation::gpu("fused-fast", EventsGated, gpu::fused_fast)
                .launches(Fused)
                .method("__sinf")
                .sizes(lesson_sizes.clone()),
        )
        .with(graph("graph", Events).sizes(unfused_on_device))
        .with(graph("graph-gated", EventsGated).sizes(lesson_sizes))
        .with(
            moved(
                from_host("transfer", Transfer::Plain(HostMemory::Pageable)),
                Residency::Ordinary,
            )
            .sizes(ordinary_sizes.clone()),
        )
        .with(
            moved(
                from_host("transfer-staged", Transfer::Staged),
                Residency::Ordinary,
            )
            .method("staged through pinned memory")
            .sizes(ordinary_sizes)
            .all_threads()
            .no_answer(),
        )
        .with(
            moved(
                from_host("transfer-pinned", Transfer::Pinned),
                Residency::Pinned,
            )
            .sizes(copied_sizes),
        )
        .with(four_kernels("per-kernel-transfer", HostMemory::Pageable))
        .with(four_kernels("per-kernel-transfer-pinned", HostMemory::Pinned))
        .with(
            moved(
                from_host("transfer-pinned-sequence", Transfer::Plain(HostMemory::Pinned)),
                Residency::Pinned,
            )
            .method("one plain copy each way")
            .no_answer()
            .sizes(unfused_sizes),
        )
}
