//! Copies between host and device: what does pinning save, from which size on, and what does a
//! copy cost however small it is?

use crossover::model::Data::{Ordinary, Pinned};
use crossover::model::{Does, Unit, Way};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::transfer::{self, Transfer, gpu};

pub(crate) fn group() -> Group<Transfer> {
    let sizes = Sizes::powers_of_two([10, 20], [10, 20, 28], (10..=30).step_by(2)).odd([
        1,
        15,
        1 << 10,
        4097,
    ]);
    Group::new("transfer", sizes, Rate::bytes(|n| n), transfer::cost)
        .about(
            "Transfers",
            "Copies between host and device, by kind of host memory: what does pinning save, and what \
             does a copy cost however small it is?",
        )
        .axis("size", "size of the copy", Unit::Bytes)
        .no_winner()
        .with(Implementation::gpu("h2d-pageable", Wall, gpu::h2d_pageable).does(Does::Copies(Way::ToDevice)).data(Ordinary))
        .with(Implementation::gpu("h2d-pinned", Wall, gpu::h2d_pinned).does(Does::Copies(Way::ToDevice)).data(Pinned))
        .with(Implementation::gpu(
            "h2d-write-combined",
            Wall,
            gpu::h2d_write_combined).does(Does::Copies(Way::ToDevice)).data(Pinned).method("write-combined"))
        .with(Implementation::gpu(
            "h2d-registered",
            Wall,
            gpu::h2d_registered).does(Does::Copies(Way::ToDevice)).data(Pinned).method("registered"))
        .with(Implementation::gpu("h2d-many", Wall, gpu::h2d_many).does(Does::Copies(Way::ToDevice)).data(Pinned).pieces(64))
        .with(Implementation::gpu("d2h-pageable", Wall, gpu::d2h_pageable).does(Does::Copies(Way::ToHost)).data(Ordinary))
        .with(Implementation::gpu("d2h-pinned", Wall, gpu::d2h_pinned).does(Does::Copies(Way::ToHost)).data(Pinned))
        .with(Implementation::gpu(
            "d2h-registered",
            Wall,
            gpu::d2h_registered).does(Does::Copies(Way::ToHost)).data(Pinned).method("registered"))
        .with(
            Implementation::gpu("both-pinned", Wall, gpu::both_pinned).does(Does::Copies(Way::Both)).data(Pinned)
                .cost(transfer::cost_both_ways),
        )
        .with(Implementation::gpu("zero-copy", Wall, gpu::zero_copy).does(Does::Copies(Way::InPlace)).data(Pinned))
        .with(Implementation::gpu("managed", Wall, gpu::managed).does(Does::Copies(Way::InPlace)).data(Ordinary).method("managed"))
}
