//! Nested sine from and to host memory, in pieces that overlap.

use crossover_suite::model::Launches::{OneByOne, Synchronised};
use crossover_suite::model::{Residency, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::{Clock::Wall, Rate};
use crossover_suite::workload::HostMemory::{Pageable, Pinned};
use crossover_suite::workload::nested_sine::{NestedSine, cost_transfer};
use crossover_suite::workload::streams::{self, STREAMS};

pub(crate) fn group() -> Group<NestedSine> {
    let sizes = Sizes::powers_of_two([16], [16, 22, 26], (16..=28).step_by(2)).odd([
        1,
        1000,
        1025,
        8 * 1024 + 3,
        (1 << 20) + 1,
    ]);
    let from = |memory, name, pieces, launches| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            streams::pieces(gpu, problem, memory, pieces, launches)
        })
        .pieces(pieces)
        .kernels(pieces)
        .launches(launches)
        .data(memory)
    };
    let pieces = |name, pieces, launches| from(Pinned, name, pieces, launches);
    let large = Sizes::powers_of_two([], [22], (16..=28).step_by(2));
    let ordinary = |name, pieces| from(Pageable, name, pieces, OneByOne).sizes(large.clone());
    let a_stream_each = |name, launches| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            streams::a_stream_each(gpu, problem, launches)
        })
        .pieces(STREAMS)
        .kernels(STREAMS)
        .launches(launches)
        .data(Residency::Pinned)
        .method("a stream for each piece")
        .sizes(large.clone())
    };
    Group::new("streams", sizes, Rate::elements(), cost_transfer)
        .about(
            "Streams and overlap",
            "Nested sine from and to host memory, in pieces: what does it save to overlap copies and kernels, \
             how many pieces are best, and what is needed for it?",
        )
        .axis("n", "n, elements", Unit::Count)
        .words("nested sine from host memory", "kernel")
        .with(pieces("sequence", 1, OneByOne))
        .with(pieces("synced", 8, Synchronised))
        .with(pieces("chunks-2", 2, OneByOne))
        .with(pieces("chunks-4", 4, OneByOne))
        .with(pieces("chunks-8", 8, OneByOne))
        .with(pieces("chunks-16", 16, OneByOne))
        .with(pieces("chunks-32", 32, OneByOne))
        .with(pieces("chunks-64", 64, OneByOne))
        .with(pieces("sequence-synced", 1, Synchronised).sizes(large.clone()))
        .with(a_stream_each("streams-3", OneByOne))
        .with(a_stream_each("streams-3-awaited", Synchronised))
        .with(ordinary("sequence-ordinary", 1))
        .with(
            Implementation::gpu("sequence-ordinary-wait", Wall, |gpu, problem| {
                streams::awaited_before_download(gpu, problem, Pageable)
            })
            .data(Pageable)
            .method("a wait before the download")
            .sizes(large.clone()),
        )
        .with(ordinary("chunks-8-ordinary", 8))
}
