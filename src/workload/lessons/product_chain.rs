//! A chain of matrix products on the device with a small step after each, which the CPU may take: what
//! it costs to move the matrix there and back.
//!
//! The size is the order N. Each of the 8 steps multiplies the matrix X from the left by the constant
//! matrix A, and divides each row of the product by its largest magnitude.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;
use rayon::prelude::*;

use crate::device::{Gpu, kernel::Source};
use crate::model::{Cost, Format, Launches, Verified};
use crate::timing::{CudaError, Launch};
use crate::workload::matmul::{UNIT_ROUNDOFF, uniform};
use crate::workload::prepare::{
    Device, HostMemory, Prepared, Steps, Stream, Threads, kernels, wide,
};
use crate::workload::product::{CUBLAS_WORKSPACE, GpuPlan, Product, Shape};
use crate::workload::routine::{Result, Routine, Workload, visit_f32};
use crossover_arithmetic::{Number, error::worse};
use crossover_results::statistics::median::median;

/// The kernel of the small step.
pub static PRODUCT_CHAIN: Source = kernels!("product_chain.cu", after "values.cuh");

/// Products of the chain.
pub const PRODUCTS: usize = 8;
/// Threads of a block of the small step, a warp for each row.
const THREADS: u32 = 256;
/// Values per task of the CPU's step.
const GRAIN: usize = 1 << 13;
/// Iterations by which the share of copies and waits is measured.
const TIMED: usize = 9;

/// The constant matrix, and the one that the chain begins with.
pub struct ProductChain {
    n: usize,
    a: Vec<f32>,
    x: Vec<f32>,
}

impl Workload for ProductChain {
    fn new(size: u64) -> Self {
        let n = size as usize;
        let [a, x] = [1, 2].map(|stream| uniform(n * n, stream));
        Self { n, a, x }
    }

    fn host_bytes(size: u64) -> u64 {
        // The inputs, a pinned matrix, and all intermediate matrices for the check.
        4 * (3 + 2 * PRODUCTS as u64) * size * size
    }

    fn device_bytes(size: u64) -> u64 {
        4 * (2 + 2 * PRODUCTS as u64) * size * size + CUBLAS_WORKSPACE
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&PRODUCT_CHAIN] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.a, visit);
        visit_f32(&self.x, visit);
    }
}

/// Each product reads two matrices and writes one; each small step reads one and writes one.
pub fn cost(size: u64) -> Cost {
    let (products, n) = (PRODUCTS as f64, size as f64);
    Cost::default()
        .flop(products * (2.0 * n.powi(3) + 2.0 * n * n))
        .bytes(4.0 * products * 5.0 * n * n)
        .written(4.0 * products * 2.0 * n * n)
        .launches(2 * PRODUCTS as u32)
}

/// As [`cost`], with each product downloaded, and each normalised matrix uploaded.
pub fn cost_hybrid(size: u64) -> Cost {
    let each_way = 4.0 * PRODUCTS as f64 * (size as f64).powi(2);
    let of_products = cost(size).launches(PRODUCTS as u32);
    of_products.over_link(each_way, each_way)
}

/// Adds a product of two matrices of order `n` to the steps of an iteration, and to those of the products
/// alone.
///
/// # Safety
/// The matrices, of which the last is the result, must be memory of the routine.
unsafe fn add_product(
    gpu: &Gpu,
    [steps, products]: [&mut Steps; 2],
    matrices: [Device<f32>; 3],
    n: usize,
) -> Result<()> {
    let addresses = matrices.map(|matrix| matrix.address);
    let product = Product::whole(Shape::square(n), Format::F32, addresses);
    let plan = Rc::new(GpuPlan::cublas(gpu, &product)?);
    let again = plan.clone();
    // SAFETY: the caller promises the matrices, and the stream runs one call at a time.
    products.call(move |stream: &CudaStream| unsafe { again.enqueue(stream) });
    // SAFETY: the same three matrices, and one call at a time.
    Ok(steps.counted_call(move |stream: &CudaStream| unsafe { plan.enqueue(stream) })?)
}

/// The kernel of a small step from the first matrix of order `n` to the second.
fn normalising(gpu: &Gpu, [from, to]: [Device<f32>; 2], n: usize) -> Result<Launch> {
    let blocks = u32::try_from(n.div_ceil(THREADS as usize / 32))?;
    let launch = gpu.launch(&PRODUCT_CHAIN, "normalise_rows", blocks, THREADS)?;
    Ok(launch.arg(from.address).arg(to.address).arg(n as u32))
}

/// The chain: launched one by one with a wait at the end, with a wait after each product and each small
/// step, as one graph, or with the small steps on the CPU. The last has a figure: the share of the time
/// in which neither the GPU multiplies nor the CPU computes, but copies run or one waits for the other.
///
/// # Errors
/// A way to launch that the chain does not have, errors of CUDA and its libraries.
pub fn chain(
    gpu: &Rc<Gpu>,
    problem: &Rc<ProductChain>,
    launching: Launches,
) -> Result<Box<dyn Routine>> {
    use Launches::{Fused, Graph, PartlyOnCpu, ReadBack, Synchronised};
    if [Fused, ReadBack].contains(&launching) {
        return Err(format!("a chain of products is not launched {launching:?}").into());
    }
    let (mut work, n) = (Prepared::new(gpu)?, problem.n);
    let a = work.upload(&problem.a)?;
    let mut x = work.upload(&problem.x)?;
    let host = work.host_output(HostMemory::Pinned, f32::NAN, n * n)?;
    let threads = (launching == PartlyOnCpu).then(|| Rc::new(Threads::all()));
    let on_cpu = Rc::new(Cell::new(Duration::ZERO));
    let mut products = Steps::new(gpu)?;
    let mut computed = Vec::with_capacity(PRODUCTS);
    for _ in 0..PRODUCTS {
        let (product, next) = (work.output::<f32>(n * n)?, work.output::<f32>(n * n)?);
        let steps = &mut work.steps;
        // SAFETY: the routine owns the three matrices of order `n`.
        unsafe { add_product(gpu, [steps, &mut products], [a, x, product], n) }?;
        if launching == Synchronised {
            steps.wait(Stream::Compute);
        }
        if let Some(threads) = &threads {
            let (threads, on_cpu) = (threads.clone(), on_cpu.clone());
            let small_step = move |values: &mut [f32]| {
                let start = Instant::now();
                normalise(values, n, &threads);
                on_cpu.set(on_cpu.get() + start.elapsed());
            };
            // SAFETY: the routine owns the matrices and the host memory, of as many values each.
            unsafe { steps.on_cpu([product, next].map(|it| it.address), host, small_step) };
        } else {
            // SAFETY: the routine owns both matrices of order `n`.
            unsafe { steps.kernel(normalising(gpu, [product, next], n)?) };
            if launching == Synchronised {
                steps.wait(Stream::Compute);
            }
        }
        computed.push([product, next]);
        x = next;
    }
    if launching == Graph {
        work.steps.replay()?;
    }
    if launching == PartlyOnCpu {
        let share = copies_and_waits(&work.steps, &products, &on_cpu)?;
        (work.figures).insert("copies_and_waits_share".to_owned(), share);
    }
    (work.waits, work.threads) = (true, threads);
    let problem = problem.clone();
    work.check_by(move |memory| {
        let read = |pair: &[_; 2]| Ok([memory.read(pair[0])?, memory.read(pair[1])?]);
        let computed: Result<Vec<_>, CudaError> = computed.iter().map(read).collect();
        Ok(verify(&problem, &computed?))
    });
    Ok(Box::new(work))
}

/// The share of an iteration in which neither a product nor the CPU's step runs.
fn copies_and_waits(
    steps: &Steps,
    products: &Steps,
    on_cpu: &Cell<Duration>,
) -> Result<f64, CudaError> {
    let timed = |steps: &Steps| {
        let start = Instant::now();
        steps.run()?;
        Ok::<_, CudaError>(start.elapsed())
    };
    let share = |_| {
        let products = timed(products)?;
        on_cpu.take();
        let iteration = timed(steps)?;
        Ok(1.0 - (products + on_cpu.get()).as_secs_f64() / iteration.as_secs_f64())
    };
    let shares: Vec<f64> = (0..TIMED).map(share).collect::<Result<_, CudaError>>()?;
    Ok(median(shares).unwrap_or_default())
}

/// Each row of a matrix of order `n`, divided by its largest magnitude.
fn normalise(values: &mut [f32], n: usize, threads: &Threads) {
    let rows = (GRAIN / n).max(1);
    let tasks = values.chunks_mut(rows * n).collect();
    threads.each(tasks, |rows| normalise_rows(rows, n));
}

wide! {
    fn normalise_rows(rows: &mut [f32], n: usize) {
        for row in rows.chunks_mut(n) {
            // Magnitudes are ordered as their bits are, and a maximum of integers takes vectors.
            let bits = row.iter().map(|value| value.abs().to_bits());
            let largest = f32::from_bits(bits.fold(0, u32::max));
            row.iter_mut().for_each(|value| *value /= largest);
        }
    }
}

/// Compares each step with float64, given what the device computed before it. Of a product P = A X, P v
/// is compared with A (X v) for two vectors v of signs, relative to the root mean square: Freivalds'
/// check, as of a [product](crate::workload::matmul::Matmul::verified), whose bound this is. Of a
/// normalised matrix every value is compared. Its values are at most 1, and it rounds once.
fn verify(problem: &ProductChain, computed: &[[Vec<f32>; 2]]) -> Verified {
    let n = problem.n;
    let times = |matrix: &[f32], v: &[f64]| -> Vec<f64> {
        let rows = matrix.par_chunks(n);
        rows.map(|row| Number::dot(row, v)).collect()
    };
    let signs = [1, 2].map(|stream| {
        let values = uniform::<f32>(n, stream);
        let signs: Vec<f64> = values.iter().map(|v| f64::from(v.signum())).collect();
        signs
    });
    let (mut error, mut x) = (0.0, &problem.x);
    for [product, next] in computed {
        for v in &signs {
            let expected = times(&problem.a, &times(x, v));
            let square = expected.iter().map(|e| e * e).sum::<f64>() / n as f64;
            let differences = times(product, v).into_iter().zip(&expected);
            error = differences
                .map(|(found, e)| (found - e).abs() / square.sqrt())
                .fold(error, worse);
        }
        for (row, normalised) in product.chunks(n).zip(next.chunks(n)) {
            let largest = row.iter().map(|v| f64::from(v.abs())).fold(0.0, worse);
            let differences = row.iter().zip(normalised);
            error = differences
                .map(|(&v, &y)| (f64::from(y) - f64::from(v) / largest).abs())
                .fold(error, worse);
        }
        x = next;
    }
    Verified {
        error,
        bound: 8.0 * UNIT_ROUNDOFF * (n as f64).sqrt(),
        method: "largest error of any step in float64: of products P v relative to the rms of A (X v), for \
                 2 vectors of signs (Freivalds), and of every normalised value"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chain with f32 sums, as the device computes it, the small step on `threads`.
    fn computed(problem: &ProductChain, threads: &Threads) -> Vec<[Vec<f32>; 2]> {
        let n = problem.n;
        let mut x = problem.x.clone();
        let step = |_| {
            let mut product = vec![0f32; n * n];
            for (row, a) in product.chunks_mut(n).zip(problem.a.chunks(n)) {
                for (&a, x) in a.iter().zip(x.chunks(n)) {
                    row.iter_mut().zip(x).for_each(|(p, &x)| *p += a * x);
                }
            }
            let mut next = product.clone();
            normalise(&mut next, n, threads);
            x.clone_from(&next);
            [product, next]
        };
        (0..PRODUCTS).map(step).collect()
    }

    #[test]
    fn f32_passes_and_each_wrong_step_does_not() {
        // More than one task of the CPU's step.
        let problem = ProductChain::new(129);
        let right = computed(&problem, &Threads::up_to(2));
        let verified = verify(&problem, &right);
        assert!(verified.passed(), "{verified:?}");
        assert!(verified.error > verified.bound / 100.0, "{verified:?}");
        let (nan, last) = (f32::NAN, PRODUCTS - 1);
        for (step, part, wrong) in [(0, 0, nan), (2, 1, nan), (last, 0, 0.0), (last, 1, 0.0)] {
            let mut computed = right.clone();
            computed[step][part][129 * 64 + 5] = wrong;
            assert!(!verify(&problem, &computed).passed(), "{step} {part}");
        }
        let mut out_of_order = right;
        out_of_order.swap(2, 3);
        assert!(!verify(&problem, &out_of_order).passed());
    }
}
