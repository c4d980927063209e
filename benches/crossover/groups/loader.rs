//! Batches of images from host memory to a consumer on the device.

use crossover_suite::model::{Measures, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::{Clock::Wall, Rate};
use crossover_suite::workload::HostMemory::{Pageable, Pinned};
use crossover_suite::workload::loader::{self, BATCHES, Feed, IMAGE, Loader};

pub(crate) fn group() -> Group<Loader> {
    let image = IMAGE as u64;
    let sizes = Sizes::powers_of_two([20], [16, 22], (14..=26).step_by(2)).odd([image, 3 * image]);
    let rate = Rate::bytes(|n| BATCHES as f64 * n);
    let row = |name, feed| {
        let (memory, threads) = match feed {
            Feed::InSequence(memory) => (memory, 0),
            Feed::Threads(threads) => (Pinned, threads),
        };
        Implementation::gpu(name, Wall, move |gpu, problem| {
            loader::epoch(gpu, problem, feed)
        })
        .data(memory)
        .measures(Measures::Loads(threads as u32))
    };
    Group::new("loader", sizes, rate, loader::cost)
        .about(
            "Data loader",
            "An epoch of 32 batches, loaded from host memory and consumed by kernels on the device: what do \
             pinning, prefetching and more threads gain, and how much of the time does a kernel run?",
        )
        .axis("batch", "size of a batch", Unit::Bytes)
        .with(row("pageable", Feed::InSequence(Pageable)))
        .with(row("pinned", Feed::InSequence(Pinned)))
        .with(row("prefetch", Feed::Threads(1)))
        .with(row("threads-2", Feed::Threads(2)))
        .with(row("threads-4", Feed::Threads(4)))
}
