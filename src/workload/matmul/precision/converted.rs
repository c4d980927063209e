//! Products on tensor cores of operands that are converted once, outside of what is timed.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Absence, Gpu};
use crate::model::Format;
use crate::timing::Launch;
use crate::workload::matmul::gpu::check_by_rows;
use crate::workload::matmul::precision::problem::{PRECISION, bound};
use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::{Device, Prepared};
use crate::workload::product::{FP8_SCALE, GpuPlan, Matrix, Product, Workspace, properties};
use crate::workload::routine::{Result, Routine};

/// Threads of a block; each block works on one row.
pub(super) const THREADS: u32 = 256;

/// A product of operands in one format by cuBLAS, or in FP8 by cuBLASLt, which alone takes that.
///
/// # Errors
/// An order that the library does not take in this format, a device that is too old for it
/// ([`Absence::DeviceLacks`](crate::device::Absence::DeviceLacks)), and errors of CUDA and
/// cuBLAS.
pub fn product(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, format: Format) -> Result<Box<dyn Routine>> {
    let (of, n) = (properties(format), problem.shape().n);
    of.require(gpu)?;
    if !n.is_multiple_of(of.multiple) {
        let multiple = of.multiple;
        let takes = format!(
            "the library multiplies {format:?} only at orders that are a multiple of {multiple}, not {n}"
        );
        return Err(Absence::Size { takes }.into());
    }
    let is_fp8 = format == Format::Fp8;
    let inputs = problem.device_inputs(gpu)?;
    let mut work = Prepared::new(gpu)?;
    let [a, b] = inputs.matrices.map(|matrix| matrix.address);
    let a = converted(&mut work, format, a, n, false)?.address;
    // The library's 8-bit kernels sum along rows of both operands.
    let b = converted(&mut work, format, b, n, is_fp8)?.address;
    let c = work.output(problem.shape().c_len())?;
    let [a, b] = [a, b].map(|address| Matrix::new(address, format, n, n));
    let c_matrix = Matrix::new(c.address, Format::F32, n, n);
    let product = Product::new("a product", [a, b, c_matrix]);
    let plan = if is_fp8 {
        let product = Product {
            b: b.t(),
            factor: 1.0 / (FP8_SCALE * FP8_SCALE),
            ..product
        };
        // SAFETY: the routine keeps the three matrices of order `n`.
        let plans = unsafe { GpuPlan::cublaslt(&Workspace::new(gpu)?, product) }?;
        let first = plans.into_iter().next();
        first.ok_or("cuBLASLt has no algorithm for FP8 here")?
    } else {
        GpuPlan::cublas(gpu, &product)?
    };
    // SAFETY: the routine keeps the three matrices of order `n`; `converted` made A and B in the format.
    (work.steps).counted_call(move |stream| unsafe { plan.enqueue(stream) })?;
    check_by_rows(&mut work, problem, c, Some(bound(format, n)));
    Ok(Box::new(work))
}

/// The `n` x `n` f32 matrix at `from` in another format, transposed where asked to. Waits until it is
/// done.
fn converted(
    work: &mut Prepared,
    format: Format,
    from: CUdeviceptr,
    n: usize,
    transposed: bool,
) -> Result<Device<u8>> {
    let gpu = work.memory.gpu().clone();
    let to_format = properties(format);
    let function = gpu.function(&PRECISION, &format!("to_{}", to_format.suffix))?;
    let to = work.alloc(n * n * to_format.bytes)?;
    let rows = u32::try_from(n)?;
    let grid = (rows.div_ceil(THREADS), rows, 1);
    let launch = Launch::new(function, grid, (THREADS, 1, 1))
        .arg(from)
        .arg(to.address)
        .arg(n as u64)
        .arg(n as u64)
        .arg(u64::from(transposed));
    // SAFETY: the arguments are those that every conversion declares; `to` has an element of
    // the format for each of the matrix, and both outlive the wait.
    unsafe { launch.launch(gpu.stream()) }?;
    gpu.synchronize()?;
    Ok(to)
}
