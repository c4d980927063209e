//! The rows that groups of one product of some shape have in common.

use std::rc::Rc;

use crossover::model::Library;
use crossover::suite::Implementation;
use crossover::timing::Clock;
use crossover::workload::matmul::{Family, Shaped, cpu, gpu};
use crossover::workload::{HostMemory, Transfer};

type Row<F> = Implementation<Shaped<F>>;

/// The fastest on the CPU, found in a short calibration.
pub(crate) fn best<F: Family>() -> Row<F> {
    Implementation::cpu("best", |problem: &Rc<Shaped<F>>| {
        cpu::best_of_shape(problem.matmul())
    })
}

/// On the GPU by cuBLAS, in device memory.
pub(crate) fn cublas<F: Family>(name: &'static str, clock: Clock) -> Row<F> {
    Implementation::gpu(name, clock, |gpu, problem: &Rc<Shaped<F>>| {
        gpu::cublas(gpu, problem.matmul())
    })
    .library(Library::Cublas)
}

/// The same from and to host memory: ordinary memory one step after the other, pinned memory in
/// the fastest way.
pub(crate) fn transfer<F: Family>(name: &'static str, memory: HostMemory) -> Row<F> {
    let by = match memory {
        HostMemory::Pageable => Transfer::Plain(memory),
        HostMemory::Pinned => Transfer::Pinned,
    };
    Implementation::gpu(name, Clock::Wall, move |gpu, problem: &Rc<Shaped<F>>| {
        gpu::from_host(gpu, problem.matmul(), by)
    })
    .data(memory)
    .library(Library::Cublas)
    .cost(|size| F::shape(size).cost_transfer())
}
