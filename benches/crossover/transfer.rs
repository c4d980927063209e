//! Copies between host and device: what does pinning save, from which size on, and what does a
//! copy cost however small it is?

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock::Wall, Rate};
use crossover::workload::transfer::{self, Kind, Transfer, Way};

pub(crate) fn group() -> Group<Transfer> {
    let sizes = Sizes::powers_of_two([10, 20], [10, 20, 28], (10..=30).step_by(2));
    let copy = |name, way, kind| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            transfer::copy(gpu, problem, way, kind)
        })
    };
    Group::new("transfer", sizes, Rate::bytes(|n| n), transfer::cost)
        .with(copy("h2d-pageable", Way::ToDevice, Kind::Pageable))
        .with(copy("h2d-pinned", Way::ToDevice, Kind::Pinned))
        .with(copy(
            "h2d-write-combined",
            Way::ToDevice,
            Kind::WriteCombined,
        ))
        .with(copy("h2d-registered", Way::ToDevice, Kind::Registered))
        .with(copy("h2d-many", Way::ToDeviceInPieces, Kind::Pinned))
        .with(copy("d2h-pageable", Way::ToHost, Kind::Pageable))
        .with(copy("d2h-pinned", Way::ToHost, Kind::Pinned))
        .with(copy("d2h-registered", Way::ToHost, Kind::Registered))
        .with(copy("both-pinned", Way::Both, Kind::Pinned).cost(transfer::cost_both_ways))
        .with(copy("zero-copy", Way::KernelReads, Kind::Pinned))
        .with(copy("managed", Way::KernelReads, Kind::Managed))
}
