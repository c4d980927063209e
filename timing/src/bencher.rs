//! A method of Criterion's bencher for each clock.

use criterion::Bencher;

use crate::clock::Clock;
use crate::cuda_time::CudaTime;
use crate::error::BoxError;

/// Adds every clock to Criterion's [`Bencher`].
///
/// Each method takes
/// - `time`, a clone of the measurement that Criterion was given, since a bencher keeps its own
///   private;
/// - `launches`, how many kernel or graph launches one iteration enqueues, 0 for code that does
///   no work on the device;
/// - `routine`, which enqueues one iteration on [`CudaTime::stream`].
///
/// # Panics
/// Criterion takes no error from a benchmark, so an error of the routine, of CUDA or of the clock
/// ends it with a panic that carries its text; [`CudaTime::take_failure`] then has the
/// [`TimingError`](crate::TimingError) itself.
pub trait CudaBencherExt {
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

    /// The host clock from an idle device to a synchronised one ([`Clock::Wall`]): for
    /// routines that synchronise inside, copies to and from pageable memory, and CPU code
    /// (`launches` 0).
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

impl CudaBencherExt for Bencher<'_, CudaTime> {
    fn iter_on<E: Into<BoxError>>(
        &mut self,
        time: &CudaTime,
        clock: Clock,
        launches: u32,
        mut routine: impl FnMut() -> Result<(), E>,
    ) {
        self.iter_custom(|iterations| {
            time.measure(clock, iterations, launches, &mut routine)
                .unwrap_or_else(|e| time.fail(e))
        });
    }
}
