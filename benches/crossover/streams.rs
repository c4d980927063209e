//! Nested sine end to end from host memory, in pieces: what does overlapping save, and into how
//! many pieces should the work be cut?

use crossover::model::{Data, Launches, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::streams::{self, Streams, gpu};

pub(crate) fn group() -> Group<Streams> {
    let sizes = Sizes::powers_of_two([16], [16, 22, 28], (16..=28).step_by(2)).odd([
        1,
        1000,
        1025,
        8 * 1024 + 3,
        (1 << 20) + 1,
    ]);
    Group::new("streams", sizes, Rate::elements(), streams::cost)
        .about(
            "Streams and overlap",
            "Nested sine from and to pinned host memory, in pieces: what does overlapping copies and \
             kernels save, and how many pieces should there be?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("nested sine from host memory", "kernel")
        .with(Implementation::gpu("sequence", Wall, gpu::sequence).data(Data::Pinned))
        .with(Implementation::gpu("synced", Wall, gpu::synced).data(Data::Pinned).pieces(8).launches(Launches::Synchronised))
        .with(Implementation::gpu("chunks-2", Wall, gpu::chunks_2).data(Data::Pinned).pieces(2))
        .with(Implementation::gpu("chunks-4", Wall, gpu::chunks_4).data(Data::Pinned).pieces(4))
        .with(Implementation::gpu("chunks-8", Wall, gpu::chunks_8).data(Data::Pinned).pieces(8))
        .with(Implementation::gpu("chunks-16", Wall, gpu::chunks_16).data(Data::Pinned).pieces(16))
        .with(Implementation::gpu("chunks-32", Wall, gpu::chunks_32).data(Data::Pinned).pieces(32))
        .with(Implementation::gpu("chunks-64", Wall, gpu::chunks_64).data(Data::Pinned).pieces(64))
}
