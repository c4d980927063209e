//! Batches of images from host memory: what do pinning, prefetching and more threads bring, and
//! how busy is the device?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::HostMemory::{Pageable, Pinned};
use crossover::workload::loader::{self, BATCHES, Feed, Loader};

pub(crate) fn group() -> Group<Loader> {
    let sizes = Sizes::powers_of_two([20], [16, 20, 24], (14..=26).step_by(2));
    let rate = Rate::bytes(|n| BATCHES as f64 * n);
    let row = |name, feed| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            loader::epoch(gpu, problem, feed)
        })
    };
    Group::new("loader", sizes, rate, loader::cost)
        .with(row("pageable", Feed::InSequence(Pageable)))
        .with(row("pinned", Feed::InSequence(Pinned)))
        .with(row("prefetch", Feed::Threads(1)))
        .with(row("threads-2", Feed::Threads(2)))
        .with(row("threads-4", Feed::Threads(4)))
}
