//! The result of a product in device memory, and its check.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, result, sys::CUdeviceptr};

use crate::device::gpu::Gpu;
use crate::timing::CudaError;
use crate::workload::matmul::operands::address;
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::reference::worse;

/// A result is fetched for its check in pieces of about this many values (64 MiB): at the
/// largest order the whole would take 4 GiB more of host memory.
const CHECK_VALUES: usize = 1 << 24;

/// C in device memory.
pub(super) struct Output {
    gpu: Rc<Gpu>,
    problem: Rc<Matmul>,
    c: CudaSlice<f32>,
}

impl Output {
    pub(super) fn new(gpu: &Rc<Gpu>, problem: &Rc<Matmul>) -> Result<Self, CudaError> {
        Ok(Self {
            c: gpu.alloc(problem.shape.c_len())?,
            gpu: Rc::clone(gpu),
            problem: Rc::clone(problem),
        })
    }

    pub(super) fn gpu(&self) -> &Rc<Gpu> {
        &self.gpu
    }

    pub(super) fn problem(&self) -> &Rc<Matmul> {
        &self.problem
    }

    pub(super) fn address(&self) -> CUdeviceptr {
        address(&self.gpu, &self.c)
    }

    pub(super) fn poison(&mut self) -> Result<(), CudaError> {
        self.gpu.poison(&mut self.c)
    }

    /// Overwrites the result with one byte.
    pub(super) fn fill(&mut self, byte: u8) -> Result<(), CudaError> {
        let (address, bytes) = (self.address(), self.c.num_bytes());
        // SAFETY: the range is the slice's own memory.
        unsafe { result::memset_d8_async(address, byte, bytes, self.gpu.stream().cu_stream()) }
            .map_err(|e| CudaError::new("cuMemsetD8Async", e))
    }

    /// The largest error of the result, whose values `decode` first turns into those of C.
    pub(super) fn error(&self, decode: fn(&mut [f32])) -> Result<f64, CudaError> {
        let (total, n) = (self.problem.shape.rows(), self.problem.shape.n);
        let rows = (CHECK_VALUES / n).clamp(1, total);
        let mut values = vec![f32::NAN; rows * n];
        let mut error = 0.0;
        for first in (0..total).step_by(rows) {
            let rows = rows.min(total - first);
            let values = &mut values[..rows * n];
            // Else a piece that was not copied would pass as the one before it.
            values.fill(f32::NAN);
            self.gpu
                .stream()
                .memcpy_dtoh(&self.c.slice(first * n..(first + rows) * n), values)
                .map_err(|e| CudaError::new("cuMemcpyDtoHAsync", e))?;
            self.gpu.synchronize()?;
            decode(values);
            error = worse(error, self.problem.error_of_rows(first, values));
        }
        Ok(error)
    }
}
