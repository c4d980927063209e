//! A kernel of known duration and a matrix product, each timed in six ways. The id's size is the
//! true time in nanoseconds, or the order N.

use std::rc::Rc;

use crossover::model::{Library, Measures, Phase, Residency, Truth, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{Events, EventsCold, EventsGated, Submit, Wall};
use crossover::workload::matmul;
use crossover::workload::timing_methods::{self, Product, Spin};

pub(crate) fn spin() -> Group<Spin> {
    let decades = |exponents: &[u32]| exponents.iter().map(|&e| 10u64.pow(e)).collect::<Vec<_>>();
    let default = decades(&[3, 6]);
    let full = decades(&[3, 4, 5, 6, 7, 8]);
    let sizes = Sizes::new(default.clone(), default, full.clone()).odd([1_000, 12_345]);
    // Each size starts eleven processes, and a first call takes the same more at each.
    let first_sizes = Sizes::new([], decades(&[3]), full);
    let spin = timing_methods::spin;
    let on = |name, clock| Implementation::gpu(name, clock, spin);
    Group::new("timing_methods", sizes, None, timing_methods::cost)
        .about(
            "Timing a known kernel",
            "A kernel that spins for a known time, timed in six ways: by how much is each way \
             wrong, and at which durations?",
        )
        .axis("t", "t, true time on the device", Unit::Time)
        .words("a kernel of known duration", "kernel")
        .truth(Truth::Size)
        .with(on("spin-submit", Submit))
        .with(on("spin-wall", Wall).awaited())
        .with(
            Implementation::gpu("spin-first-call", Wall, timing_methods::first_spin)
                .does(Measures::Starts(Phase::FirstCall))
                .data(Residency::Awaited)
                .sizes(first_sizes),
        )
        .with(on("spin-events", Events))
        .with(on("spin-events-gated", EventsGated))
        .with(on("spin-events-cold", EventsCold))
}

pub(crate) fn product() -> Group<Product> {
    let sizes = Sizes::powers_of_two([8], [6, 10, 13], 6..=14).odd([1, 64, 513]);
    let first_sizes = Sizes::powers_of_two([], [10], [6, 10, 12, 14]);
    let product = |gpu: &_, problem: &Rc<Product>| matmul::gpu::cublas(gpu, problem.matmul());
    let on = |name, clock| Implementation::gpu(name, clock, product).library(Library::Cublas);
    Group::new("timing_methods_matmul", sizes, None, matmul::cost)
        .about(
            "Timing a matrix product",
            "One cuBLAS product, timed in the same six ways: what does each way add to the device's \
             time, or leave out of it?",
        )
        .axis("N", "N, rows and columns of each matrix", Unit::Count)
        .words("a cuBLAS product", "kernel")
        .truth(Truth::Gated)
        .with(on("submit", Submit))
        .with(on("wall", Wall).awaited())
        .with(
            Implementation::gpu("first-call", Wall, timing_methods::first_product)
                .does(Measures::Starts(Phase::FirstCall))
                .data(Residency::Awaited)
                .library(Library::Cublas)
                .sizes(first_sizes),
        )
        .with(on("events", Events))
        .with(on("events-gated", EventsGated))
        .with(on("events-cold", EventsCold))
}
