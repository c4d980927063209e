//! Nested sine as a library computes it that does not fuse: each sine is a pass over memory.

use std::rc::Rc;

use crate::device::Gpu;
use crate::workload::nested_sine::cpu::{Plan, share_out};
use crate::workload::nested_sine::format::POISON;
use crate::workload::nested_sine::gpu::{KERNELS, enqueue};
use crate::workload::nested_sine::problem::{NestedSine, PASSES};
use crate::workload::nested_sine::verify::ACCURATE;
use crate::workload::prepare::{HostMemory, On, Prepared, Threads};
use crate::workload::routine::Made;
use crate::workload::simple::OnCpu;
use crossover_arithmetic::Isa;
use crossover_arithmetic::sine::Stores;

/// Four passes in the vectors of [`cpu::simd`](crate::workload::nested_sine::cpu::simd), on all cores,
/// between two arrays.
pub fn cpu(problem: &Rc<NestedSine>) -> Made {
    /// A smaller problem stays on one thread, as PyTorch has it.
    const GRAIN: usize = 1 << 15;
    let isa = Isa::best();
    let n = problem.len();
    let threads = match n <= GRAIN {
        true => Threads::One,
        false => Threads::all(),
    };
    let share = n.div_ceil(threads.count()).next_multiple_of(1 << 10);
    let plan = Plan {
        grain: share.max(GRAIN),
        stores: Stores::Cached,
    };
    let pass = move |x: &[f32], y: &mut [f32], _| isa.sine(x, y);
    let (input, judge) = (problem.clone(), problem.clone());
    let mut between = vec![0.0; n];
    Ok(Box::new(OnCpu {
        output: vec![0.0; n],
        poison: POISON,
        threads,
        compute: move |threads: &Threads, y: &mut [f32]| {
            share_out(threads, plan, input.input(), &mut between, &pass);
            share_out(threads, plan, &between, y, &pass);
            share_out(threads, plan, y, &mut between, &pass);
            share_out(threads, plan, &between, y, &pass);
        },
        check: move |y: &[f32]| judge.compare(ACCURATE, |window| Ok(y[window].to_vec())),
        notes: vec![format!("{}, {PASSES} passes", isa.name())],
    }))
}

/// An upload, a kernel for each pass and a download, one after the other, from and to ordinary
/// memory. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    let n = problem.len();
    let mut work = Prepared::new(gpu)?;
    let x = work.input(Some(HostMemory::Pageable), problem, |problem| {
        problem.input()
    })?;
    let y = work.output::<f32>(n)?;
    enqueue(&mut work, x, y, n, &KERNELS)?;
    let result = work.host_output(HostMemory::Pageable, POISON, n)?;
    // SAFETY: both sides have n values, and are the routine's.
    unsafe { work.steps.download(On::Compute, y.address, result.values) };
    work.waits = true;
    let problem = problem.clone();
    work.check_by(move |memory| problem.check_output(memory.values(result)?));
    Ok(Box::new(work))
}
