//! Times a routine with one call, which chooses clock, warm-up and number of samples.

use std::fmt;
use std::time::{Duration, Instant};

use crate::capture::Enqueued;
use crate::cuda_time::CudaTime;
use crate::device::Routine;
use crate::error::{BoxError, TimingError, count};
use crate::prepared_launch::LAUNCHES_PER_GATE;
use crate::sequence;
use crossover_words::Clock;
use crossover_words::units;

/// The durations of Triton's `do_bench`.
const WARM_UP: Duration = Duration::from_millis(25);
const SAMPLING: Duration = Duration::from_millis(100);
const SAMPLES: u64 = 20;
/// As few as that where an iteration is long.
const FEWEST: u64 = 5;

/// What [`CudaTime::do_bench`] measured.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DoBench {
    /// The clock that the times are of.
    pub clock: Clock,
    /// Launches of one iteration; `None` where they could not be counted.
    pub launches: Option<u32>,
    /// Iterations of a sample.
    pub iterations: u64,
    /// Time of one iteration in each sample, in nanoseconds, in ascending order.
    pub samples_ns: Vec<f64>,
}

impl DoBench {
    /// The median time of an iteration, in nanoseconds.
    pub fn median_ns(&self) -> f64 {
        let (low, high) = ((self.samples_ns.len() - 1) / 2, self.samples_ns.len() / 2);
        (self.samples_ns[low] + self.samples_ns[high]) / 2.0
    }
}

impl fmt::Display for DoBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let launches = match self.launches {
            Some(launches) => format!("{} each", count(launches, "launch", "launches")),
            None => "whose launches could not be counted".to_owned(),
        };
        write!(
            f,
            "{} on {} ({} to {} in {} samples of {} iterations, {launches})",
            units::time(self.median_ns()),
            self.clock,
            units::time(self.samples_ns[0]),
            units::time(self.samples_ns[self.samples_ns.len() - 1]),
            self.samples_ns.len(),
            self.iterations,
        )
    }
}

impl CudaTime {
    /// Times `routine` without a word of how: counts its launches, chooses the clock, warms up, and
    /// takes 20 samples in 100 ms (at least five, however long one is).
    ///
    /// The clock is [`EventsGated`](Clock::EventsGated); [`Events`](Clock::Events) where the gate is
    /// off or more launches are made than fit behind it; and [`Wall`](Clock::Wall) where the routine
    /// cannot be captured, as one that synchronises. The data stay in the L2 cache if they fit: see
    /// [`Rotating`](crate::Rotating).
    ///
    /// ```no_run
    /// use crossover_timing::{CudaTime, Launch};
    ///
    /// # fn saxpy(_: &CudaTime) -> Launch { unimplemented!() }
    /// let time = CudaTime::new(0)?;
    /// let (saxpy, stream) = (saxpy(&time), time.stream().expect("opened on a device"));
    /// // SAFETY: the arguments are those of the kernel.
    /// println!("{}", time.do_bench(|| unsafe { saxpy.launch(stream) })?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`measure`](Self::measure), and [`TimingError::NothingEnqueued`].
    pub fn do_bench<E: Into<BoxError>>(
        &self,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> Result<DoBench, TimingError> {
        let mut routine = || routine().map_err(|e| TimingError::from(e.into()));
        self.do_bench_erased(&mut routine)
    }

    fn do_bench_erased(&self, routine: Routine<'_>) -> Result<DoBench, TimingError> {
        let clock = Clock::EventsGated;
        let device = self.device().ok_or(TimingError::NoDevice { clock })?;
        self.wake()?;
        sequence::load(&mut device.window(routine)?)?;
        let enqueued = device.count(routine)?;
        let (clock, launches) = chosen(enqueued)?;
        let (iterations, samples_ns) =
            sampled(|n| self.measure_erased(clock, n, launches, routine))?;
        Ok(DoBench {
            clock: self.effective_clock(clock),
            launches: enqueued.map(|enqueued| enqueued.launches),
            iterations,
            samples_ns,
        })
    }
}

/// The clock for what one iteration enqueues, and what it takes up of the stream's queue.
fn chosen(enqueued: Option<Enqueued>) -> Result<(Clock, u32), TimingError> {
    let Some(Enqueued { launches, others }) = enqueued else {
        return Ok((Clock::Wall, 1));
    };
    match launches.saturating_add(others) {
        0 => Err(TimingError::NothingEnqueued { launches: 1 }),
        all @ 1..=LAUNCHES_PER_GATE => Ok((Clock::EventsGated, all)),
        all => Ok((Clock::Events, all)),
    }
}

/// Warms up and samples by `measure`, which returns the nanoseconds of as many iterations as it is
/// given: the iterations of a sample, and the time of one in each, in order.
fn sampled(
    mut measure: impl FnMut(u64) -> Result<f64, TimingError>,
) -> Result<(u64, Vec<f64>), TimingError> {
    let begun = Instant::now();
    let mut iterations = 1;
    let each = loop {
        let each = measure(iterations)? / iterations as f64;
        if begun.elapsed() >= WARM_UP || iterations >= 1 << 30 {
            break each;
        }
        iterations *= 2;
    };
    let fit = |count: u64| (SAMPLING.as_nanos() as f64 / each / count as f64) as u64;
    let samples = fit(1).clamp(FEWEST, SAMPLES);
    let iterations = fit(samples).max(1);
    let mut times = (0..samples)
        .map(|_| Ok(measure(iterations)? / iterations as f64))
        .collect::<Result<Vec<f64>, TimingError>>()?;
    times.sort_by(f64::total_cmp);
    Ok((iterations, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_follows_from_what_is_enqueued() {
        let of = |launches, others| chosen(Some(Enqueued { launches, others }));
        assert_eq!(of(1, 0).unwrap(), (Clock::EventsGated, 1));
        assert_eq!(of(2, 3).unwrap(), (Clock::EventsGated, 5));
        assert_eq!(of(0, 1).unwrap(), (Clock::EventsGated, 1), "a copy alone");
        assert_eq!(of(448, 0).unwrap(), (Clock::EventsGated, 448));
        assert_eq!(of(448, 1).unwrap(), (Clock::Events, 449));
        assert_eq!(chosen(None).unwrap(), (Clock::Wall, 1));
        assert!(matches!(of(0, 0), Err(TimingError::NothingEnqueued { .. })));
    }

    #[test]
    fn samples_are_as_long_as_their_number_allows() {
        // Of a time that no clock of this machine takes part in.
        let sample = |ns: f64| sampled(|n| Ok(ns * n as f64)).unwrap();
        let (iterations, samples) = sample(1_000.0);
        assert_eq!((iterations, samples.len()), (5_000, 20));
        let (iterations, samples) = sample(1e7);
        assert_eq!((iterations, samples.len()), (1, 10));
        let (iterations, samples) = sample(1e9);
        assert_eq!((iterations, samples.len()), (1, 5));
    }

    #[test]
    fn it_reads_as_a_sentence() {
        let mut measured = DoBench {
            clock: Clock::EventsGated,
            launches: Some(1),
            iterations: 1_000,
            samples_ns: vec![4_000.0, 4_100.0, 4_300.0, 5_000.0],
        };
        assert_eq!(measured.median_ns(), 4_200.0);
        assert_eq!(
            measured.to_string(),
            "4.20 µs on events-gated (4.00 µs to 5.00 µs in 4 samples of 1000 iterations, 1 launch each)"
        );
        measured.samples_ns.pop();
        assert_eq!(measured.median_ns(), 4_100.0);
    }
}
