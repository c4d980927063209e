//! Device memory: an allocation in the loop, and one that is kept.

use crossover_suite::model::Allocator::{Malloc, MallocAsync, MallocAsyncKept, Reuse};
use crossover_suite::model::{Cost, Measures, Residency, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::Wall;
use crossover_suite::workload::memory::{self, Memory};

pub(crate) fn group() -> Group<Memory> {
    let sizes = Sizes::powers_of_two([12, 26], [12, 26, 32], (12..=32).step_by(2))
        .odd([4, 4096, 12_345_676]);
    let row = |name, allocator| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            memory::allocation(gpu, problem, allocator)
        })
        .measures(Measures::Allocates(allocator))
        .data(Residency::Awaited)
    };
    Group::new("memory", sizes, None, |_| Cost::default())
        .about(
            "Device memory",
            "Allocate device memory, write a word, free it, synchronise: what does it cost to do so in each iteration?",
        )
        .no_inputs()
        .axis("size", "size of the allocation", Unit::Bytes)
        .with(row("malloc", Malloc))
        .with(row("malloc-async", MallocAsync))
        .with(row("malloc-async-kept", MallocAsyncKept))
        .with(row("reuse", Reuse))
}
