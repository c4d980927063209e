//! Nested sine end to end from host memory, in pieces: what does overlapping save, and into how
//! many pieces should the work be cut?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::streams::{self, Streams, gpu};

pub(crate) fn group() -> Group<Streams> {
    let sizes = Sizes::powers_of_two([16], [16, 22, 28], (16..=28).step_by(2));
    Group::new("streams", sizes, Rate::elements(), streams::cost)
        .with(Implementation::gpu("sequence", Wall, gpu::sequence))
        .with(Implementation::gpu("synced", Wall, gpu::synced))
        .with(Implementation::gpu("chunks-2", Wall, gpu::chunks_2))
        .with(Implementation::gpu("chunks-4", Wall, gpu::chunks_4))
        .with(Implementation::gpu("chunks-8", Wall, gpu::chunks_8))
        .with(Implementation::gpu("chunks-16", Wall, gpu::chunks_16))
        .with(Implementation::gpu("chunks-32", Wall, gpu::chunks_32))
        .with(Implementation::gpu("chunks-64", Wall, gpu::chunks_64))
}
