//! A kernel of known duration and a matrix product, each timed in six ways: by how much is each
//! way wrong, and where? The id's size is the true time in nanoseconds, or the order N.

use std::rc::Rc;

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{Events, EventsCold, EventsGated, Submit, Wall};
use crossover::workload::matmul;
use crossover::workload::timing_methods::{self, Product, Spin};

pub(crate) fn spin() -> Group<Spin> {
    let decades = |exponents: &[u32]| exponents.iter().map(|&e| 10u64.pow(e)).collect::<Vec<_>>();
    let default = decades(&[3, 5, 7]);
    let full = decades(&[3, 4, 5, 6, 7, 8]);
    let sizes = Sizes::new(decades(&[3, 6]), default.clone(), full.clone());
    // Eleven processes a size.
    let first_sizes = Sizes::new([], default, full);
    let spin = timing_methods::spin;
    Group::new("timing_methods", sizes, None, timing_methods::cost)
        .with(Implementation::gpu("spin-submit", Submit, spin))
        .with(Implementation::gpu(
            "spin-wall",
            Wall,
            move |gpu, problem| Ok(timing_methods::waited(gpu, spin(gpu, problem)?)),
        ))
        .with(
            Implementation::gpu("spin-first-call", Wall, timing_methods::first_spin)
                .sizes(first_sizes),
        )
        .with(Implementation::gpu("spin-events", Events, spin))
        .with(Implementation::gpu("spin-events-gated", EventsGated, spin))
        .with(Implementation::gpu("spin-events-cold", EventsCold, spin))
}

pub(crate) fn product() -> Group<Product> {
    let sizes = Sizes::powers_of_two([8], [6, 10, 12], 6..=14);
    let first_sizes = Sizes::powers_of_two([], [10], [6, 10, 12, 14]);
    let product = |gpu: &_, problem: &Rc<Product>| matmul::gpu::cublas(gpu, problem.matmul());
    Group::new("timing_methods_matmul", sizes, None, matmul::cost)
        .with(Implementation::gpu("submit", Submit, product))
        .with(Implementation::gpu("wall", Wall, move |gpu, problem| {
            Ok(timing_methods::waited(gpu, product(gpu, problem)?))
        }))
        .with(
            Implementation::gpu("first-call", Wall, timing_methods::first_product)
                .sizes(first_sizes),
        )
        .with(Implementation::gpu("events", Events, product))
        .with(Implementation::gpu("events-gated", EventsGated, product))
        .with(Implementation::gpu("events-cold", EventsCold, product))
}
