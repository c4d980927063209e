//! Copies between two GPUs.

use crossover_suite::model::Exchange::{BothWays, OneWay};
use crossover_suite::model::{Cost, Measures, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::{Clock::EventsGated, Rate};
use crossover_suite::workload::devices::{Path, peer_copy};
use crossover_suite::workload::transfer::Transfer;

pub(crate) fn group() -> Group<Transfer> {
    let sizes = Sizes::powers_of_two([12, 20, 24], [12, 16, 20, 24, 28, 30], 12..=30).odd([
        15,
        4097,
        (1 << 20) + 1,
    ]);
    let copy = |name, way, path| {
        Implementation::gpu(name, EventsGated, move |gpu, problem| {
            peer_copy(gpu, problem, way, path)
        })
        .measures(Measures::Exchanges(way))
    };
    Group::new("peer_copy", sizes, Rate::bytes(|n| n), |_| Cost::default())
        .about(
            "Copies between GPUs",
            "Copies from the memory of one GPU to that of another: what does the smallest cost, and what does the \
             link carry, one way and both?",
        )
        .axis("size", "size of the copy, each way", Unit::Bytes)
        .on_several_devices()
        .no_winner()
        .with(copy("engine", OneWay, Path::Engine))
        .with(copy("engine-both", BothWays, Path::Engine))
        .with(copy("kernel", OneWay, Path::Kernel).method("a kernel"))
        .with(copy("kernel-both", BothWays, Path::Kernel).method("a kernel"))
        .with(copy("host", OneWay, Path::Host).method("through the host"))
}
