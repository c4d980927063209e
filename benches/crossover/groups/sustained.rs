//! One product after the other for 20 s without a pause: the rate of the first 100 ms, and the one that is held.

use std::rc::Rc;

use crossover::device::Gpu;
use crossover::model::{Library, Measures, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::matmul::precision::{self, Format};
use crossover::workload::matmul::{self, Matmul};
use crossover::workload::sustained::{self, LONGEST, ORDER, Recording, SHORTEST, Sustained};
use crossover::workload::{Routine, RoutineError};

type Product = fn(&Rc<Gpu>, &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError>;

pub(crate) fn group() -> Group<Sustained> {
    let times = [1, 2, 5, 10, 20, 50, 100, 200].map(|step| step * SHORTEST);
    assert_eq!(times.last(), Some(&LONGEST));
    // Each row takes half a minute, so it is in the profile `full` alone.
    let sizes = Sizes::new([], [], times).odd([1_000_000, 20_000_000]);
    let row = |name, product: Product| {
        let recording = Recording::new(product);
        Implementation::gpu(name, Clock::Events, move |gpu, problem: &Rc<Sustained>| {
            sustained::window(gpu, problem, &recording)
        })
        .does(Measures::Sustains)
        .library(Library::Cublas)
    };
    Group::new(
        "sustained",
        sizes,
        Rate::flop(|_| 2.0 * (ORDER as f64).powi(3)),
        |_| matmul::cost(ORDER),
    )
    .about(
        "Sustained load",
        "One matrix product after the other for 20 s, beginning on an idle device: which rate does it reach at \
         first, which does it hold, and at how many watts?",
    )
    .axis("t", "t, time since the product began", Unit::Time)
    .words("the product", "kernel")
    .no_winner()
    .with(row("f32", matmul::gpu::cublas))
    .with(
        row("fp16", |gpu, problem| precision::product(gpu, problem, Format::Fp16))
            .format(Format::Fp16)
            .cost(|_| precision::cost_half(ORDER)),
    )
    .with(
        row("fp8", |gpu, problem| precision::product(gpu, problem, Format::Fp8))
            .format(Format::Fp8)
            .cost(|_| precision::cost_quarter(ORDER)),
    )
}
