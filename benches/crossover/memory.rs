//! Device memory: what does an allocation in the loop cost, and what does keeping it save?

use crossover::model::Allocator::{Malloc, MallocAsync, MallocAsyncKept, Reuse};
use crossover::model::{Data, Does, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::workload::memory::{self, Memory, gpu};

pub(crate) fn group() -> Group<Memory> {
    let sizes = Sizes::powers_of_two([12, 26], [12, 26, 32], (12..=32).step_by(2))
        .odd([4, 4096, 12_345_676]);
    Group::new("memory", sizes, None, memory::cost)
        .about(
            "Device memory",
            "Allocate, write a word, release, synchronise: what does an allocation in the loop cost?",
        )
        .axis("size", "size of the allocation", Unit::Bytes)
        .with(Implementation::gpu("malloc", Wall, gpu::malloc).data(Data::Awaited).does(Does::Allocates(Malloc)))
        .with(Implementation::gpu("malloc-async", Wall, gpu::malloc_async).data(Data::Awaited).does(Does::Allocates(MallocAsync)))
        .with(Implementation::gpu(
            "malloc-async-kept",
            Wall,
            gpu::malloc_async_kept,
        ).data(Data::Awaited).does(Does::Allocates(MallocAsyncKept)))
        .with(Implementation::gpu("reuse", Wall, gpu::reuse).data(Data::Awaited).does(Does::Allocates(Reuse)))
}
