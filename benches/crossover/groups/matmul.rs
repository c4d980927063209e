//! Square f32 matrix product, N by N.

use crossover_suite::model::{Library, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsGated, Submit, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::HostMemory::{Pageable, Pinned};
use crossover_suite::workload::matmul::gpu::{self, Calls};
use crossover_suite::workload::matmul::{self, Matmul, Shape, cpu};

pub(crate) fn group() -> Group<Matmul> {
    let sizes = Sizes::powers_of_two(
        [3, 5, 7, 8, 9, 10, 11],
        [0, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13],
        0..=15,
    )
    // A size of which texts on GPU timing often speak.
    .in_full([5_000])
    .odd([1, 2, 3, 7, 17, 31, 64, 65, 129, 257]);
    // Fewer than those of `best`, which is the answer.
    let launched_sizes = Sizes::powers_of_two([8], [5, 8, 11], 0..=15);
    let best_sizes = Sizes::powers_of_two([3, 5, 7, 9, 11], [3, 5, 6, 7, 8, 9, 10, 11, 13], 0..=15);
    let best = |name, clock, calls| {
        Implementation::gpu(name, clock, move |gpu, problem| {
            gpu::best(gpu, problem, calls)
        })
        .library(Library::Cublas)
        .method("the fastest way at each size")
        .sizes(best_sizes.clone())
    };
    let cublas =
        |name, clock| Implementation::gpu(name, clock, gpu::cublas).library(Library::Cublas);
    let group = Group::new(
        "matmul",
        sizes.clone(),
        Rate::flop(|n| 2.0 * n.powi(3)),
        matmul::cost,
    )
    .about(
        "Matrix product",
        "Square f32 matrices, C = A · B: from which N on does the GPU win, and what do the transfers cost?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .words("the product", "kernel")
    .with(
        Implementation::cpu("naive", cpu::naive)
            .one_thread()
            .sizes(Sizes::powers_of_two([3, 5, 7], [0, 3, 5, 8], 0..=12)),
    )
    // Rows that `best` chooses from need no sizes close to the crossover.
    .with(
        Implementation::cpu("ndarray", cpu::ndarray)
            .one_thread()
            .sizes(Sizes::powers_of_two([3, 5, 7, 8, 9], [0, 3, 5, 8, 10], 0..=14).in_full([5_000])),
    )
    .with(Implementation::cpu("rayon", cpu::rayon).sizes(Sizes::powers_of_two([3, 5, 7, 8, 9], [0, 5, 8], 0..=14).in_full([5_000])))
    // Criterion takes at least ten samples, so the CPU stops at sizes where ten iterations take
    // seconds.
    .with(
        Implementation::cpu("best", |problem| {
            cpu::best(problem, rayon::current_num_threads())
        })
        .sizes(sizes.up_to(512, 2048, 1 << 14)),
    )
    // The same as `best`, on one core.
    .with(
        Implementation::cpu("best-1-thread", |problem| cpu::best(problem, 1))
            .one_thread()
            .reference_only()
            .sizes(Sizes::powers_of_two([8], [6, 8, 10], 0..=13)),
    )
    .with(Implementation::gpu("tiled", EventsGated, gpu::tiled).method("tiles in registers"))
    .with(cublas("cublas", EventsGated))
    .with(cublas("cublas-eager", Events).sizes(launched_sizes.clone()))
    .with(cublas("cublas-awaited", Wall).awaited().sizes(launched_sizes.in_full([5_000, 10_000])))
    .with(best("best-eager", Events, Calls::Queued))
    .with(best("best-awaited", Wall, Calls::Awaited).awaited())
    .with_transfers(
        gpu::from_host,
        |n| Shape::square(n as usize).link_bytes(),
        |row, memory| {
            let row = row.library(Library::Cublas);
            match memory {
                Pageable => row.sizes(Sizes::powers_of_two([5, 8, 11], [3, 7, 10, 13], 0..=15)),
                Pinned => row.method("in blocks that overlap"),
            }
        },
    )
    .with(
        cublas("submit", Submit)
            .sizes(Sizes::powers_of_two([5, 8, 11], [0, 5, 8, 11, 13], 0..=15).in_full([5_000, 10_000])),
    );
    #[cfg(feature = "blas")]
    let group = group.with(
        Implementation::cpu("blas", matmul::blas)
            .library(Library::Blas)
            .sizes(sizes.up_to(512, 2048, 1 << 14)),
    );
    group
}
