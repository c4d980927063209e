//! Four sines on each element in float64, fused.

use crossover::model::Launches::Fused;
use crossover::model::{Format, LinkBytes, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{Events, EventsGated, Wall};
use crossover::timing::Rate;
use crossover::workload::nested_sine::{self, NestedSine, cpu, gpu};

type F64Row = Implementation<NestedSine<f64>>;

pub(crate) fn group() -> Group<NestedSine<f64>> {
    let odd = [1, 3, 511, 1000, 1025, (1 << 20) + 1];
    let sizes = Sizes::powers_of_two([10, 18, 20], [10, 14, 18, 22, 26], 10..=31).odd(odd);
    let lesson_sizes = Sizes::powers_of_two([18], [10, 18, 26], 10..=31).odd(odd);
    let host_sizes = Sizes::powers_of_two([18], [10, 18, 24], 10..=31).odd(odd);
    let on_cpu = |row: F64Row| row.format(Format::F64);
    let fused = |name, clock| on_gpu(Implementation::gpu(name, clock, gpu::fused));

    Group::new("nested_sine_f64", sizes.clone(), Rate::elements(), nested_sine::cost_vector_f64)
        .about(
            "Nested sine in f64",
            "y = sin(sin(sin(sin x))) of f64 elements uniform in [-3, 3), fused: from which n on does the GPU win, whose \
             rate in f64 may be half of that in f32, or 1/64?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("nested sine", "sine")
        .with(
            on_cpu(Implementation::cpu("std", cpu::std))
                .method("f64::sin")
                .cost(nested_sine::cost_f64)
                .sizes(sizes.up_to(1 << 18, 1 << 18, 1 << 26)),
        )
        .with(on_cpu(Implementation::cpu("simd", cpu::simd)).sizes(sizes.up_to(1 << 20, 1 << 26, 1 << 30)))
        .with(
            on_cpu(Implementation::cpu("simd-1-thread", cpu::simd_1_thread))
                .one_thread()
                .reference_only()
                .sizes(lesson_sizes.up_to(1 << 18, 1 << 18, 1 << 26)),
        )
        .with(fused("fused", Events))
        .with(fused("fused-gated", EventsGated).sizes(lesson_sizes.clone()))
        .with(fused("fused-awaited", Wall).awaited())
        .with_transfers(
            gpu::from_host,
            |n| LinkBytes::new(8.0 * n as f64, 8.0 * n as f64),
            |row, _| on_gpu(row).sizes(host_sizes.clone()),
        )
}

/// By the fused kernel.
fn on_gpu(row: F64Row) -> F64Row {
    row.format(Format::F64).launches(Fused)
}
