//! Copies between host and device: what does pinning save, from which size on, and what does a
//! copy cost however small it is?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::transfer::{self, Transfer, gpu};

pub(crate) fn group() -> Group<Transfer> {
    let sizes = Sizes::powers_of_two([10, 20], [10, 20, 28], (10..=30).step_by(2));
    Group::new("transfer", sizes, Rate::bytes(|n| n), transfer::cost)
        .with(Implementation::gpu("h2d-pageable", Wall, gpu::h2d_pageable))
        .with(Implementation::gpu("h2d-pinned", Wall, gpu::h2d_pinned))
        .with(Implementation::gpu(
            "h2d-write-combined",
            Wall,
            gpu::h2d_write_combined,
        ))
        .with(Implementation::gpu(
            "h2d-registered",
            Wall,
            gpu::h2d_registered,
        ))
        .with(Implementation::gpu("h2d-many", Wall, gpu::h2d_many))
        .with(Implementation::gpu("d2h-pageable", Wall, gpu::d2h_pageable))
        .with(Implementation::gpu("d2h-pinned", Wall, gpu::d2h_pinned))
        .with(Implementation::gpu(
            "d2h-registered",
            Wall,
            gpu::d2h_registered,
        ))
        .with(
            Implementation::gpu("both-pinned", Wall, gpu::both_pinned)
                .cost(transfer::cost_both_ways),
        )
        .with(Implementation::gpu("zero-copy", Wall, gpu::zero_copy))
        .with(Implementation::gpu("managed", Wall, gpu::managed))
}
