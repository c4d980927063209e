//! A batch of small square products: many that do not fill a GPU one by one.

use std::rc::Rc;

use crate::model::cost::Cost;
use crate::workload::matmul::problem::{CUBLAS_WORKSPACE, Matmul};
use crate::workload::matmul::shape::Shape;
use crate::workload::routine::Workload;

/// Products in a batch.
pub const BATCH: usize = 64;

/// The inputs of [`BATCH`] products of one order.
pub struct Batched(Rc<Matmul>);

fn shape(n: u64) -> Shape {
    Shape {
        batch: BATCH,
        ..Shape::square(n as usize)
    }
}

impl Workload for Batched {
    fn new(n: u64) -> Self {
        Self(Rc::new(Matmul::of(shape(n))))
    }

    fn host_bytes(n: u64) -> u64 {
        // The inputs, and all three once more in pinned memory.
        8 * shape(n).elements() as u64
    }

    fn device_bytes(n: u64) -> u64 {
        // The inputs that implementations share, and all three for one with transfers.
        8 * shape(n).elements() as u64 + CUBLAS_WORKSPACE
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        self.0.visit_inputs(visit);
    }
}

/// All products of order `n` with operands where they are computed.
pub fn cost(n: u64) -> Cost {
    shape(n).cost()
}

/// The same with the operands sent to the device and the results fetched.
pub fn cost_transfer(n: u64) -> Cost {
    shape(n).cost_transfer()
}

/// On the CPU, by the crate gemm.
pub mod cpu {
    use std::rc::Rc;

    use super::Batched;
    use crate::workload::matmul::rectangular::{self, on_all_threads, product};
    use crate::workload::routine::{Routine, RoutineError};

    /// The products shared out among all cores, each on one thread.
    pub fn over_batch(problem: &Rc<Batched>) -> Result<Box<dyn Routine>, RoutineError> {
        let note = on_all_threads("gemm, a product a thread");
        Ok(product(&problem.0, rectangular::over_batch, note))
    }

    /// The products one after the other, each on all cores.
    pub fn within(problem: &Rc<Batched>) -> Result<Box<dyn Routine>, RoutineError> {
        let note = on_all_threads("gemm, all threads in each product");
        Ok(product(&problem.0, rectangular::within, note))
    }
}

/// On the GPU, by one call of `cublasSgemmStridedBatched`.
pub mod gpu {
    use std::rc::Rc;

    use super::Batched;
    use crate::device::gpu::Gpu;
    use crate::workload::HostMemory;
    use crate::workload::matmul::gpu;
    use crate::workload::routine::{Routine, RoutineError};

    /// Operands and results in device memory.
    pub fn cublas(gpu: &Rc<Gpu>, problem: &Rc<Batched>) -> Result<Box<dyn Routine>, RoutineError> {
        gpu::cublas(gpu, &problem.0)
    }

    /// From and to pageable memory, one after the other. Synchronises: time it on the wall
    /// clock.
    pub fn transfer(
        gpu: &Rc<Gpu>,
        problem: &Rc<Batched>,
    ) -> Result<Box<dyn Routine>, RoutineError> {
        gpu::transfer(gpu, &problem.0, HostMemory::Pageable)
    }

    /// From and to pinned memory, one after the other. Synchronises: time it on the wall
    /// clock.
    pub fn transfer_pinned(
        gpu: &Rc<Gpu>,
        problem: &Rc<Batched>,
    ) -> Result<Box<dyn Routine>, RoutineError> {
        gpu::transfer(gpu, &problem.0, HostMemory::Pinned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_a_known_order() {
        assert_eq!(cost(64).flop, Some(64.0 * 2.0 * 262_144.0));
        assert_eq!(cost(64).bytes, Some(64.0 * 12.0 * 4096.0));
        assert_eq!(cost_transfer(64).link_bytes, cost(64).bytes);
    }
}
