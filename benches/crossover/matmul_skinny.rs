//! M rows times a 4096 x 4096 matrix: the product that reads more than it computes. From
//! which M on does the GPU win, and does it with the data on the host?

use std::rc::Rc;

use crossover::suite::{Group, Implementation, Sizes};
use crossover::timing::{Clock, Rate};
use crossover::workload::HostMemory;
use crossover::workload::matmul::cpu::{self, Share};
use crossover::workload::matmul::{Family, Shaped, Skinny, gpu};

type Problem = Rc<Shaped<Skinny>>;

pub(crate) fn group() -> Group<Shaped<Skinny>> {
    let sizes = Sizes::powers_of_two([0, 6], [0, 4, 6], 0..=8);
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
        .cost(|m| Skinny::shape(m).cost_transfer())
    };
    Group::new(
        "matmul_skinny",
        sizes,
        Rate::flop(|m| 2.0 * m * (Skinny::ORDER as f64).powi(2)),
        |m| Skinny::shape(m).cost(),
    )
    .with(shared("gemm", Share::EachProduct))
    .with(shared("columns", Share::Columns))
    .with(Implementation::gpu("cublas", Clock::EventsGated, cublas))
    // B takes 64 MiB, of which a large L2 cache keeps a good part from one call to the next.
    .with(Implementation::gpu(
        "cublas-cold",
        Clock::EventsCold,
        cublas,
    ))
    .with(Implementation::gpu("cublas-eager", Clock::Events, cublas))
    .with(transfer("transfer", HostMemory::Pageable))
    .with(transfer("transfer-pinned", HostMemory::Pinned))
}
