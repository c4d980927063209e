//! The product from and to host memory, and how it is cut.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::schedule::batch_stages;
use crate::workload::matmul::ways::{Multiply, multiply, ways};
use crate::workload::number::in_format;
use crate::workload::prepare::{
    Buffers, EndToEnd, HostMemory, Stages, Steps, TransferPlan, end_to_end,
};
use crate::workload::product::{Element, Shape};
use crate::workload::routine::{Done, Made, RoutineError, Ways};

/// Uploads the operands, multiplies by cuBLAS and downloads the result. The device memory is allocated
/// beforehand. It synchronises: time it on the wall clock.
///
/// From pinned memory in the fastest way, a small product may be one graph, or read and write the
/// host's memory in place. From order 256 on, the product may begin when a part of the operands has
/// arrived, while rows of the result are downloaded as later ones are computed; a batch likewise.
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn from_host<T: Element>(gpu: &Rc<Gpu>, problem: &Rc<Matmul<T>>, memory: HostMemory) -> Made {
    end_to_end::from_host(gpu, problem, memory)
}

/// A routine for every way that [`from_host`] chooses from in pinned memory, with its name. For tests.
///
/// # Errors
/// As [`from_host`].
pub fn from_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Ways {
    end_to_end::ways(gpu, problem)
}

// SAFETY: the pieces are cut out of the matrices of the shape.
unsafe impl<T: Element> EndToEnd for Matmul<T> {
    type Value = T;

    const POISON: T = T::NAN;

    fn words(&self) -> String {
        let Shape { batch, m, n, k } = self.shape;
        format!("{batch} products of {m} x {k} x {n}{}", in_format::<T>())
    }

    fn operands(&self) -> Vec<&[T]> {
        vec![&self.a, &self.b]
    }

    fn result(&self) -> usize {
        self.shape.c_len()
    }

    fn check(&self, result: &[T]) -> Result<Verified, RoutineError> {
        Ok(self.verified(self.error_of_rows(0, result)))
    }

    fn compute(&self, gpu: &Rc<Gpu>, steps: &mut Steps, at: &[CUdeviceptr]) -> Done {
        multiply::<T>(steps, gpu, self.shape, Multiply::Cublas, at)
    }

    fn ways(&self) -> Vec<TransferPlan<'_, T>> {
        ways(self.shape)
    }

    fn stages(&self, gpu: &Rc<Gpu>, places: &Buffers<T>, pieces: usize) -> Stages {
        batch_stages(gpu, self.shape, places, pieces)
    }
}
