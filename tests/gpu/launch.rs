//! What launching through the suite costs beyond the call of the driver or the library, as ratios
//! within one run. Needs a device, cuBLAS and NVRTC; prints with `--nocapture`.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::rc::Rc;

use crossover_results::statistics::median::median;
use crossover_suite::device::Gpu;
use crossover_suite::timing::{Clock, CudaTime, GateMode, Launch};
use crossover_suite::workload::RoutineError;
use crossover_suite::workload::matmul::{Matmul, gpu};
use crossover_suite::workload::timing_methods::SPIN;
use cudarc::cublas::CudaBlas;
use cudarc::cublas::sys::{cublasOperation_t::CUBLAS_OP_N, cublasSgemm_v2};
use cudarc::driver::sys::{CUevent_flags, cuEventRecord, cuLaunchKernel};
use cudarc::driver::{CudaEvent, DevicePtr};

use crate::device::{one_at_a_time, stream};

type Outcome<T = ()> = Result<T, RoutineError>;

/// Each side is measured this often, by turns, so that a slow moment affects both alike.
const ROUNDS: usize = 15;

/// A device with a clock and two events of its own.
struct Bench {
    gpu: Rc<Gpu>,
    time: CudaTime,
    events: [CudaEvent; 2],
}

impl Bench {
    fn new() -> Outcome<Self> {
        let gpu = Rc::new(Gpu::open(0)?);
        let time = CudaTime::on_stream(stream(&gpu), GateMode::Auto)?;
        let context = stream(&gpu).context();
        let event = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        Ok(Self {
            events: [event()?, event()?],
            time,
            gpu,
        })
    }

    /// Nanoseconds of a bare loop between two events.
    fn raw(&self, times: u64, mut call: impl FnMut() -> Outcome) -> Outcome<f64> {
        let stream = stream(&self.gpu).cu_stream();
        let [start, end] = &self.events;
        self.gpu.synchronize()?;
        // SAFETY: `self` owns the event and the stream, which are of one context.
        unsafe { cuEventRecord(start.cu_event(), stream) }.result()?;
        for _ in 0..times {
            call()?;
        }
        // SAFETY: `self` owns the event and the stream, which are of one context.
        unsafe { cuEventRecord(end.cu_event(), stream) }.result()?;
        self.gpu.synchronize()?;
        Ok(f64::from(start.elapsed_ms(end)?) * 1e6 / times as f64)
    }

    /// Nanoseconds on a clock of the suite.
    fn suite(&self, clock: Clock, times: u64, call: impl FnMut() -> Outcome) -> Outcome<f64> {
        let total = self.time.measure_launches(clock, times, 1, call)?;
        Ok(total / times as f64)
    }
}

/// Medians of both sides, measured in turn after a round that does not count.
fn compare(
    what: &str,
    mut suite: impl FnMut() -> Outcome<f64>,
    mut raw: impl FnMut() -> Outcome<f64>,
) -> Outcome<f64> {
    suite()?;
    raw()?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // Each side is first in half of the rounds.
        if round % 2 == 0 {
            ours.push(suite()?);
            theirs.push(raw()?);
        } else {
            theirs.push(raw()?);
            ours.push(suite()?);
        }
    }
    let [ours, theirs] = [ours, theirs].map(|times| median(times).expect("some"));
    let ratio = ours / theirs;
    println!("{what}: {ours:.1} ns, raw loop {theirs:.1} ns, ratio {ratio:.4}");
    Ok(ratio)
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_suite_adds_nothing_to_launches_and_calls() -> Outcome {
    let _one = one_at_a_time();
    let bench = Bench::new()?;
    bench.time.wake()?;
    let mut ratios = vec![("launch", launch(&bench)?, 1.05)];
    // Both loops wait for the host, whose time for this call differs between processes (6.2 to 8.1 us
    // in four of them), and between the two loops of one process by up to 8 %.
    ratios.push(("cuBLAS at 8", cublas(&bench, 8, Clock::Events, 4000)?, 1.10));
    for n in [1024, 2048, 4096] {
        let times = (400 * 1024 / n).max(20);
        for clock in [Clock::Events, Clock::EventsGated] {
            ratios.push(("cuBLAS", cublas(&bench, n, clock, times)?, 1.02));
        }
    }
    for (what, ratio, most) in ratios {
        assert!(ratio <= most, "{what}: {ratio:.4} is over {most}");
        // A ratio far below 1 would mean that the two sides do not run the same.
        assert!(ratio >= 0.9, "{what}: {ratio:.4}");
    }
    Ok(())
}

/// An empty kernel, launched through the suite against a loop of the driver's call.
fn launch(bench: &Bench) -> Outcome<f64> {
    const TIMES: u64 = 10_000;
    let function = bench.gpu.function(&SPIN, "empty")?;
    let stream = stream(&bench.gpu);
    let ours = Launch::new(function.clone(), (1, 1, 1), (1, 1, 1));
    compare(
        "launch of an empty kernel",
        || {
            bench.suite(Clock::Events, TIMES, || {
                // SAFETY: the kernel takes no arguments; the clock binds the context.
                unsafe { ours.launch(stream) }.map_err(Into::into)
            })
        },
        || {
            let (function, stream) = (function.cu_function(), stream.cu_stream());
            let none: *mut *mut c_void = null_mut();
            bench.raw(TIMES, || {
                // SAFETY: the kernel takes no arguments, and `bench` has the context bound.
                unsafe { cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, none, none) }
                    .result()
                    .map_err(Into::into)
            })
        },
    )
}

/// `gpu/cublas` at order `n` against a loop of the library's call on matrices of its own.
fn cublas(bench: &Bench, n: u64, clock: Clock, times: u64) -> Outcome<f64> {
    let mut ours = gpu::cublas(&bench.gpu, &Rc::new(Matmul::new(n)))?;
    let operands = Matmul::new(n);
    let stream = stream(&bench.gpu);
    let [a, b, c] =
        [operands.a(), operands.b(), operands.a()].map(|values| stream.clone_htod(values));
    let (a, b, c) = (a?, b?, c?);
    let blas = CudaBlas::new(stream.clone())?;
    let [pa, pb, pc] = [&a, &b, &c].map(|slice| slice.device_ptr(stream).0);
    let order = i32::try_from(n)?;
    let (one, zero) = (1.0f32, 0.0f32);
    compare(
        &format!("cuBLAS at {n}, {clock}"),
        || bench.suite(clock, times, || ours.run()),
        || {
            bench.raw(times, || {
                // SAFETY: three matrices of n x n floats that live until the loop has been
                // waited for; the scalars are read before the call returns.
                unsafe {
                    cublasSgemm_v2(
                        *blas.handle(),
                        CUBLAS_OP_N,
                        CUBLAS_OP_N,
                        order,
                        order,
                        order,
                        &raw const one,
                        pb as *const f32,
                        order,
                        pa as *const f32,
                        order,
                        &raw const zero,
                        pc as *mut f32,
                        order,
                    )
                }
                .result()
                .map_err(Into::into)
            })
        },
    )
}
