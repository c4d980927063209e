//! Sums over all GPUs, by NCCL.

use crossover_suite::model::{Cost, Exchange, Library, Measures, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsGated};
use crossover_suite::timing::Rate;
use crossover_suite::workload::devices::{AllReduce, Results, all_reduce};

pub(crate) fn group() -> Group<AllReduce> {
    let sizes = Sizes::powers_of_two([10, 20, 26], [10, 14, 18, 20, 22, 24, 26, 28, 30], 10..=30)
        .odd([4, 4092, (1 << 20) + 4]);
    let row = |name, clock, results| {
        Implementation::gpu(name, clock, move |gpu, problem| {
            all_reduce(gpu, problem, results)
        })
        .measures(Measures::Exchanges(Exchange::AllReduce))
        .library(Library::Nccl)
    };
    Group::new("all_reduce", sizes, Rate::bytes(|n| n), |_| Cost::default())
        .about(
            "All-reduce",
            "The sum of f32 values over all GPUs, on each of them, by NCCL: what does the smallest cost, and at \
             which rate do large ones run?",
        )
        .axis("size", "size of the values of each GPU", Unit::Bytes)
        .on_several_devices()
        .in_several_processes()
        .no_winner()
        .with(row("in-place", Events, Results::InPlace).method("in place"))
        .with(row("out-of-place", Events, Results::OutOfPlace))
        .with(row("device-time", EventsGated, Results::OutOfPlace))
}
