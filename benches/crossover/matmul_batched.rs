//! 64 small products at once: where does a GPU win that no single one of them would fill?

use std::rc::Rc;

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::HostMemory;
use crossover::workload::matmul::cpu::{self, Share};
use crossover::workload::matmul::{Batched, Family, Shaped, gpu};

type Problem = Rc<Shaped<Batched>>;

pub(crate) fn group() -> Group<Shaped<Batched>> {
    let sizes = Sizes::powers_of_two([6, 8], 6..=9, 3..=10);
    let shared = |name, share| {
        Implementation::cpu(name, move |problem: &Problem| {
            cpu::gemm(problem.matmul(), share)
        })
    };
    let cublas = |gpu: &_, problem: &Problem| gpu::cublas(gpu, problem.matmul());
    let transfer = |name, memory| {
        Implementation::gpu(name, Clock::Wall, move |gpu, problem: &Problem| {
            gpu::transfer(gpu, problem.matmul(), memory)
        })
        .cost(|n| Batched::shape(n).cost_transfer())
    };
    Group::new(
        "matmul_batched",
        sizes,
        Rate::flop(|n| 2.0 * Batched::PRODUCTS as f64 * n.powi(3)),
        |n| Batched::shape(n).cost(),
    )
    .with(shared("over-batch", Share::Products))
    .with(shared("within", Share::EachProduct))
    .with(Implementation::gpu("cublas", Clock::EventsGated, cublas))
    .with(Implementation::gpu("cublas-eager", Clock::Events, cublas))
    .with(transfer("transfer", HostMemory::Pageable))
    .with(transfer("transfer-pinned", HostMemory::Pinned))
}
