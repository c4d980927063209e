//! M rows times a large square matrix.

use std::rc::Rc;

use crossover_suite::model::{Library, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsCold, EventsGated, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::matmul::{Family, Shaped, Skinny, gpu};

use super::shaped::{best, cublas, from_host};

pub(crate) fn group() -> Group<Shaped<Skinny>> {
    let sizes = Sizes::powers_of_two([0, 6], [0, 4, 6], 0..=8).odd([1, 7, 16]);
    // Fewer than those of `best`, which is the answer.
    let launched_sizes = Sizes::powers_of_two([6], [4], 0..=8);
    let fastest = |name, clock| {
        Implementation::gpu(name, clock, |gpu, problem: &Rc<Shaped<Skinny>>| {
            gpu::calibrated(gpu, problem.matmul())
        })
        .library(Library::Cublas)
        .method("the fastest way at each size")
    };
    Group::new(
        "matmul_skinny",
        sizes,
        Rate::flop(|m| 2.0 * m * (Skinny::ORDER as f64).powi(2)),
        |n| Skinny::shape(n).cost(),
    )
    .about(
        "Skinny matrix product",
        "M rows times a 4096 × 4096 matrix, a product that reads much and computes little: \
         from which M on does the GPU win?",
    )
    .axis("M", "M, rows of the left matrix", Unit::Count)
    .with(best())
    .with(fastest("best", EventsGated))
    .with(fastest("best-awaited", Wall).awaited())
    .with(cublas("cublas", EventsGated))
    // B takes 64 MiB, of which a large L2 cache keeps a good part from one call to the next.
    .with(cublas("cublas-cold", EventsCold))
    .with(cublas("cublas-eager", Events).sizes(launched_sizes.clone()))
    .with(
        cublas("cublas-awaited", Wall)
            .awaited()
            .sizes(launched_sizes),
    )
    .with_transfers(
        from_host,
        |n| Skinny::shape(n).link_bytes(),
        |row, _| row.library(Library::Cublas),
    )
}
