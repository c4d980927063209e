//! Products on tensor cores of operands that are converted once, outside of what is timed.

use std::rc::Rc;

use cudarc::cublaslt::sys::cudaDataType::{CUDA_R_8F_E4M3 as FP8, CUDA_R_32F as F32};
use cudarc::driver::{CudaStream, sys::CUdeviceptr};

use crate::device::{Absence, Gpu};
use crate::timing::Launch;
use crate::workload::matmul::gemm::{Call, Gemm, Matrix};
use crate::workload::matmul::gpu::check_by_rows;
use crate::workload::matmul::precision::format::{FP8_SCALE, Format};
use crate::workload::matmul::precision::problem::PRECISION;
use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::{
    Algorithm, Device, Epilogue, LtProduct, Operand, Prepared, Product, Workspace,
};
use crate::workload::routine::{Made, RoutineError};

/// Threads of a block; each block works on one row.
pub(super) const THREADS: u32 = 256;

/// A product of operands in one format by cuBLAS, or in FP8 by cuBLASLt.
///
/// # Errors
/// An order that the library does not take in this format, a device that is too old for it
/// ([`Absence::DeviceLacks`](crate::device::Absence::DeviceLacks)), and errors of CUDA and
/// cuBLAS.
pub fn product(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, format: Format) -> Made {
    format.require(gpu)?;
    let n = problem.shape().n;
    if !n.is_multiple_of(format.facts().multiple) {
        let takes = format!(
            "the library multiplies {format:?} only at orders that are a multiple of {}, not {n}",
            format.facts().multiple
        );
        return Err(Absence::Size { takes }.into());
    }
    let inputs = problem.device_inputs(gpu)?;
    let mut work = Prepared::new(gpu)?;
    let [a, b] = inputs.addresses();
    let a = converted(&mut work, format, a, n, false)?.address;
    let b = converted(&mut work, format, b, n, format.transposes_b())?.address;
    let c = work.output(problem.shape().c_len())?;
    if format == Format::Fp8 {
        let (product, best) = fp8(gpu, n, [a, b, c.address])?;
        (work.steps).counted_call(move |stream| {
            // SAFETY: the routine keeps the three matrices of order `n`; `converted` made A and B in the format.
            unsafe { product.enqueue(&best, stream) }
        })?;
    } else {
        let whole = |address| Matrix { address, pitch: n };
        let matrices = [a, b, c.address].map(whole);
        let product = Gemm::new(gpu, Call::In(format), problem.shape(), matrices, false)?;
        // SAFETY: the routine keeps the three matrices of order `n`; `converted` made A and B in the format.
        let enqueue = move |_: &CudaStream| unsafe { product.enqueue() };
        work.steps.counted_call(enqueue)?;
    }
    check_by_rows(&mut work, problem, c, Some(format.bound(n)));
    Ok(Box::new(work))
}

/// C = A B of order `n` by cuBLASLt, which alone takes FP8: A by rows, B by columns, both scaled, C in
/// f32 by rows.
fn fp8(
    gpu: &Gpu,
    n: usize,
    [a, b, c]: [CUdeviceptr; 3],
) -> Result<(LtProduct, Algorithm), RoutineError> {
    let matrix = |address, element, transposed| Operand {
        address,
        element,
        rows: n,
        columns: n,
        transposed,
    };
    let product = Product {
        name: "FP8",
        a: matrix(a, FP8, false),
        b: matrix(b, FP8, true),
        c: matrix(c, F32, false),
        factor: 1.0 / (FP8_SCALE * FP8_SCALE),
        epilogue: Epilogue::Nothing,
        added: None,
        count: 1,
        own: false,
    };
    // SAFETY: `resident` gives the addresses of its three matrices of order `n`, which it keeps.
    let (product, algorithms) = unsafe { LtProduct::new(&Workspace::new(gpu)?, product) }?;
    let best = algorithms.first().copied();
    Ok((
        product,
        best.ok_or("cuBLASLt has no algorithm for FP8 here")?,
    ))
}

/// The `n` x `n` f32 matrix at `from` in another format, transposed where asked to. Waits until it is
/// done.
fn converted(
    work: &mut Prepared,
    format: Format,
    from: CUdeviceptr,
    n: usize,
    transposed: bool,
) -> Result<Device<u8>, RoutineError> {
    let gpu = work.memory.gpu().clone();
    let function = gpu.function(&PRECISION, format.facts().kernel)?;
    let to = work.alloc(n * n * format.facts().bytes)?;
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
