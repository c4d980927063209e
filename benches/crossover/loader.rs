//! Batches of images from host memory: what do pinning, prefetching and more threads bring, and
//! how busy is the device?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::loader::{self, BATCHES, Loader, gpu};

pub(crate) fn group() -> Group<Loader> {
    let sizes = Sizes::powers_of_two([20], [16, 20, 24], (14..=26).step_by(2));
    let rate = Rate::bytes(|n| BATCHES as f64 * n);
    Group::new("loader", sizes, rate, loader::cost)
        .with(Implementation::gpu("pageable", Wall, gpu::pageable))
        .with(Implementation::gpu("pinned", Wall, gpu::pinned))
        .with(Implementation::gpu("prefetch", Wall, gpu::prefetch))
        .with(Implementation::gpu("threads-2", Wall, gpu::threads_2))
        .with(Implementation::gpu("threads-4", Wall, gpu::threads_4))
}
