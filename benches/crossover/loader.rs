//! Batches of images from host memory: what do pinning, prefetching and more threads bring, and
//! how busy is the device?

use crossover::model::{Data, Does, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::loader::{self, BATCHES, IMAGE, Loader, gpu};

pub(crate) fn group() -> Group<Loader> {
    let sizes = Sizes::powers_of_two([20], [16, 20, 24], (14..=26).step_by(2))
        .odd([IMAGE as u64, 3 * IMAGE as u64]);
    let rate = Rate::bytes(|n| BATCHES as f64 * n);
    Group::new("loader", sizes, rate, loader::cost)
        .about(
            "Data loader",
            "An epoch of 32 batches from host memory to a consumer on the device: what do pinning, \
             prefetching and more threads bring, and how busy is the device?",
        )
        .axis("batch", "size of a batch", Unit::Bytes)
        .with(
            Implementation::gpu("pageable", Wall, gpu::pageable)
                .data(Data::Ordinary)
                .does(Does::Loads(0)),
        )
        .with(
            Implementation::gpu("pinned", Wall, gpu::pinned)
                .data(Data::Pinned)
                .does(Does::Loads(0)),
        )
        .with(
            Implementation::gpu("prefetch", Wall, gpu::prefetch)
                .data(Data::Pinned)
                .does(Does::Loads(1)),
        )
        .with(
            Implementation::gpu("threads-2", Wall, gpu::threads_2)
                .data(Data::Pinned)
                .does(Does::Loads(2)),
        )
        .with(
            Implementation::gpu("threads-4", Wall, gpu::threads_4)
                .data(Data::Pinned)
                .does(Does::Loads(4)),
        )
}
