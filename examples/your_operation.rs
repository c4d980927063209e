//! A CPU and GPU pair of your own as a group of this suite: verified, timed and reported as
//! the built-in groups are. Here: the sigmoid of n values.
//!
//! `cargo run --release --example your_operation -- --bench`
//!
//! The group declares its question, and each row where its data are; the page's heading, answers and
//! findings follow from that. The test at the end checks all of it, `cargo test --example your_operation`.

use std::process::ExitCode;
use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::device::kernel::Source;
use crossover_suite::model::{Cost, Unit, Verified};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::{Clock, Rate};
use crossover_suite::workload::simple::{compare, on_cpu, on_gpu};
use crossover_suite::workload::{HostMemory, Routine, RoutineError, Workload, uniform, visit_f32};
use rayon::prelude::*;

static SIGMOID: Source = Source::new(
    "sigmoid.cu",
    r#"extern "C" __global__ void sigmoid(const float *x, float *y, unsigned int n) {
        unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = 1.0f / (1.0f + expf(-x[i]));
    }"#,
);

pub(crate) struct Sigmoid(Vec<f32>);

impl Workload for Sigmoid {
    fn new(n: u64) -> Self {
        // The seed is 1, or another one where tests need other values.
        Self(uniform(1, n, -4.0..4.0))
    }
    fn host_bytes(n: u64) -> u64 {
        8 * n
    }
    fn device_bytes(n: u64) -> u64 {
        8 * n
    }
    // Tests compile them for every architecture. A constant, because the list outlives the call.
    fn kernels() -> &'static [&'static Source] {
        const { &[&SIGMOID] }
    }
    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.0, visit);
    }
}

impl Sigmoid {
    fn check(&self, y: &[f32]) -> Verified {
        let reference = self.0.iter().map(|&x| 1.0 / (1.0 + f64::from(-x).exp()));
        compare(y, reference, 1e-9, 1e-6)
    }
}

fn cpu(problem: &Rc<Sigmoid>) -> Result<Box<dyn Routine>, RoutineError> {
    let (input, judge) = (problem.clone(), problem.clone());
    let sigmoid = |y: &mut [f32], x: &[f32]| {
        for (y, x) in y.iter_mut().zip(x) {
            *y = 1.0 / (1.0 + (-x).exp());
        }
    };
    // On all cores, because one core would be no fair comparison; small inputs on one thread.
    const PIECE: usize = 1 << 12;
    let compute = move |y: &mut [f32]| {
        // Threads share slices; they cannot share an Rc.
        let x = input.0.as_slice();
        match y.len() {
            0..=PIECE => sigmoid(y, x),
            _ => y
                .par_chunks_mut(PIECE)
                .zip(x.par_chunks(PIECE))
                .for_each(|(y, x)| sigmoid(y, x)),
        }
    };
    Ok(on_cpu(problem.0.len(), compute, move |y| judge.check(y)))
}

/// On data in device memory, or `from` host memory and back.
fn gpu(
    gpu: &Rc<Gpu>,
    problem: &Rc<Sigmoid>,
    from: Option<HostMemory>,
) -> Result<Box<dyn Routine>, RoutineError> {
    let n = problem.0.len();
    let kernel = gpu.launch(&SIGMOID, "sigmoid", (n as u32).div_ceil(256), 256)?;
    let launch = |inputs: &[u64], output| Ok(kernel.arg(inputs[0]).arg(output).arg(n as u32));
    let judge = problem.clone();
    let check = move |y: &[f32]| judge.check(y);
    let inputs = [problem.0.as_slice()];
    // SAFETY: the arguments are those the kernel declares, and it stays below n.
    unsafe { on_gpu(gpu, from, &inputs, n, launch, check) }
}

pub(crate) fn group() -> Group<Sigmoid> {
    // Odd sizes are verified and not timed: above PIECE too, with a rest.
    let sizes = Sizes::powers_of_two([10, 16], (10..=22).step_by(4), 10..=26).odd([1, 1000, 4097]);
    let cost = |n| Cost::default().bytes(8.0 * n as f64);
    let kernel = |name, clock| Implementation::gpu(name, clock, |g, p| gpu(g, p, None));
    let transfer = |name, memory| {
        Implementation::gpu(name, Clock::Wall, move |g, p| gpu(g, p, Some(memory)))
            .data(memory)
            .cost(move |n| cost(n).over_link(4.0 * n as f64, 4.0 * n as f64))
    };
    Group::new("sigmoid", sizes, Rate::elements(), cost)
        .about(
            "Sigmoid",
            "y = 1 / (1 + e^-x) on each f32 element: is it worth a GPU, and with its data on the host?",
        )
        .axis("n", "n, elements", Unit::Count)
        .with(Implementation::cpu("std", cpu))
        .with(kernel("kernel", Clock::Events))
        .with(kernel("kernel-awaited", Clock::Wall).awaited())
        .with(kernel("kernel-gated", Clock::EventsGated))
        .with(transfer("transfer", HostMemory::Pageable))
        .with(transfer("transfer-pinned", HostMemory::Pinned))
}

fn main() -> ExitCode {
    crossover_suite::suite::bench(crossover_suite::package!(), || vec![group().into()])
}

#[test]
fn the_group_is_right() -> Result<(), RoutineError> {
    crossover_suite::suite::AnyGroup::from(group()).test()
}
