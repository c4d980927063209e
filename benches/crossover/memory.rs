//! Device memory: what does an allocation in the loop cost, and what does keeping it save?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::Wall;
use crossover::workload::memory::{self, Memory, gpu};

pub(crate) fn group() -> Group<Memory> {
    let sizes = Sizes::powers_of_two([12, 26], [12, 26, 32], (12..=32).step_by(2));
    Group::new("memory", sizes, None, memory::cost)
        .with(Implementation::gpu("malloc", Wall, gpu::malloc))
        .with(Implementation::gpu("malloc-async", Wall, gpu::malloc_async))
        .with(Implementation::gpu(
            "malloc-async-kept",
            Wall,
            gpu::malloc_async_kept,
        ))
        .with(Implementation::gpu("reuse", Wall, gpu::reuse))
}
