//! The rows that the groups of one product of some shape share.

use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::model::Library;
use crossover_suite::suite::Implementation;
use crossover_suite::timing::Clock;
use crossover_suite::workload::matmul::{Family, Shaped, cpu, gpu};
use crossover_suite::workload::{HostMemory, Routine, RoutineError};

type ShapedRow<F> = Implementation<Shaped<F>>;

/// The fastest on the CPU, found in a short calibration.
pub(crate) fn best<F: Family>() -> ShapedRow<F> {
    Implementation::cpu("best", |problem: &Rc<Shaped<F>>| {
        cpu::best(problem.matmul(), rayon::current_num_threads())
    })
}

/// The products by cuBLAS, on data in device memory.
pub(crate) fn cublas<F: Family>(name: &'static str, clock: Clock) -> ShapedRow<F> {
    Implementation::gpu(name, clock, |gpu, problem: &Rc<Shaped<F>>| {
        gpu::cublas(gpu, problem.matmul())
    })
    .library(Library::Cublas)
}

/// The products by cuBLAS, from and to host memory.
pub(crate) fn from_host<F: Family>(
    gpu: &Rc<Gpu>,
    problem: &Rc<Shaped<F>>,
    memory: HostMemory,
) -> Result<Box<dyn Routine>, RoutineError> {
    gpu::from_host(gpu, problem.matmul(), memory)
}
