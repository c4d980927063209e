//! A method of Criterion's bencher for each clock.

use std::any::type_name_of_val;

use criterion::Bencher;

use self::sealed::Sealed;
use super::benchmarks::Benchmark;
use crate::cuda_time::{CudaTime, cpu};
use crate::error::{BoxError, TimingError};
use crossover_words::Clock;

/// Adds every clock to Criterion's [`Bencher`].
///
/// Each method takes
/// - `time`, a clone of the measurement that Criterion was given, since a bencher keeps its own
///   private;
/// - `launches`, how many kernel or graph launches one iteration enqueues. When a warm-up on
///   `events-gated` or `events-cold` begins, the launches are counted by capturing one iteration,
///   and a line on stderr says so if there are more or fewer;
/// - `routine`, which enqueues one iteration on [`CudaTime::stream`].
///
/// # Panics
/// Criterion takes no error from a benchmark, so an error of the routine, of CUDA or of the clock
/// ends it with a panic that carries the text of the [`TimingError`](crate::TimingError).
///
/// Only Criterion's bencher implements it; a later version may add methods.
///
/// ```no_run
/// use crossover_timing::criterion::Criterion;
/// use crossover_timing::{CudaBencherExt, CudaTime};
///
/// let time = CudaTime::new(0)?;
/// let empty = time.empty_kernel().expect("opened on a device");
/// let stream = time.stream().expect("opened on a device");
/// // SAFETY: the kernel takes no arguments.
/// let mut launch = || unsafe { empty.launch(stream) };
/// let mut criterion = Criterion::default().with_measurement(time.clone());
/// criterion.bench_function("gated", |b| b.iter_gated(&time, 1, &mut launch));
/// criterion.bench_function("cold", |b| b.iter_cold(&time, 1, &mut launch));
/// criterion.bench_function("graph", |b| b.iter_graph(&time, &mut launch));
/// criterion.bench_function("wall", |b| b.iter_wall(&time, 1, &mut launch));
/// criterion.bench_function("cpu", |b| b.iter_cpu(|| (0..1000u64).sum::<u64>()));
/// # Ok::<(), crossover_timing::Absence>(())
/// ```
pub trait CudaBencherExt: Sealed {
    /// Times `routine` on `clock`; the other methods name the clock.
    fn iter_on<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        clock: Clock,
        launches: u32,
        routine: impl FnMut() -> Result<(), E>,
    );

    /// Device time alone ([`Clock::EventsGated`]): the stream waits at a gate while up to
    /// [`LAUNCHES_PER_GATE`](crate::LAUNCHES_PER_GATE) launches are queued. The routine must
    /// not synchronise, and one iteration must not make more launches than that.
    fn iter_gated<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        launches: u32,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::EventsGated, launches, routine);
    }

    /// Device time when the data come from memory ([`Clock::EventsCold`]): the L2 cache is
    /// flushed before each iteration, outside the timed window. Each time carries the constant
    /// of one event pair (1.3 µs on an H200). The routine must not synchronise. With more launches
    /// per iteration than [`LAUNCHES_PER_GATE`](crate::LAUNCHES_PER_GATE) the gate is not used,
    /// and a time includes the wait for the launches.
    fn iter_cold<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        launches: u32,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::EventsCold, launches, routine);
    }

    /// The replay of a CUDA graph ([`Clock::EventsGated`]). The work of one call of `routine` is
    /// captured, and the replays of the graph are timed; the capture is not. Each sample of
    /// Criterion's has a capture of its own, so the routine runs once per sample.
    /// A routine that cannot be captured ends with
    /// [`TimingError::NotCaptured`](crate::TimingError::NotCaptured).
    fn iter_graph<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    );

    /// Code on the CPU, on the host's clock ([`Clock::Wall`]). Nothing waits for the device. The
    /// return value is kept from being optimised away, as by Criterion's own `b.iter`, which on this
    /// measurement reads the device's clock.
    fn iter_cpu<T>(&mut self, routine: impl FnMut() -> T);

    /// The host clock from an idle device to a synchronised one ([`Clock::Wall`]): for
    /// routines that synchronise inside, and copies to and from pageable memory. Code that does
    /// nothing on the device is timed by [`iter_cpu`](Self::iter_cpu).
    fn iter_wall<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        launches: u32,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::Wall, launches, routine);
    }

    /// The host clock without synchronising ([`Clock::Submit`]): what queueing costs, not
    /// what the work takes.
    fn iter_submit<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        launches: u32,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::Submit, launches, routine);
    }
}

/// Keeps others from implementing the trait, so that it can grow.
mod sealed {
    pub trait Sealed {}
}

impl Sealed for Bencher<'_, CudaTime> {}

impl CudaBencherExt for Bencher<'_, CudaTime> {
    fn iter_on<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        clock: Clock,
        launches: u32,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        iter(self, time, clock, Some(launches), routine);
    }

    fn iter_graph<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        iter(self, time, Clock::EventsGated, None, routine);
    }

    fn iter_cpu<T>(&mut self, mut routine: impl FnMut() -> T) {
        self.iter_custom(|iterations| cpu(iterations, &mut routine));
    }
}

/// Times a routine, or the replay of its graph if no number of launches is given.
fn iter<E: Into<BoxError>>(
    bencher: &mut Bencher<'_, CudaTime>,
    time: &CudaTime,
    clock: Clock,
    launches: Option<u32>,
    mut routine: impl FnMut() -> Result<(), E>,
) {
    let benchmark = Benchmark {
        clock,
        launches,
        routine: type_name_of_val(&routine),
    };
    let mut routine = || routine().map_err(|e| TimingError::from(e.into()));
    bencher.iter_custom(|iterations| {
        time.measure_benchmark(benchmark, iterations, &mut routine)
            .unwrap_or_else(|e| time.fail(e))
    });
}
