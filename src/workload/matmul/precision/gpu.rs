//! Products on tensor cores: of operands that are converted once, outside of what is timed, and in f32, with
//! each operand as a sum of parts in fewer bits, whose products are added in f32. Splitting is part of each run.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Absence, Gpu};
use crate::model::{Cost, Format};
use crate::timing::Launch;
use crate::workload::matmul::gpu::check_by_rows;
use crate::workload::matmul::precision::problem::{PRECISION, accumulation_bound, bound};
use crate::workload::matmul::problem::{self, Matmul};
use crate::workload::prepare::{Device, Prepared, Stream};
use crate::workload::product::{FP8_SCALE, GpuPlan, Matrix, Product, Workspace, properties};
use crate::workload::routine::{Result, Routine, RoutineError};

/// Parts of each operand. The six products whose parts i of A and j of B have i + j less than this are
/// computed: all that are as large as 2^-16 of the largest.
const PARTS: usize = 3;

/// Kernels that split an operand each.
const SPLITS: u32 = 2;

/// Columns of the parts of A side by side, and the rows of the parts of B that meet them.
#[derive(Debug, PartialEq)]
struct Terms {
    a: Range<usize>,
    b: Range<usize>,
}

/// The products at `k` terms, smallest first.
///
/// The parts of A lie side by side, the largest first, and those of B one below the other,
/// the smallest first. So all products of one order (i + j) are one product of a longer sum:
/// A0 B2 + A1 B1 + A2 B0 = [A0 A1 A2] [B2; B1; B0]. Only the largest, A0 B0, is worth adding
/// in f32 after every `chunk` terms: the others are smaller by a factor of 2^-8 at least, and so
/// is what the tensor core cuts off of them.
fn terms(k: usize, chunk: usize) -> Vec<Terms> {
    let mut terms: Vec<Terms> = (1..PARTS)
        .rev()
        .map(|order| {
            let first = (order + 1).saturating_sub(PARTS);
            let last = order.min(PARTS - 1);
            // Part `last` of A meets part `order - last` of B, which is `first`.
            Terms {
                a: first * k..(last + 1) * k,
                b: (PARTS - 1 - last) * k..(PARTS - first) * k,
            }
        })
        .collect();
    let chunk = chunk.min(k);
    let b0 = (PARTS - 1) * k;
    terms.extend((0..k).step_by(chunk).map(|begin| {
        let end = k.min(begin + chunk);
        Terms {
            a: begin..end,
            b: b0 + begin..b0 + end,
        }
    }));
    terms
}

/// As [`matmul::cost`](crate::workload::matmul::cost), with the kernels of [`split`].
pub fn cost_split(n: u64, chunk: usize) -> Cost {
    let products = terms(n as usize, chunk).len();
    problem::cost(n).launches(SPLITS + products as u32)
}

/// The kernels that split A and B of order `n` into their parts.
fn splitting_kernels(
    gpu: &Gpu,
    n: usize,
    [a, b]: [CUdeviceptr; 2],
    [to_a, to_b]: [CUdeviceptr; 2],
) -> Result<[Launch; SPLITS as usize]> {
    // Where rows are aligned to four elements, a thread takes as many.
    let (kernel, values) = if n.is_multiple_of(4) {
        ("split_bf16", 4)
    } else {
        ("split_bf16_any", 1)
    };
    let splitting = |from: CUdeviceptr, to: CUdeviceptr, pitch: usize, first: usize, step: i64| {
        let rows = u32::try_from(n)?;
        let grid = (rows.div_ceil(THREADS * values), rows, 1);
        let launch = Launch::new(gpu.function(&PRECISION, kernel)?, grid, (THREADS, 1, 1));
        let launch = launch.arg(from).arg(to).arg(n as u64).arg(pitch as u64);
        Ok::<_, RoutineError>(launch.arg(first as u64).arg(step))
    };
    let matrix = i64::try_from(n * n)?;
    Ok([
        splitting(a, to_a, PARTS * n, 0, i64::try_from(n)?)?,
        splitting(b, to_b, n, (PARTS - 1) * n * n, -matrix)?,
    ])
}

/// An f32 product of operands that are each a sum of three parts in BF16. Of the largest product, runs
/// of `chunk` terms are added in the tensor core, and the runs in f32.
///
/// # Errors
/// `chunk` 0, a device too old for BF16
/// ([`Absence::DeviceLacks`](crate::device::Absence::DeviceLacks)), and errors of CUDA and cuBLAS.
pub fn split(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, chunk: usize) -> Result<Box<dyn Routine>> {
    if chunk == 0 {
        return Err("a run of 0 terms makes no sum; choose 1 or more".into());
    }
    let of_parts = properties(Format::Bf16);
    of_parts.require(gpu)?;
    let n = problem.shape().n;
    let inputs = problem.device_inputs(gpu)?;
    let mut work = Prepared::new(gpu)?;
    let c = work.output(problem.shape().c_len())?;
    let mut parts = || work.alloc::<u8>(PARTS * n * n * of_parts.bytes);
    let [to_a, to_b] = [parts()?.address, parts()?.address];
    let from = inputs.matrices.map(|matrix| matrix.address);
    let splits = splitting_kernels(gpu, n, from, [to_a, to_b])?;
    // SAFETY: the arguments are those that the splitting kernels declare; operands are n x n floats,
    // and there is room for an element of the format for each of them in each part.
    unsafe { work.steps.kernels(Stream::Compute, splits) };
    let a = Matrix::new(to_a, Format::Bf16, n, PARTS * n);
    let b = Matrix::new(to_b, Format::Bf16, PARTS * n, n);
    let whole = Matrix::new(c.address, Format::F32, n, n);
    let (terms, all) = (terms(n, chunk), 0..n);
    let chunk = chunk.min(n);
    work.notes = vec![format!(
        "{SPLITS} splitting kernels, {} products, {chunk} terms at a time in the tensor core",
        terms.len()
    )];
    for (i, terms) in terms.into_iter().enumerate() {
        let product = Product {
            added: (i > 0).then_some(c.address),
            ..Product::new(
                "a part",
                [a.block(&all, &terms.a), b.block(&terms.b, &all), whole],
            )
        };
        let plan = GpuPlan::cublas(gpu, &product)?;
        // A product is at most a kernel and one that adds up its pieces.
        // SAFETY: each takes columns of the parts of A and rows of those of B, within both, and
        // writes the whole of C, which is distinct from them.
        (work.steps).call_on(Stream::Compute, 2, move |stream| unsafe {
            plan.enqueue(stream)
        });
    }
    work.keep(&inputs.memory);
    let bound = accumulation_bound(problem.shape().k, chunk);
    check_by_rows(&mut work, problem, c, Some(bound));
    Ok(Box::new(work))
}

/// Threads of a block; each block works on one row.
pub(super) const THREADS: u32 = 256;

/// A product of operands in one format by cuBLAS, or in FP8 by cuBLASLt, which alone takes that.
///
/// # Errors
/// An order that the library does not take in this format, a device that is too old for it
/// ([`Absence::DeviceLacks`](crate::device::Absence::DeviceLacks)), and errors of CUDA and
/// cuBLAS.
pub fn product(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, format: Format) -> Result<Box<dyn Routine>> {
    let (properties, n) = (properties(format), problem.shape().n);
    properties.require(gpu)?;
    if !n.is_multiple_of(properties.multiple) {
        let multiple = properties.multiple;
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
    let gpu = work.memory.gpu.clone();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The pairs (part of A, part of B, term) that a list of products adds up.
    fn pairs(k: usize, all: &[Terms]) -> Vec<(usize, usize, usize)> {
        let mut pairs = Vec::new();
        for Terms { a, b } in all {
            assert_eq!(a.len(), b.len());
            for (a, b) in a.clone().zip(b.clone()) {
                assert_eq!(a % k, b % k, "terms of different columns meet");
                pairs.push((a / k, PARTS - 1 - b / k, a % k));
            }
        }
        pairs
    }

    #[test]
    fn each_pair_of_parts_up_to_the_order_meets_once_at_every_term() {
        for (k, chunk) in [(8, 8), (8, 3), (10, 4), (7, 100)] {
            let found = pairs(k, &terms(k, chunk));
            let mut sorted = found.clone();
            sorted.sort_unstable();
            let mut expected = Vec::new();
            for i in 0..PARTS {
                for j in 0..PARTS - i {
                    expected.extend((0..k).map(|t| (i, j, t)));
                }
            }
            expected.sort_unstable();
            assert_eq!(sorted, expected);
            let orders: Vec<usize> = found.iter().map(|(i, j, _)| i + j).collect();
            assert!(
                orders.is_sorted_by(|x, y| x >= y),
                "the largest are not last"
            );
        }
    }

    #[test]
    fn only_the_largest_product_is_cut_into_runs() {
        assert_eq!(terms(8192, 512).len(), 2 + 16);
        assert_eq!(terms(1000, 512).len(), 2 + 2);
    }
}
