//! Products on the CPU.

use std::rc::Rc;

use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::{Threads, choose};
use crate::workload::product::{
    CpuPlan, Element, LONG, Library, PER_THREAD, Shape, candidates, loops, products,
};
use crate::workload::routine::{Result, Routine, in_format};
use crate::workload::simple::OnCpu;
use crossover_words::units::counted;

/// Three nested loops on one thread, as a beginner writes them.
pub fn naive<T: Element>(problem: &Rc<Matmul<T>>) -> Result<Box<dyn Routine>> {
    let plan = CpuPlan::OneThread(Library::Loops);
    Ok(by(problem, Threads::One, plan, Vec::new()))
}

/// ndarray's product into an output that is allocated beforehand, on one thread. It calls
/// matrixmultiply.
pub fn ndarray<T: Element>(problem: &Rc<Matmul<T>>) -> Result<Box<dyn Routine>> {
    let plan = CpuPlan::OneThread(Library::Matrixmultiply);
    Ok(by(problem, Threads::One, plan, Vec::new()))
}

/// matrixmultiply on one block of rows per thread, on all cores.
pub fn rayon<T: Element>(problem: &Rc<Matmul<T>>) -> Result<Box<dyn Routine>> {
    let plan = CpuPlan::row_blocks(rayon::current_num_threads());
    Ok(by(problem, Threads::Rayon, plan, Vec::new()))
}

/// The fastest way for this product, or batch of products, on this machine on up to `threads` threads. A
/// short calibration chooses between loops, the crates gemm and matrixmultiply and multiply-adds without
/// packing on one thread, and these over parts of a batch or grids of blocks of C that several threads
/// share out. The threads spin for a moment before they sleep. [`Routine::notes`] says which way it is.
pub fn best<T: Element>(problem: &Rc<Matmul<T>>, threads: usize) -> Result<Box<dyn Routine>> {
    let (threads, shape) = (Threads::up_to(threads), problem.shape);
    let plan = fastest(problem, &threads);
    let count = plan.threads(shape, threads.count());
    let on = counted(count, "thread");
    let note = format!("{plan} on {on}, the fastest in calibration");
    // Threads that the way has no work for are not kept.
    let threads = if count == 1 { Threads::One } else { threads };
    Ok(by(problem, threads, plan, vec![note]))
}

/// Larger square products are calibrated on one of this order: by then the ways have settled, and the
/// calibration takes a second or two where the product takes minutes.
const LARGEST_ORDER: usize = 2048;

/// The order of the square product that is tried for one of order `n`: as much work for each thread as a
/// product of order 2048 is for eight.
fn tried_order(n: usize, threads: usize) -> usize {
    let most = 1 << ((4 * LONG * threads).ilog2() / 3);
    n.min(most).min(LARGEST_ORDER)
}

fn fastest<T: Element>(problem: &Matmul<T>, threads: &Threads) -> CpuPlan {
    let (shape, count) = (problem.shape, threads.count());
    let Shape { batch, m, n, k } = shape;
    let is_square = shape == Shape::square(n);
    let product = if is_square {
        format!("product of order {n}")
    } else {
        format!("{batch} products of {m} x {n} x {k}")
    };
    let format = in_format::<T>();
    let choice = format!("{product}{format} on the CPU, {count} threads at most");
    let mut tried = shape;
    if is_square {
        tried = Shape::square(tried_order(n, count));
    } else if shape.multiply_adds() >= LONG * count {
        // As many as the parts of the finest division, so that each thread has the same share of the work
        // as in the whole batch.
        tried.batch = batch.min(PER_THREAD.into_iter().max().unwrap_or(1) * count);
    }
    // Allocated only where something is measured.
    let mut c = Vec::new();
    let candidates = candidates::<T>(shape, [true; 2], count);
    choose::on_cpu(threads, &choice, &candidates, |plan, times| {
        c.resize(tried.c_len(), T::NAN);
        for _ in 0..times {
            plan.multiply_each(threads, tried, &problem.a, &problem.b, &mut c);
        }
    })
}

fn by<T: Element>(
    problem: &Rc<Matmul<T>>,
    threads: Threads,
    plan: CpuPlan,
    notes: Vec<String>,
) -> Box<dyn Routine> {
    // Each way is compiled into its routine, because the smallest products take nanoseconds.
    match plan {
        CpuPlan::OneThread(Library::Loops) => product(problem, threads, notes, |_, of, c| {
            loops(of.shape.n, &of.a, &of.b, c);
        }),
        CpuPlan::OneThread(library) => product(problem, threads, notes, move |_, of, c| {
            products(of.shape, &of.a, &of.b, c).for_each(|(a, b, c)| library.multiply(a, b, c));
        }),
        plan => product(problem, threads, notes, move |threads, of, c| {
            plan.multiply_each(threads, of.shape, &of.a, &of.b, c);
        }),
    }
}

/// A product by `multiply`, which gets the threads and the operands, and writes C. `notes` describe how.
pub(super) fn product<T: Element>(
    problem: &Rc<Matmul<T>>,
    threads: Threads,
    notes: Vec<String>,
    multiply: impl Fn(&Threads, &Matmul<T>, &mut [T]) + 'static,
) -> Box<dyn Routine> {
    let (input, judge) = (problem.clone(), problem.clone());
    Box::new(OnCpu {
        output: vec![T::NAN; problem.shape.c_len()],
        poison: T::NAN,
        threads,
        compute: move |threads: &Threads, c: &mut [T]| multiply(threads, &input, c),
        check: move |c: &[T]| judge.verified(judge.error_of_rows(0, c)),
        notes,
    })
}
