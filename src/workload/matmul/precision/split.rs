//! An f32 product on tensor cores: each operand as a sum of parts in fewer bits, whose
//! products are added in f32. Splitting is part of each run.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::timing::Launch;
use crate::workload::matmul::gemm::{Call, Gemm, Matrix};
use crate::workload::matmul::gpu::check_by_rows;
use crate::workload::matmul::precision::converted::THREADS;
use crate::workload::matmul::precision::format::Format;
use crate::workload::matmul::precision::problem::{PRECISION, accumulation_bound};
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::shape::Shape;
use crate::workload::prepare::{On, Prepared};
use crate::workload::routine::{Made, RoutineError};

/// The parts of each operand, and which of their products are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Two TF32 parts, three products: all but that of the two small ones.
    Tf32x3,
    /// Three BF16 parts, six products: all that are as large as 2^-16 of the largest.
    Bf16x6,
}

impl Scheme {
    /// The number format of the parts.
    pub fn format(self) -> Format {
        match self {
            Scheme::Tf32x3 => Format::Tf32,
            Scheme::Bf16x6 => Format::Bf16,
        }
    }

    /// Number of products.
    pub fn products(self) -> u32 {
        let parts = self.parts() as u32;
        parts * (parts + 1) / 2
    }

    /// Parts of each operand. Products of part i of A and part j of B are computed where i + j is less.
    fn parts(self) -> usize {
        match self {
            Scheme::Tf32x3 => 2,
            Scheme::Bf16x6 => 3,
        }
    }

    /// Entry point of the splitting kernel where rows are aligned to four elements, and
    /// where not.
    fn kernels(self) -> [&'static str; 2] {
        match self.format() {
            Format::Tf32 => ["split_tf32", "split_tf32_any"],
            _ => ["split_bf16", "split_bf16_any"],
        }
    }
}

/// Columns of the parts of A side by side, and the rows of the parts of B that meet them.
#[derive(Debug, PartialEq)]
struct Terms {
    a: Range<usize>,
    b: Range<usize>,
}

/// The products of a scheme at `k` terms, smallest first.
///
/// The parts of A lie side by side, the largest first, and those of B one below the other,
/// the smallest first. So all products of one order (i + j) are one product of a longer sum:
/// A0 B2 + A1 B1 + A2 B0 = [A0 A1 A2] [B2; B1; B0]. Only the largest, A0 B0, is worth adding
/// in f32 after every `chunk` terms: the others are smaller by a factor of 2^-8 at least, and so
/// is what the tensor core cuts off of them.
fn terms(scheme: Scheme, k: usize, chunk: usize) -> Vec<Terms> {
    let parts = scheme.parts();
    let mut all: Vec<Terms> = (1..parts)
        .rev()
        .map(|order| {
            let first = (order + 1).saturating_sub(parts);
            let last = order.min(parts - 1);
            // Part `last` of A meets part `order - last` of B, which is `first`.
            Terms {
                a: first * k..(last + 1) * k,
                b: (parts - 1 - last) * k..(parts - first) * k,
            }
        })
        .collect();
    let chunk = chunk.min(k);
    let b0 = (parts - 1) * k;
    all.extend((0..k).step_by(chunk).map(|begin| {
        let end = k.min(begin + chunk);
        Terms {
            a: begin..end,
            b: b0 + begin..b0 + end,
        }
    }));
    all
}

/// An f32 product by `scheme`. Of the largest product, runs of `chunk` terms are added in the
/// tensor core, and the runs in f32; with [`usize::MAX`] the whole sum is one run.
///
/// # Errors
/// `chunk` 0, a device too old for the format of the parts
/// ([`Absence::DeviceLacks`](crate::device::Absence::DeviceLacks)), and errors of CUDA and cuBLAS.
pub fn split(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, scheme: Scheme, chunk: usize) -> Made {
    if chunk == 0 {
        return Err("a run of 0 terms makes no sum; choose 1 or more".into());
    }
    let format = scheme.format();
    format.require(gpu)?;
    let n = problem.shape().n;
    let parts = scheme.parts();
    let inputs = problem.device_inputs(gpu)?;
    let mut work = Prepared::new(gpu)?;
    let c = work.output(problem.shape().c_len())?;
    let bytes = format.facts().bytes;
    let [to_a, to_b] = [
        work.alloc::<u8>(parts * n * n * bytes)?.address,
        work.alloc::<u8>(parts * n * n * bytes)?.address,
    ];

    let splitting = |from: CUdeviceptr, to: CUdeviceptr, pitch: usize, first: usize, step: i64| {
        let aligned = n.is_multiple_of(4);
        let kernel = scheme.kernels()[usize::from(!aligned)];
        let per_block = THREADS * if aligned { 4 } else { 1 };
        let rows = u32::try_from(n)?;
        let grid = (rows.div_ceil(per_block), rows, 1);
        let function = gpu.function(&PRECISION, kernel)?;
        let launch = Launch::new(function, grid, (THREADS, 1, 1))
            .arg(from)
            .arg(to);
        let (pitch, first) = (pitch as u64, first as u64);
        Ok::<_, RoutineError>(launch.arg(n as u64).arg(pitch).arg(first).arg(step))
    };
    let matrix = i64::try_from(n * n)?;
    let [a, b] = inputs.addresses();
    let splits = [
        splitting(a, to_a, parts * n, 0, i64::try_from(n)?)?,
        splitting(b, to_b, n, (parts - 1) * n * n, -matrix)?,
    ];
    // SAFETY: the arguments are those that the splitting kernels declare; operands are n x n floats,
    // and there is room for an element of the format for each of them in each part.
    unsafe { work.steps.kernels(On::Compute, splits) };
    let at = |base: CUdeviceptr, elements: usize| base + (elements * bytes) as CUdeviceptr;
    let terms = terms(scheme, n, chunk);
    let chunk = chunk.min(n);
    work.notes = vec![format!(
        "{scheme:?}: 2 splitting kernels, {} products, {chunk} terms at a time in the tensor core",
        terms.len()
    )];
    for (i, terms) in terms.into_iter().enumerate() {
        let part = Shape {
            k: terms.a.len(),
            ..problem.shape()
        };
        let matrices = [
            (at(to_a, terms.a.start), parts * n),
            (at(to_b, terms.b.start * n), n),
            (c.address, n),
        ]
        .map(|(address, pitch)| Matrix { address, pitch });
        let product = Gemm::new(gpu, Call::In(format), part, matrices, i > 0)?;
        // A product is at most a kernel and one that adds up its pieces.
        // SAFETY: each takes columns of the parts of A and rows of those of B, within both, and
        // writes the whole of C, which is distinct from them.
        (work.steps).call_on(On::Compute, 2, move |_| unsafe { product.enqueue() });
    }
    work.keep(&inputs);
    let bound = accumulation_bound(problem.shape().k, chunk);
    check_by_rows(&mut work, problem, c, |_| {}, Some(bound));
    Ok(Box::new(work))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: [Scheme; 2] = [Scheme::Tf32x3, Scheme::Bf16x6];

    /// The pairs (part of A, part of B, term) that a list of products adds up.
    fn pairs(scheme: Scheme, k: usize, all: &[Terms]) -> Vec<(usize, usize, usize)> {
        let mut pairs = Vec::new();
        for Terms { a, b } in all {
            assert_eq!(a.len(), b.len());
            for (a, b) in a.clone().zip(b.clone()) {
                assert_eq!(a % k, b % k, "terms of different columns meet");
                pairs.push((a / k, scheme.parts() - 1 - b / k, a % k));
            }
        }
        pairs
    }

    #[test]
    fn each_pair_of_parts_up_to_the_order_meets_once_at_every_term() {
        for scheme in SCHEMES {
            for (k, chunk) in [(8, 8), (8, 3), (10, 4), (7, 100)] {
                let found = pairs(scheme, k, &terms(scheme, k, chunk));
                let mut sorted = found.clone();
                sorted.sort_unstable();
                let mut expected = Vec::new();
                for i in 0..scheme.parts() {
                    for j in 0..scheme.parts() {
                        if i + j < scheme.parts() {
                            expected.extend((0..k).map(|t| (i, j, t)));
                        }
                    }
                }
                expected.sort_unstable();
                assert_eq!(sorted, expected, "{scheme:?}");
                let orders: Vec<usize> = found.iter().map(|(i, j, _)| i + j).collect();
                assert!(
                    orders.is_sorted_by(|x, y| x >= y),
                    "the largest are not last"
                );
            }
        }
    }

    #[test]
    fn only_the_largest_product_is_cut_into_runs() {
        assert_eq!(terms(Scheme::Tf32x3, 8192, 8192).len(), 2);
        assert_eq!(terms(Scheme::Tf32x3, 8192, 1024).len(), 1 + 8);
        assert_eq!(terms(Scheme::Bf16x6, 8192, 512).len(), 2 + 16);
        assert_eq!(terms(Scheme::Bf16x6, 1000, 512).len(), 2 + 2);
    }

    #[test]
    fn every_kernel_is_in_the_source() {
        for name in SCHEMES.iter().flat_map(|s| s.kernels()) {
            assert!(PRECISION.text.contains(&format!(" {name}(")), "{name}");
        }
    }
}
