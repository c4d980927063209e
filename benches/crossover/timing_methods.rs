//! A kernel of known duration and a matrix product, each timed in six ways: by how much is each
//! way wrong, and where? The id's size is the true time in nanoseconds, or the order N.

use crossover::model::{Data, Does, Library, Phase, Truth, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{Events, EventsCold, EventsGated, Submit, Wall};
use crossover::workload::matmul;
use crossover::workload::timing_methods::{self, Product, Spin, product, spin};

pub(crate) fn spin() -> Group<Spin> {
    let decades = |exponents: &[u32]| exponents.iter().map(|&e| 10u64.pow(e)).collect::<Vec<_>>();
    let default = decades(&[3, 5, 7]);
    let full = decades(&[3, 4, 5, 6, 7, 8]);
    let sizes = Sizes::new(decades(&[3, 6]), default.clone(), full.clone()).odd([1_000, 12_345]);
    // Eleven processes a size.
    let first_sizes = Sizes::new([], default, full);
    Group::new("timing_methods", sizes, None, timing_methods::cost)
        .about(
            "Timing a known kernel",
            "A kernel that spins for a known time, timed in six ways: by how much is each wrong, and \
             where?",
        )
        .axis("t", "t, true time on the device", Unit::Time)
        .words("a kernel of known duration", "kernel")
        .truth(Truth::Size)
        .with(Implementation::gpu("spin-submit", Submit, spin::enqueued))
        .with(Implementation::gpu("spin-wall", Wall, spin::waited).data(Data::Awaited))
        .with(Implementation::gpu("spin-first-call", Wall, spin::first_call).data(Data::Awaited).does(Does::Starts(Phase::FirstCall)).sizes(first_sizes))
        .with(Implementation::gpu("spin-events", Events, spin::enqueued))
        .with(Implementation::gpu(
            "spin-events-gated",
            EventsGated,
            spin::enqueued,
        ))
        .with(Implementation::gpu(
            "spin-events-cold",
            EventsCold,
            spin::enqueued,
        ))
}

pub(crate) fn product() -> Group<Product> {
    let sizes = Sizes::powers_of_two([8], [6, 10, 12], 6..=14).odd([1, 64, 513]);
    let first_sizes = Sizes::powers_of_two([], [10], [6, 10, 12, 14]);
    Group::new("timing_methods_matmul", sizes, None, matmul::cost)
        .about(
            "Timing a matrix product",
            "One cuBLAS product, timed in the same six ways: what does each add to the device's time, or \
             leave out?",
        )
        .axis("N", "N, rows and columns of each matrix", Unit::Count)
        .words("a cuBLAS product", "kernel")
        .truth(Truth::Gated)
        .with(Implementation::gpu("submit", Submit, product::enqueued).library(Library::Cublas))
        .with(Implementation::gpu("wall", Wall, product::waited).data(Data::Awaited).library(Library::Cublas))
        .with(Implementation::gpu("first-call", Wall, product::first_call).data(Data::Awaited).does(Does::Starts(Phase::FirstCall)).library(Library::Cublas).sizes(first_sizes))
        .with(Implementation::gpu("events", Events, product::enqueued).library(Library::Cublas))
        .with(Implementation::gpu(
            "events-gated",
            EventsGated,
            product::enqueued).library(Library::Cublas))
        .with(Implementation::gpu(
            "events-cold",
            EventsCold,
            product::enqueued).library(Library::Cublas))
}
