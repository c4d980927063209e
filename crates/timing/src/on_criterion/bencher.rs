//! A method of Criterion's bencher for each clock.

use std::any::type_name_of_val;

use criterion::Bencher;

use self::sealed::Sealed;
use super::benchmarks::TimedBenchmark;
use crate::cuda_time::CudaTime;
use crate::device::Iteration;
use crate::error::{BoxError, TimingError};
use crate::measure::cpu;
use crossover_words::Clock;

/// Adds every clock to Criterion's [`Bencher`].
///
/// Each method takes
/// - `time`, a clone of the measurement that Criterion was given, since a bencher keeps its own
///   private;
/// - `routine`, which enqueues one iteration on [`CudaTime::stream`].
///
/// The launches of an iteration are counted by capturing it, when a warm-up begins and before samples
/// of another length. If it cannot be captured, a line on stderr names the assumed number;
/// [`iter_on`](Self::iter_on) takes the right one.
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
/// // SAFETY: it is the only stream of the program.
/// let time = unsafe { CudaTime::new(0) }?;
/// let empty = time.empty_kernel().expect("opened on a device");
/// let stream = time.stream().expect("opened on a device");
/// // SAFETY: the kernel takes no arguments.
/// let mut launch = || unsafe { empty.launch(stream) };
/// let mut criterion = Criterion::default().with_measurement(time.clone());
/// criterion.bench_function("gated", |b| b.iter_gated(&time, &mut launch));
/// criterion.bench_function("cold", |b| b.iter_cold(&time, &mut launch));
/// criterion.bench_function("graph", |b| b.iter_graph(&time, &mut launch));
/// criterion.bench_function("wall", |b| b.iter_wall(&time, &mut launch));
/// criterion.bench_function("cpu", |b| b.iter_cpu(|| (0..1000u64).sum::<u64>()));
/// # Ok::<(), crossover_timing::Absence>(())
/// ```
pub trait CudaBencherExt: Sealed {
    /// Times `routine` on `clock`; the other methods name the clock. `launches` is the number of
    /// launches, copies and memory sets of one iteration, or `None` to have them counted. If they can be
    /// counted and are more or fewer, a line on stderr says so.
    fn iter_on<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        clock: Clock,
        launches: impl Into<Option<u32>>,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        let launches = launches.into();
        let iteration = launches.map_or(Iteration::Uncounted, Iteration::Launches);
        self.iter_benchmark(time, clock, Some(iteration), routine);
    }

    /// Device time alone ([`Clock::EventsGated`]): the stream waits at a gate while up to
    /// [`LAUNCHES_PER_GATE`](crate::LAUNCHES_PER_GATE) launches are queued. The routine must
    /// not synchronise, and one iteration must not make more launches than a stream's queue holds (some
    /// 900 on an H200, four times as many with `CUDA_SCALE_LAUNCH_QUEUES=4x`).
    fn iter_gated<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::EventsGated, None, routine);
    }

    /// Device time when the data come from memory ([`Clock::EventsCold`]): the L2 cache is
    /// flushed before each iteration, outside the timed window. Each time carries the constant
    /// of one event pair (1.3 µs on an H200). The routine must not synchronise. With more launches
    /// per iteration than a stream's queue holds the gate is not used, and a time includes the wait for
    /// the launches.
    fn iter_cold<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::EventsCold, None, routine);
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
    ) {
        self.iter_benchmark(time, Clock::EventsGated, None, routine);
    }

    /// [`iter_graph`](Self::iter_graph) with the data in memory ([`Clock::EventsCold`]): the L2 cache is flushed
    /// before each replay, as by [`iter_cold`](Self::iter_cold).
    fn iter_graph_cold<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_benchmark(time, Clock::EventsCold, None, routine);
    }

    /// Code on the CPU, on the host's clock ([`Clock::Wall`]). Nothing waits for the device. The
    /// return value is kept from being optimised away, as by Criterion's own `b.iter`, which on this
    /// measurement reads the device's clock.
    fn iter_cpu<T>(&mut self, routine: impl FnMut() -> T);

    /// How long a caller waits for the work of one iteration ([`Clock::Wall`]): the host clock from
    /// an idle stream until the iteration is synchronised. A kernel takes its duration, its launch and the
    /// wait. Code that does nothing on the device is timed by [`iter_cpu`](Self::iter_cpu).
    fn iter_wall<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::Wall, None, routine);
    }

    /// [`iter_wall`](Self::iter_wall) for a routine that waits for its work itself, as a copy to or from
    /// pageable memory does: it pays for no second wait. Work that is left is awaited at the end of a
    /// sample.
    fn iter_awaited<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_benchmark(time, Clock::Wall, Some(Iteration::Awaited), routine);
    }

    /// The host clock without synchronising ([`Clock::Submit`]): what queueing costs, not
    /// what the work takes, so Criterion prints no throughput.
    fn iter_submit<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::Submit, None, routine);
    }

    /// How long devices work in an iteration ([`Clock::Activity`]), on any stream, whichever library or thread launches
    /// the work: see [`CudaTime::measure_activity`]. Launches and gaps are not in it, so Criterion prints no
    /// throughput; `crossover.json` beside Criterion's files has the span, the kernels and the streams of an iteration.
    #[cfg(feature = "profiler")]
    fn iter_activity<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_on(time, Clock::Activity, None, routine);
    }
}

/// Keeps others from implementing the trait, so that it can grow.
mod sealed {
    use super::*;

    pub trait Sealed {
        /// Times a routine, or the replay of its graph if nothing is given of an iteration.
        fn iter_benchmark<E: Into<BoxError>>(
            &mut self,
            time: &CudaTime,
            clock: Clock,
            iteration: Option<Iteration>,
            routine: impl FnMut() -> Result<(), E>,
        );
    }
}

impl Sealed for Bencher<'_, CudaTime> {
    fn iter_benchmark<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        clock: Clock,
        iteration: Option<Iteration>,
        mut routine: impl FnMut() -> Result<(), E>,
    ) {
        let benchmark = TimedBenchmark {
            clock,
            iteration,
            routine: type_name_of_val(&routine),
        };
        let mut routine = || routine().map_err(|e| TimingError::from(e.into()));
        self.iter_custom(|iterations| {
            time.measure_benchmark(benchmark, iterations, &mut routine)
                .unwrap_or_else(|error| panic!("{}", benchmark.failed(error)))
        });
    }
}

impl CudaBencherExt for Bencher<'_, CudaTime> {
    fn iter_cpu<T>(&mut self, mut routine: impl FnMut() -> T) {
        self.iter_custom(|iterations| cpu(iterations, &mut routine));
    }
}
