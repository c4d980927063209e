//! Square f64 matrix product, N by N.

use crossover_suite::model::{Format, Library, LinkBytes, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsGated, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::matmul::{self, Matmul, cpu, gpu};

pub(crate) fn group() -> Group<Matmul<f64>> {
    let odd = [1, 2, 3, 7, 17, 31, 64, 65, 129, 257];
    let sizes = Sizes::powers_of_two([5, 8, 10], [5, 6, 7, 9, 11], 3..=14).odd(odd);
    let copied_sizes = Sizes::powers_of_two([5, 8, 10], [5, 8, 10, 12], 3..=14).odd(odd);
    let cublas = |name, clock| on_gpu(Implementation::gpu(name, clock, gpu::cublas));

    Group::new("matmul_f64", sizes.clone(), Rate::flop(|n| 2.0 * n.powi(3)), matmul::cost_f64)
        .about(
            "Matrix product in f64",
            "Square f64 matrices, C = A · B, on tensor cores where these compute in f64: from which N on does the GPU win?",
        )
        .axis("N", "N, rows and columns of each matrix", Unit::Count)
        .words("the product", "kernel")
        .with(
            Implementation::cpu("best", |problem| {
                cpu::best(problem, rayon::current_num_threads())
            })
            .format(Format::F64)
            .sizes(sizes.up_to(512, 2048, 1 << 13)),
        )
        .with(
            Implementation::cpu("best-1-thread", |problem| cpu::best(problem, 1))
                .format(Format::F64)
                .one_thread()
                .reference_only()
                .sizes(Sizes::powers_of_two([8], [8, 10], 3..=12).odd(odd)),
        )
        .with(cublas("cublas", EventsGated).sizes(Sizes::powers_of_two([5, 8, 10], [7, 10, 13], 3..=14).odd(odd)))
        .with(cublas("cublas-eager", Events))
        .with(cublas("cublas-awaited", Wall).awaited())
        .with_transfers(
            gpu::from_host,
            |n| LinkBytes::new(16.0 * (n as f64).powi(2), 8.0 * (n as f64).powi(2)),
            |row, _| on_gpu(row).sizes(copied_sizes.clone()),
        )
}

/// The product by cuBLAS.
fn on_gpu(row: Implementation<Matmul<f64>>) -> Implementation<Matmul<f64>> {
    row.format(Format::F64).library(Library::Cublas)
}
