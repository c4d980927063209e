//! A chain of matrix products, with a small step after each that the CPU may take.

use crossover_suite::model::{Launches, Library, Residency, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::Wall;
use crossover_suite::workload::product_chain::{self, ProductChain};

pub(crate) fn group() -> Group<ProductChain> {
    let orders = [64, 256, 1024];
    let sizes = Sizes::new([64], orders, orders).odd([1, 3, 33, 129]);
    let row = |name, launches| {
        Implementation::gpu(name, Wall, move |gpu, problem| {
            product_chain::chain(gpu, problem, launches)
        })
        .launches(launches)
        .data(Residency::Awaited)
        .library(Library::Cublas)
    };
    Group::new("product_chain", sizes, None, product_chain::cost)
        .about(
            "Products and small steps",
            "A chain of 8 matrix products with a small step after each: what does it cost when the CPU takes \
             the small steps, or when the host waits after each?",
        )
        .axis("N", "N, rows and columns of each matrix", Unit::Count)
        .words("the chain of products", "step")
        .with(row("async", Launches::OneByOne))
        .with(row("sync-each", Launches::Synchronised))
        .with(row("hybrid", Launches::PartlyOnCpu).cost(product_chain::cost_hybrid))
        .with(row("graph", Launches::Graph))
}
