//! The product end to end: operands from host memory, the result back to it.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, PinnedHostSlice, result, sys::CUdeviceptr};

use super::Matmul;
use super::gpu::{Sgemm, address};
use crate::device::{CudaError, Gpu};
use crate::record::Verified;
use crate::workload::{Routine, RoutineError};

/// Two uploads from pageable memory, cuBLAS SGEMM, one download to pageable memory, one after
/// the other. The device memory is there already. Synchronises: time it on the wall clock.
pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError> {
    let c = vec![f32::NAN; problem.n * problem.n];
    Ok(Box::new(Transfer {
        device: DeviceSide::new(gpu, problem)?,
        host: Pageable {
            problem: Rc::clone(problem),
            c,
        },
    }))
}

/// The same from and to pinned memory.
pub fn transfer_pinned(
    gpu: &Rc<Gpu>,
    problem: &Rc<Matmul>,
) -> Result<Box<dyn Routine>, RoutineError> {
    let pinned = |values: &[f32]| -> Result<_, CudaError> {
        let mut copy = gpu.alloc_pinned(values.len())?;
        slice_mut(&mut copy)?.copy_from_slice(values);
        Ok(copy)
    };
    let host = Pinned {
        a: pinned(&problem.a)?,
        b: pinned(&problem.b)?,
        c: gpu.alloc_pinned(problem.n * problem.n)?,
    };
    Ok(Box::new(Transfer {
        device: DeviceSide::new(gpu, problem)?,
        host,
    }))
}

/// Device memory of its own: with the inputs that other implementations share, an upload
/// that never happened would go unnoticed.
struct DeviceSide {
    gpu: Rc<Gpu>,
    problem: Rc<Matmul>,
    a: CudaSlice<f32>,
    b: CudaSlice<f32>,
    c: CudaSlice<f32>,
    sgemm: Sgemm,
}

impl DeviceSide {
    fn new(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Self, RoutineError> {
        let n = problem.n;
        let (a, b, c) = (gpu.alloc(n * n)?, gpu.alloc(n * n)?, gpu.alloc(n * n)?);
        let [from_a, from_b, to_c] = [&a, &b, &c].map(|slice| address(gpu, slice));
        let sgemm = Sgemm::new(gpu, n, from_a, from_b, to_c)?;
        Ok(Self {
            gpu: Rc::clone(gpu),
            problem: Rc::clone(problem),
            a,
            b,
            c,
            sgemm,
        })
    }

    /// Overwrites all three, so that a missing upload is found as well.
    fn poison(&mut self) -> Result<(), CudaError> {
        for slice in [&mut self.a, &mut self.b, &mut self.c] {
            self.gpu.poison(slice)?;
        }
        self.gpu.synchronize()
    }

    /// Uploads A and B, multiplies, downloads C, and waits.
    fn run(&self, host: Matrices<'_>) -> Result<(), CudaError> {
        let outcome = self.enqueue(host);
        // Waits even after an error: what was enqueued before it may still use the slices.
        let waited = self.gpu.synchronize();
        outcome.and(waited)
    }

    fn enqueue(&self, host: Matrices<'_>) -> Result<(), CudaError> {
        let stream = self.gpu.stream().cu_stream();
        let at = |slice| -> CUdeviceptr { address(&self.gpu, slice) };
        let sent = |e| CudaError::new("cuMemcpyHtoDAsync", e);
        // SAFETY: device and host slices hold n x n floats each, and all of them outlive the
        // wait in `run`; C is distinct from A and B.
        unsafe {
            result::memcpy_htod_async(at(&self.a), host.a, stream).map_err(sent)?;
            result::memcpy_htod_async(at(&self.b), host.b, stream).map_err(sent)?;
            self.sgemm.enqueue()?;
            result::memcpy_dtoh_async(host.c, at(&self.c), stream)
                .map_err(|e| CudaError::new("cuMemcpyDtoHAsync", e))
        }
    }
}

/// The host's side: where the operands come from and the result goes.
trait HostSide {
    fn matrices(&mut self) -> Result<Matrices<'_>, CudaError>;
}

/// The three matrices in host memory.
struct Matrices<'a> {
    a: &'a [f32],
    b: &'a [f32],
    c: &'a mut [f32],
}

struct Pageable {
    problem: Rc<Matmul>,
    c: Vec<f32>,
}

impl HostSide for Pageable {
    fn matrices(&mut self) -> Result<Matrices<'_>, CudaError> {
        Ok(Matrices {
            a: &self.problem.a,
            b: &self.problem.b,
            c: &mut self.c,
        })
    }
}

struct Pinned {
    a: PinnedHostSlice<f32>,
    b: PinnedHostSlice<f32>,
    c: PinnedHostSlice<f32>,
}

impl HostSide for Pinned {
    fn matrices(&mut self) -> Result<Matrices<'_>, CudaError> {
        let failed = |e| CudaError::new("cuEventSynchronize", e);
        Ok(Matrices {
            a: self.a.as_slice().map_err(failed)?,
            b: self.b.as_slice().map_err(failed)?,
            c: slice_mut(&mut self.c)?,
        })
    }
}

fn slice_mut(pinned: &mut PinnedHostSlice<f32>) -> Result<&mut [f32], CudaError> {
    pinned
        .as_mut_slice()
        .map_err(|e| CudaError::new("cuEventSynchronize", e))
}

struct Transfer<H> {
    device: DeviceSide,
    host: H,
}

impl<H: HostSide> Routine for Transfer<H> {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.host.matrices()?.c.fill(f32::NAN);
        Ok(self.device.poison()?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        Ok(self.device.run(self.host.matrices()?)?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let problem = &self.device.problem;
        let error = problem.error_of_rows(0, self.host.matrices()?.c);
        Ok(problem.verified(error))
    }
}
