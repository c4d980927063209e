//! The sum of n f32.

use crossover_suite::model::Launches::{Fused, OneByOne};
use crossover_suite::model::{LinkBytes, Residency, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsGated, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::reduction::gpu::{self, BlockSum};
use crossover_suite::workload::reduction::{self, Sum, cpu};

pub(crate) fn group() -> Group<Sum> {
    let odd = [1, 3, 127, 1000, 4099, 65_537, (1 << 20) + 1];
    // At 2^28 only device time is measured: launches and the last block hardly matter there.
    let answer_sizes = [10, 12, 14, 16, 18, 22, 26, 28];
    let sizes = Sizes::powers_of_two([12, 20], answer_sizes, 10..=30).odd(odd);
    // The ways to add the blocks' sums differ only if there are few blocks.
    let lesson_sizes = Sizes::powers_of_two([12, 20], [10, 16, 22, 28], 10..=30).odd(odd);
    let host_sizes = Sizes::powers_of_two([12, 20], [10, 14, 18, 22, 26], 10..=30).odd(odd);
    let resident = |name, clock, joined| {
        Implementation::gpu(name, clock, move |gpu, sum| {
            // Where the host waits for the sum, it reads it.
            gpu::resident(gpu, sum, joined, clock == Wall)
        })
        .launches(match joined {
            BlockSum::BySecondKernel => OneByOne,
            _ => Fused,
        })
    };

    Group::new("reduction", sizes.clone(), Rate::bytes(|n| 4.0 * n), reduction::cost)
        .about(
            "Sum",
            "The sum of n f32, one addition for every four bytes, whose result the host reads: from which n on does \
             the GPU win, and how are the sums of its blocks best combined?",
        )
        .axis("n", "n, terms", Unit::Count)
        .words("the sum", "kernel")
        .with(
            Implementation::cpu("loop", cpu::one_by_one)
                .one_thread()
                .method("one by one")
                .sizes(Sizes::powers_of_two([12, 20], [10, 16, 22], 10..=26).odd(odd)),
        )
        .with(Implementation::cpu("rayon", cpu::rayon).method("one by one").sizes(host_sizes.clone()))
        .with(Implementation::cpu("simd", cpu::simd).sizes(sizes.up_to(1 << 20, 1 << 26, 1 << 30)))
        .with(
            resident("two-kernels", Events, BlockSum::BySecondKernel)
                .kernels(2)
                .sizes(lesson_sizes.clone()),
        )
        .with(resident("last-block", Events, BlockSum::ByLastBlock))
        .with(resident("last-block-gated", EventsGated, BlockSum::ByLastBlock).sizes(lesson_sizes))
        .with(resident("last-block-awaited", Wall, BlockSum::ByLastBlock).data(Residency::Awaited))
        .with_transfers(
            gpu::from_host,
            |n| LinkBytes::new(4.0 * n as f64, 4.0),
            |row, _| row.kernels(2).sizes(host_sizes.clone()),
        )
}
