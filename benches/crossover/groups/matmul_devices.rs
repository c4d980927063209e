//! The product of square f32 matrices on several GPUs.

use crossover_suite::model::{Devices, Library, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::{Clock::Events, Rate};
use crossover_suite::workload::devices::{gathered, in_place};
use crossover_suite::workload::matmul::gpu::{self, Calls};
use crossover_suite::workload::matmul::{self, Matmul};

pub(crate) fn group() -> Group<Matmul> {
    let sizes = Sizes::powers_of_two([9, 11, 12], 8..=13, 0..=15).odd([1, 3, 65, 129, 1025]);
    Group::new(
        "matmul_devices",
        sizes,
        Rate::flop(|n| 2.0 * n.powi(3)),
        matmul::cost,
    )
    .about(
        "Matrix product on several GPUs",
        "Square f32 matrices, C = A · B: from which N on do several GPUs win against one, if each has its rows, and \
         if all matrices are on the first?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .words("the product", "kernel")
    .on_several_devices()
    .with(
        Implementation::gpu("one", Events, |gpu, problem| {
            gpu::best(gpu, problem, Calls::Queued)
        })
        .library(Library::Cublas)
        .devices(Devices::One),
    )
    .with(
        Implementation::gpu("in-place", Events, in_place)
            .library(Library::Cublas)
            .devices(Devices::Divided),
    )
    .with(
        Implementation::gpu("gathered", Events, gathered)
            .library(Library::Cublas)
            .devices(Devices::Gathered),
    )
}
