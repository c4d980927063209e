//! Many small products at once.

use std::rc::Rc;

use crossover::model::{Library, Unit};
use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::Clock::{Events, EventsGated, Wall};
use crossover::timing::Rate;
use crossover::workload::HostMemory;
use crossover::workload::matmul::cpu::{self, Share};
use crossover::workload::matmul::{Batched, Family, Shaped, gpu};

type Problem = Rc<Shaped<Batched>>;

pub(crate) fn group() -> Group<Shaped<Batched>> {
    let sizes = Sizes::powers_of_two([6, 8], 6..=9, 3..=10).odd([1, 3, 8, 17, 100]);
    let shared = |name, share| {
        Implementation::cpu(name, move |problem: &Problem| {
            cpu::gemm(problem.matmul(), share)
        })
    };
    let cublas = |name, clock| {
        Implementation::gpu(name, clock, |gpu, problem: &Problem| {
            gpu::cublas(gpu, problem.matmul())
        })
        .library(Library::Cublas)
    };
    let transfer = |name, memory| {
        Implementation::gpu(name, Wall, move |gpu, problem: &Problem| {
            gpu::transfer(gpu, problem.matmul(), memory)
        })
        .data(memory)
        .library(Library::Cublas)
        .cost(|n| Batched::shape(n).cost_transfer())
    };
    Group::new(
        "matmul_batched",
        sizes,
        Rate::flop(|n| 2.0 * Batched::PRODUCTS as f64 * n.powi(3)),
        |n| Batched::shape(n).cost(),
    )
    .about(
        "Batched matrix product",
        "64 small f32 products at once: where does a GPU win that no single one of them would fill?",
    )
    .axis("N", "N, rows and columns of each matrix", Unit::Count)
    .with(shared("over-batch", Share::Products).method("one product per thread"))
    .with(shared("within", Share::EachProduct).method("all threads in each product"))
    .with(cublas("cublas", EventsGated))
    .with(cublas("cublas-eager", Events))
    .with(transfer("transfer", HostMemory::Pageable))
    .with(transfer("transfer-pinned", HostMemory::Pinned))
}
