//! A pipeline of many small steps on the device, and what it costs when the host waits between them:
//! never waiting, waiting after each step, reading a value back after each, doing every eighth step on
//! the CPU, and replaying all steps as one graph.
//!
//! The size is the number of f32 values; each of the 64 steps computes y = a x + b.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::device::{Gpu, kernel::Source};
use crate::model::{Cost, Launches, Verified};
use crate::timing::Launch;
use crate::workload::prepare::{
    Device, ELEMENTWISE_THREADS, HostMemory, Prepared, Steps, Stream, Threads, elementwise_blocks,
    kernels, uniform, wide,
};
use crate::workload::routine::{Result, Routine, Workload, visit_f32};
use crate::workload::simple;

/// The kernel of a step.
pub static HOST_SYNC: Source = kernels!("host_sync.cu", after "elementwise.cuh");

/// Steps of the pipeline.
pub const STEPS: usize = 64;
/// The hybrid does each step whose number is a multiple of this on the CPU.
const CPU_EVERY: usize = 8;
/// Values per task of the CPU's step: some 2 µs of work, within a level-1 cache.
const GRAIN: usize = 1 << 13;
/// Below 1, so the values stay as large as the inputs.
const A: f32 = 0.96875;
const B: f32 = 0.03125;

/// The inputs of the pipeline and its result in float64.
pub struct Pipeline {
    x: Vec<f32>,
    /// Computed when something is first compared with it.
    reference: OnceCell<Vec<f64>>,
}

impl Workload for Pipeline {
    fn new(size: u64) -> Self {
        let x = uniform(size, size, -1.0..1.0);
        let reference = OnceCell::new();
        Self { x, reference }
    }

    fn host_bytes(size: u64) -> u64 {
        24 * size
    }

    fn device_bytes(size: u64) -> u64 {
        12 * size
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&HOST_SYNC] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.x, visit);
    }
}

impl Pipeline {
    fn reference(&self) -> &[f64] {
        self.reference.get_or_init(|| {
            let step = |v: f64| f64::from(A) * v + f64::from(B);
            let steps = |&x: &f32| (0..STEPS).fold(f64::from(x), |v, _| step(v));
            self.x.iter().map(steps).collect()
        })
    }
}

/// Each step reads and writes every value.
pub fn cost(size: u64) -> Cost {
    Cost::default()
        .flop(2.0 * (STEPS as f64) * size as f64)
        .bytes(8.0 * (STEPS as f64) * size as f64)
        .written(4.0 * (STEPS as f64) * size as f64)
        .launches(STEPS as u32)
}

/// As [`cost`], with every value downloaded and uploaded again for each step on the CPU.
pub fn cost_hybrid(size: u64) -> Cost {
    let on_cpu = STEPS / CPU_EVERY;
    let each_way = 4.0 * (on_cpu as f64) * size as f64;
    cost(size)
        .over_link(each_way, each_way)
        .launches((STEPS - on_cpu) as u32)
}

/// Adds a download of the first values of `from`, for which the host waits.
///
/// # Safety
/// `from` must have as many values as `to`, and the memory must be that of the routine.
unsafe fn read(steps: &mut Steps, from: Device<f32>, to: *mut [f32]) {
    // SAFETY: the caller promises the memory, and the next step waits.
    unsafe { steps.download(Stream::Compute, from.address, to) };
    steps.wait(Stream::Compute);
}

/// The pipeline: launched one by one with a wait at the end, with a wait after each step, with
/// one value read back after each (as a convergence test does), with every eighth step on the
/// CPU (which downloads the values, computes, and uploads the result), or as one graph.
///
/// # Errors
/// A way to launch that the pipeline does not have, errors of CUDA and of the kernel's
/// compilation.
pub fn pipeline(
    gpu: &Rc<Gpu>,
    problem: &Rc<Pipeline>,
    launching: Launches,
) -> Result<Box<dyn Routine>> {
    if launching == Launches::Fused {
        return Err("the steps of the pipeline are not fused".into());
    }
    let mut work = Prepared::new(gpu)?;
    let n = problem.x.len();
    let function = gpu.function(&HOST_SYNC, "step")?;
    let source = work.upload(&problem.x)?;
    // The steps alternate between these.
    let buffers = [work.output::<f32>(n)?, work.output::<f32>(n)?];
    // For values that are read back, and for the steps on the CPU.
    let host = work.host_output(HostMemory::Pinned, f32::NAN, n)?;
    let grid = (elementwise_blocks(n as u64)?, 1, 1);
    let threads = Rc::new(match launching {
        Launches::PartlyOnCpu => Threads::all(),
        _ => Threads::One,
    });
    let steps = &mut work.steps;
    for step in 0..STEPS {
        let to = buffers[step % 2];
        let from = if step == 0 {
            source
        } else {
            buffers[(step - 1) % 2]
        };
        if launching == Launches::PartlyOnCpu && step % CPU_EVERY == CPU_EVERY - 1 {
            let (threads, places) = (threads.clone(), [from.address, to.address]);
            let step = move |values: &mut [f32]| {
                threads.each(values.chunks_mut(GRAIN).collect(), step_of_values);
            };
            // SAFETY: the routine owns the arrays and the host memory, of `n` values each.
            unsafe { steps.on_cpu(places, host, step) };
        } else {
            let launch = Launch::new(function.clone(), grid, (ELEMENTWISE_THREADS, 1, 1))
                .arg(to.address)
                .arg(from.address)
                .arg(A)
                .arg(B)
                .arg(n as u64);
            // SAFETY: the kernel takes two arrays of `n` floats, which the routine owns, and these numbers.
            unsafe { steps.kernel(launch) };
        }
        match launching {
            Launches::Synchronised => steps.wait(Stream::Compute),
            // SAFETY: the routine owns both, which have a value.
            Launches::ReadBack => unsafe { read(steps, to, host.part(0, 1)) },
            _ => {}
        }
    }
    if launching == Launches::Graph {
        steps.replay()?;
    }
    (work.waits, work.threads) = (true, Some(threads));
    let (problem, output) = (problem.clone(), buffers[(STEPS - 1) % 2]);
    let check = move |output: &[f32]| verify(output, problem.reference());
    work.check_values(None, output, f32::NAN, check)?;
    Ok(Box::new(work))
}

wide! {
    /// A step in place. It rounds twice, where the device rounds once.
    fn step_of_values(values: &mut [f32]) {
        for value in values {
            *value = A * *value + B;
        }
    }
}

/// Compares with float64. A step rounds once, to a value of at most 1, and multiplies the error so
/// far by less than 1, so the error is at most one half-ulp of 1 per step. A step on the CPU rounds
/// twice, to values below 1, whose half-ulps are half as large.
fn verify(output: &[f32], reference: &[f64]) -> Verified {
    let bound = STEPS as f64 * f64::from(f32::EPSILON) / 2.0;
    simple::compare(output, reference.iter().copied(), 1.0, bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CPU's steps, in every task of its threads, are within the tolerance of all.
    #[test]
    fn float32_passes_and_a_missing_step_does_not() {
        let problem = Pipeline::new(3 * GRAIN as u64 + 17);
        for steps in [STEPS - 1, STEPS, STEPS + 1] {
            let mut values = problem.x.clone();
            for _ in 0..steps {
                Threads::up_to(2).each(values.chunks_mut(GRAIN).collect(), step_of_values);
            }
            let verified = verify(&values, problem.reference());
            assert_eq!(verified.passed(), steps == STEPS, "{verified:?}");
        }
    }
}
