//! Many small products at once.

use crossover_suite::model::{Library, Unit};
use crossover_suite::suite::{Group, Sizes};
use crossover_suite::timing::Clock::{Events, EventsGated, Wall};
use crossover_suite::timing::Rate;
use crossover_suite::workload::matmul::{Batched, Family, Shaped};

use super::shaped::{best, cublas, from_host};

pub(crate) fn group() -> Group<Shaped<Batched>> {
    let sizes = Sizes::powers_of_two([6, 8], 6..=9, 3..=10).odd([1, 3, 8, 17, 100]);
    Group::new(
        "matmul_batched",
        sizes,
        Rate::flop(|n| 2.0 * Batched::PRODUCTS as f64 * n.powi(3)),
        |n| Batched::shape(n).cost(),
    )
    .about(
        "64 small matrix products",
        "64 small f32 products at once, none of which fills a GPU by itself: from which N on does the GPU win?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .with(best())
    .with(cublas("cublas", EventsGated))
    .with(cublas("cublas-eager", Events))
    .with(cublas("cublas-awaited", Wall).awaited())
    .with_transfers(
        from_host,
        |n| Batched::shape(n).link_bytes(),
        |row, _| row.library(Library::Cublas),
    )
}
