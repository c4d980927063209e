//! A few rows times a large square matrix, as in a neural network that answers a few requests
//! at a time: B is read once and hardly reused.

use std::rc::Rc;

use crate::model::cost::Cost;
use crate::workload::matmul::problem::{CUBLAS_WORKSPACE, Matmul};
use crate::workload::matmul::shape::Shape;
use crate::workload::routine::Workload;

/// Rows and columns of B.
pub const ORDER: usize = 4096;

/// The inputs of a product of a few rows and an [`ORDER`] x [`ORDER`] matrix.
pub struct Skinny(Rc<Matmul>);

fn shape(m: u64) -> Shape {
    Shape {
        m: m as usize,
        ..Shape::square(ORDER)
    }
}

impl Workload for Skinny {
    fn new(m: u64) -> Self {
        Self(Rc::new(Matmul::of(shape(m))))
    }

    fn host_bytes(m: u64) -> u64 {
        // The inputs, and all three once more in pinned memory.
        8 * shape(m).elements() as u64
    }

    fn device_bytes(m: u64) -> u64 {
        // The inputs that implementations share, and all three for one with transfers.
        8 * shape(m).elements() as u64 + CUBLAS_WORKSPACE
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        self.0.visit_inputs(visit);
    }
}

/// The product of `m` rows with operands where it is computed.
pub fn cost(m: u64) -> Cost {
    shape(m).cost()
}

/// The same with the operands sent to the device and the result fetched.
pub fn cost_transfer(m: u64) -> Cost {
    shape(m).cost_transfer()
}

/// On the CPU, by the crate gemm.
pub mod cpu {
    use std::rc::Rc;

    use super::Skinny;
    use crate::workload::matmul::rectangular::{self, on_all_threads, product};
    use crate::workload::routine::{Routine, RoutineError};

    /// gemm's own way to share one product among all cores.
    pub fn gemm(problem: &Rc<Skinny>) -> Result<Box<dyn Routine>, RoutineError> {
        let note = on_all_threads("gemm, all threads in the product");
        Ok(product(&problem.0, rectangular::within, note))
    }

    /// Blocks of columns shared out among all cores, each on one thread.
    pub fn columns(problem: &Rc<Skinny>) -> Result<Box<dyn Routine>, RoutineError> {
        let note = on_all_threads("gemm, a block of columns a thread");
        Ok(product(&problem.0, rectangular::by_columns, note))
    }
}

/// On the GPU, by one call of `cublasSgemm`.
pub mod gpu {
    use std::rc::Rc;

    use super::Skinny;
    use crate::device::gpu::Gpu;
    use crate::workload::HostMemory;
    use crate::workload::matmul::gpu;
    use crate::workload::routine::{Routine, RoutineError};

    /// Operands and result in device memory.
    pub fn cublas(gpu: &Rc<Gpu>, problem: &Rc<Skinny>) -> Result<Box<dyn Routine>, RoutineError> {
        gpu::cublas(gpu, &problem.0)
    }

    /// From and to pageable memory, one after the other. Synchronises: time it on the wall
    /// clock.
    pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<Skinny>) -> Result<Box<dyn Routine>, RoutineError> {
        gpu::transfer(gpu, &problem.0, HostMemory::Pageable)
    }

    /// From and to pinned memory, one after the other. Synchronises: time it on the wall
    /// clock.
    pub fn transfer_pinned(
        gpu: &Rc<Gpu>,
        problem: &Rc<Skinny>,
    ) -> Result<Box<dyn Routine>, RoutineError> {
        gpu::transfer(gpu, &problem.0, HostMemory::Pinned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_known_rows() {
        assert_eq!(cost(16).flop, Some(2.0 * 16.0 * 16_777_216.0));
        let elements = 16.0 * 4096.0 + 16_777_216.0 + 16.0 * 4096.0;
        assert_eq!(cost(16).bytes, Some(4.0 * elements));
        assert_eq!(cost_transfer(16).link_bytes, cost(16).bytes);
    }
}
