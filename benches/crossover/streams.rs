//! Nested sine end to end from host memory, in pieces: what does overlapping save, and into how
//! many pieces should the work be cut?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::streams::{self, Streams, Wait};

pub(crate) fn group() -> Group<Streams> {
    let sizes = Sizes::powers_of_two([16], [16, 22, 28], (16..=28).step_by(2));
    let pieces = |name, pieces, wait| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            streams::pieces(gpu, problem, pieces, wait)
        })
    };
    Group::new("streams", sizes, Rate::elements(), streams::cost)
        .with(pieces("sequence", 1, Wait::AtTheEnd))
        .with(pieces("synced", 8, Wait::EachStage))
        .with(pieces("chunks-2", 2, Wait::AtTheEnd))
        .with(pieces("chunks-4", 4, Wait::AtTheEnd))
        .with(pieces("chunks-8", 8, Wait::AtTheEnd))
        .with(pieces("chunks-16", 16, Wait::AtTheEnd))
        .with(pieces("chunks-32", 32, Wait::AtTheEnd))
        .with(pieces("chunks-64", 64, Wait::AtTheEnd))
}
