//! Batched complex Fourier transforms.

use crossover_suite::model::{Library, LinkBytes, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsGated, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::fft::{self, BATCH, Fft, cpu, gpu};

pub(crate) fn group() -> Group<Fft> {
    // A prime, so no algorithm divides it.
    const AWKWARD: u64 = 10_007;
    let at = |exponents: &[u32], and: &[u64]| {
        let powers = exponents.iter().map(|e| 1 << e);
        let full = (3..=20).map(|e| 1 << e).chain([AWKWARD]);
        Sizes::new([64, 1024], powers.chain(and.iter().copied()), full)
            .odd([1, 2, 7, 60, 97, 1000, 1024])
    };
    // The prime only in rows that time nothing but the transform.
    let host_sizes = at(&[6, 10, 14, 18], &[]);
    let sizes = at(&[6, 8, 10, 12, 14, 18], &[AWKWARD]);
    let cufft =
        |name, clock| Implementation::gpu(name, clock, gpu::resident).library(Library::Cufft);

    let flop = |n: f64| 5.0 * n * n.log2() * BATCH as f64;
    Group::new("fft", sizes, Rate::flop(flop), fft::cost)
        .about(
            "64 Fourier transforms",
            "An operation transforms 64 complex f32 signals of N values each, N a power of two or the prime 10,007; a \
             single transform was not measured. From which N on does the GPU win?",
        )
        .axis("N", "N, values of each of 64 signals", Unit::Count)
        .words("the transforms", "kernel")
        .with(
            Implementation::cpu("1-thread", cpu::one_thread)
                .one_thread()
                .reference_only()
                .sizes(at(&[6, 10, 14], &[AWKWARD]).up_to(1024, 1 << 16, 1 << 18)),
        )
        .with(Implementation::cpu("rayon", cpu::rayon).method("one signal per task").sizes(at(&[6, 10, 14, 18], &[])))
        .with(Implementation::cpu("best", cpu::best))
        .with(cufft("cufft", Events))
        .with(cufft("cufft-gated", EventsGated).sizes(at(&[6, 10, 14, 18], &[AWKWARD])))
        .with(cufft("cufft-awaited", Wall).awaited().sizes(at(&[6, 8, 10, 14, 18], &[])))
        .with_transfers(
            gpu::from_host,
            |n| LinkBytes::new((8 * n * BATCH as u64) as f64, (8 * n * BATCH as u64) as f64),
            |row, _| row.library(Library::Cufft).sizes(host_sizes.clone()),
        )
}
