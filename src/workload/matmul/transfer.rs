//! The product end to end: operands from host memory, the result back to it.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, sys::CUdeviceptr};

use crate::device::calls::{copy_to_device, copy_to_host};
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::matmul::operands::address;
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::sgemm::Sgemm;
use crate::workload::matmul::shape::Shape;
use crate::workload::prepare::host_memory::{Buffer, HostMemory, Input, fill};
use crate::workload::routine::{Made, Routine, RoutineError};

/// Two uploads, cuBLAS SGEMM (as [`cublas`](crate::workload::matmul::gpu::cublas)) and one
/// download, one after the other, from and to host memory of one kind. The device memory is
/// allocated beforehand. It synchronises: time it on the wall clock.
/// [`transfer_pinned`](crate::workload::matmul::gpu::transfer_pinned) may overlap the three.
///
/// # Errors
/// Errors of CUDA and cuBLAS, out of memory included.
pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, memory: HostMemory) -> Made {
    Ok(Box::new(Transfer {
        device: DeviceSide::new(gpu, problem)?,
        host: HostSide::new(gpu, problem, memory)?,
    }))
}

/// Device memory of its own: with the inputs that other implementations share, an upload
/// that never happened would go unnoticed.
pub(super) struct Copies {
    a: CudaSlice<f32>,
    b: CudaSlice<f32>,
    c: CudaSlice<f32>,
}

impl Copies {
    pub(super) fn new(gpu: &Gpu, shape: Shape) -> Result<Self, CudaError> {
        Ok(Self {
            a: gpu.alloc(shape.a_len())?,
            b: gpu.alloc(shape.b_len())?,
            c: gpu.alloc(shape.c_len())?,
        })
    }

    /// The addresses of A, B and C.
    pub(super) fn addresses(&self, gpu: &Gpu) -> [CUdeviceptr; 3] {
        [&self.a, &self.b, &self.c].map(|slice| address(gpu, slice))
    }

    /// Overwrites all three, so that a missing upload shows as well.
    pub(super) fn poison(&mut self, gpu: &Gpu) -> Result<(), CudaError> {
        for slice in [&mut self.a, &mut self.b, &mut self.c] {
            gpu.poison(slice)?;
        }
        gpu.synchronize()
    }
}

struct DeviceSide {
    gpu: Rc<Gpu>,
    problem: Rc<Matmul>,
    copies: Copies,
    sgemm: Sgemm,
}

impl DeviceSide {
    fn new(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Self, RoutineError> {
        let copies = Copies::new(gpu, problem.shape)?;
        let [a, b, c] = copies.addresses(gpu);
        let sgemm = Sgemm::new(gpu, problem.shape, a, b, c)?;
        Ok(Self {
            gpu: Rc::clone(gpu),
            problem: Rc::clone(problem),
            copies,
            sgemm,
        })
    }

    /// Uploads A and B, multiplies, downloads C, and waits.
    fn run(&self, host: Matrices<'_>) -> Result<(), CudaError> {
        let outcome = self.enqueue(host);
        // Waits even after an error: what was enqueued before it may still use the slices.
        let waited = self.gpu.synchronize();
        outcome.and(waited)
    }

    fn enqueue(&self, host: Matrices<'_>) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        let [a, b, c] = self.copies.addresses(&self.gpu);
        // SAFETY: device and host slices have the lengths of the shape, and all of them
        // outlive the wait in `run`; C is distinct from A and B.
        unsafe {
            copy_to_device(host.a, a, stream)?;
            copy_to_device(host.b, b, stream)?;
            self.sgemm.enqueue()?;
            copy_to_host(c, host.c, stream)
        }
    }
}

/// The three matrices in host memory.
pub(super) struct Matrices<'a> {
    pub(super) a: &'a [f32],
    pub(super) b: &'a [f32],
    pub(super) c: &'a mut [f32],
}

/// The host's side: where the operands come from and the result goes.
pub(super) struct HostSide {
    problem: Rc<Matmul>,
    a: Input<f32>,
    b: Input<f32>,
    c: Buffer<f32>,
}

impl HostSide {
    pub(super) fn new(
        gpu: &Gpu,
        problem: &Rc<Matmul>,
        memory: HostMemory,
    ) -> Result<Self, CudaError> {
        Ok(Self {
            problem: Rc::clone(problem),
            a: Input::new(gpu, memory, &problem.a)?,
            b: Input::new(gpu, memory, &problem.b)?,
            c: Buffer::filled(gpu, memory, f32::NAN, problem.shape.c_len())?,
        })
    }

    /// Copies the problem's operands to the pinned memory.
    pub(super) fn copy_operands(&mut self) -> Result<(), CudaError> {
        self.a.refill(&self.problem.a)?;
        self.b.refill(&self.problem.b)
    }

    /// Overwrites the operands in pinned memory, so that a missing copy shows.
    pub(super) fn poison_operands(&mut self) -> Result<(), CudaError> {
        self.a.fill(f32::NAN)?;
        self.b.fill(f32::NAN)
    }

    pub(super) fn matrices(&mut self) -> Result<Matrices<'_>, CudaError> {
        Ok(Matrices {
            a: self.a.values(&self.problem.a)?,
            b: self.b.values(&self.problem.b)?,
            c: self.c.values_mut()?,
        })
    }
}

struct Transfer {
    device: DeviceSide,
    host: HostSide,
}

impl Routine for Transfer {
    fn poison(&mut self) -> Result<(), RoutineError> {
        fill(self.host.matrices()?.c, f32::NAN);
        Ok(self.device.copies.poison(&self.device.gpu)?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        Ok(self.device.run(self.host.matrices()?)?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let problem = &self.device.problem;
        let error = problem.error_of_rows(0, self.host.c.values()?);
        Ok(problem.verified(error))
    }
}
