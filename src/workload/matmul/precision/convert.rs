//! Operands in another format, made on the device from those in f32.

use cudarc::driver::{CudaSlice, sys::CUdeviceptr};

use crate::device::gpu::Gpu;
use crate::timing::Launch;
use crate::workload::matmul::precision::format::Format;
use crate::workload::matmul::precision::problem::PRECISION;
use crate::workload::routine::RoutineError;

/// Threads of a block; each block works on one row.
pub(super) const THREADS: u32 = 256;

/// Converts the `n` x `n` f32 matrix at `from`, and transposes it where asked to. Waits until it is
/// done.
///
/// # Safety
/// `from` must be device memory of n x n floats.
pub(super) unsafe fn converted(
    gpu: &Gpu,
    format: Format,
    from: CUdeviceptr,
    n: usize,
    transposed: bool,
) -> Result<CudaSlice<u8>, RoutineError> {
    let function = gpu.function(&PRECISION, format.kernel())?;
    let to: CudaSlice<u8> = gpu.alloc(n * n * format.bytes())?;
    gpu.bind()?;
    let rows = u32::try_from(n)?;
    let grid = (rows.div_ceil(THREADS), rows, 1);
    let launch = Launch::new(function, grid, (THREADS, 1, 1))
        .arg(from)
        .arg(crate::workload::matmul::operands::address(gpu, &to))
        .arg(n as u64)
        .arg(n as u64)
        .arg(u64::from(transposed));
    // SAFETY: the arguments are those that every conversion declares; `to` has an element of
    // the format for each of the matrix, and both outlive the wait.
    unsafe { launch.launch(gpu.stream()) }?;
    gpu.synchronize()?;
    Ok(to)
}
