//! Device memory: what does an allocation in the loop cost, and what does keeping it save?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::workload::memory::{self, Allocator, Memory};

pub(crate) fn group() -> Group<Memory> {
    let sizes = Sizes::powers_of_two([12, 26], [12, 26, 32], (12..=32).step_by(2));
    let row = |name, allocator| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            memory::allocation(gpu, problem, allocator)
        })
    };
    Group::new("memory", sizes, None, memory::cost)
        .with(row("malloc", Allocator::Malloc))
        .with(row("malloc-async", Allocator::MallocAsync))
        .with(row("malloc-async-kept", Allocator::MallocAsyncKept))
        .with(row("reuse", Allocator::Reuse))
}
