//! How many samples a benchmark gets, for how long, and which sizes would take too long.

use std::collections::HashMap;
use std::time::Duration;

use criterion::{BenchmarkGroup, SamplingMode};

use crate::model::cost::Cost;
use crate::model::role::{Role, Threads};
use crate::suite::arguments::Arguments;
use crate::timing::CudaTime;
use crossover_protocol::settings::SizeSet;

/// A group of Criterion's.
pub(super) type Plots<'a> = BenchmarkGroup<'a, CudaTime>;

/// How long and how often a benchmark is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SamplingPlan {
    /// Criterion doubles its iterations until this much time has passed, so the warm-up takes half as
    /// much again. The routine has already run, to be verified and planned.
    pub(super) warm_up: Duration,
    pub(super) measurement: Duration,
    pub(super) samples: usize,
    /// Resamples of the bootstrap; with 1,000 or fewer Criterion prints a warning. Its plots of each
    /// estimate's distribution cost as many exponentials for each of 500 points: 25 ms per 1,000
    /// resamples on an EPYC.
    pub(super) resamples: usize,
    /// A benchmark with longer iterations is left out; `None` measures all.
    longest_iteration: Option<Duration>,
}

/// Criterion's smallest sample size.
pub(super) const FEWEST_SAMPLES: usize = 10;

impl SamplingPlan {
    /// The sizes of `quick` and `default` are chosen to fit these times; `full` has every
    /// size and therefore a limit on what one iteration may take.
    pub(super) fn of(set: SizeSet) -> Self {
        match set {
            SizeSet::Quick => Self {
                samples: 12,
                ..Self::in_turns()
            },
            SizeSet::Default => Self::in_turns(),
            SizeSet::Full => Self {
                warm_up: Duration::from_millis(100),
                measurement: Duration::from_millis(250),
                samples: 30,
                resamples: 2_500,
                longest_iteration: Some(Duration::from_secs(1)),
            },
        }
    }

    /// One of several processes that take turns with another revision. The spread between them counts, so each is
    /// short.
    pub(super) fn in_turns() -> Self {
        Self {
            warm_up: Duration::from_millis(10),
            measurement: Duration::from_millis(40),
            samples: 20,
            resamples: 1_001,
            longest_iteration: None,
        }
    }

    /// The plan in turns of code on a GPU, where ten samples and more pairs of processes show more in the same time.
    /// On an H100 and an H200, two processes differ by 1 to 2 % for short kernels on a clock with a gate,
    /// and ten and twenty samples of a process by 0.01 %. On `events` and `wall`, ten samples raise the
    /// difference of two processes by a tenth, and save a third of the time.
    pub(super) fn on_gpu_in_turns() -> Self {
        let plan = Self::in_turns();
        Self {
            warm_up: plan.warm_up / 2,
            measurement: plan.measurement / 2,
            samples: FEWEST_SAMPLES,
            ..plan
        }
    }

    /// The longest iteration of an implementation that is measured. The CPU code of answers may take
    /// ten times as long as other code, because without it a size has no answer.
    pub(super) fn longest_iteration_of(&self, role: &Role) -> Option<Duration> {
        let is_compared = role.threads == Some(Threads::All) && role.launches.is_none();
        let factor = if is_compared && role.answers { 10 } else { 1 };
        self.longest_iteration.map(|longest| factor * longest)
    }

    /// Iterations of a sample, of a routine whose iteration takes `wall_ns`.
    pub(super) fn iterations(&self, wall_ns: f64) -> u64 {
        let sample = self.measurement.as_nanos() as f64 / self.samples as f64;
        (sample / wall_ns).max(1.0) as u64
    }

    /// The samples of a routine whose iteration takes about `iteration`. Slow ones get fewer, and
    /// more time. Each has at least two iterations: with one Criterion prints a warning, which says
    /// to change settings that the suite has chosen.
    pub(super) fn for_iteration(&self, iteration: Duration) -> Sampling {
        let iteration = iteration.max(Duration::from_nanos(1));
        let mut sampling = Sampling {
            iteration: Some(iteration),
            warm_up: self.warm_up,
            samples: self.samples,
            measurement: self.measurement,
            mode: SamplingMode::Linear,
        };
        if !is_linear(iteration, self.samples, self.measurement) {
            let fit = self.measurement.as_nanos() / (2 * iteration.as_nanos());
            let fit = usize::try_from(fit).unwrap_or(usize::MAX);
            sampling.samples = fit.clamp(FEWEST_SAMPLES, self.samples);
            // Criterion rounds the iterations of a sample up: to two, should it find the iteration up to
            // half slower, or up to a quarter faster.
            let needed = iteration.mul_f64(1.5 * sampling.samples as f64);
            sampling.measurement = self.measurement.max(needed);
            sampling.mode = SamplingMode::Flat;
        }
        sampling
    }
}

/// Iterations before a sample in turns, because the other sides emptied the caches. None before a sample of
/// 10 ms or more, which soon replaces their data.
pub(super) fn warm_up_in_turns(iterations: u64, iteration_ns: f64) -> u64 {
    const WARMS_ITSELF_NS: f64 = 10e6;
    if iterations as f64 * iteration_ns >= WARMS_ITSELF_NS {
        0
    } else {
        iterations.div_ceil(8)
    }
}

/// Criterion may find an iteration this much slower than its plan has it.
const UNSURE: f64 = 1.25;

/// Whether there is time for samples of k iterations in the k-th, or of a multiple of that.
fn is_linear(iteration: Duration, samples: usize, measurement: Duration) -> bool {
    let iterations = samples as f64 * (samples as f64 + 1.0) / 2.0;
    iteration.as_secs_f64() * iterations * UNSURE <= measurement.as_secs_f64()
}

/// How a routine is sampled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    /// A warm iteration; `None` where the routine times itself, and has measured before Criterion asks.
    pub(super) iteration: Option<Duration>,
    pub(super) warm_up: Duration,
    pub(super) samples: usize,
    /// The time that Criterion plans for all of them.
    pub(super) measurement: Duration,
    pub(super) mode: SamplingMode,
}

impl Sampling {
    /// The sampling of a routine that times itself, and returns at once: in more time Criterion would plan billions
    /// of iterations, in less it would print a warning.
    pub(super) const OF_ITS_OWN: Self = Self {
        iteration: None,
        warm_up: Duration::from_nanos(1),
        samples: FEWEST_SAMPLES,
        measurement: Duration::from_micros(100),
        mode: SamplingMode::Flat,
    };

    pub(super) fn is_timed_by_a_clock(&self) -> bool {
        self.iteration.is_some()
    }

    /// The sampling with the number of samples and the times that the command line gives.
    pub(super) fn as_given(mut self, arguments: &Arguments) -> Self {
        let samples = arguments.number("sample-size");
        let seconds = arguments.number("measurement-time");
        if samples.is_some() || seconds.is_some() {
            self.samples = samples.map_or(self.samples, |samples| samples as usize);
            self.measurement = seconds.map_or(self.measurement, Duration::from_secs_f64);
            self.mode = match self.iteration {
                Some(it) if is_linear(it, self.samples, self.measurement) => SamplingMode::Linear,
                _ => SamplingMode::Flat,
            };
        }
        self.warm_up = arguments.warm_up(self.warm_up);
        self
    }

    /// The sampling where another process takes turns. The first call is all of Criterion's warm-up: the suite
    /// warms up in it. And Criterion must not warn that the samples, with the other side's turns between
    /// them, take longer than planned.
    pub(super) fn in_turns(self) -> Self {
        Self {
            warm_up: Duration::from_nanos(1),
            measurement: Duration::from_secs(1_000),
            mode: SamplingMode::Flat,
            ..self
        }
    }

    /// Has Criterion take the samples of its next benchmark as planned.
    pub(super) fn apply(&self, plots: &mut Plots<'_>) {
        plots.sampling_mode(self.mode).sample_size(self.samples);
        plots.measurement_time(self.measurement);
        plots.warm_up_time(self.warm_up.max(Duration::from_nanos(1)));
    }

    /// The iterations of each sample, as Criterion plans them; the first has `first`.
    pub(super) fn counts(&self, first: u64) -> impl Iterator<Item = u64> + use<> {
        let step = u64::from(matches!(self.mode, SamplingMode::Linear));
        (0..self.samples as u64).map(move |at| first * (1 + step * at))
    }
}

/// How long an iteration of each implementation of a group takes, by size: measured, or expected.
#[derive(Default)]
pub(super) struct Pace(HashMap<(String, u64), Duration>);

impl Pace {
    pub(super) fn note(&mut self, function: String, size: u64, took: Duration) {
        self.0.insert((function, size), took);
    }

    /// How long an iteration at `size` takes by the one at the size `before`; `None` where that was not
    /// run, as when a filter selects one size.
    ///
    /// Time is assumed to grow as fast as the work. An iteration of mostly launches grows more slowly,
    /// so only the next smaller size is a good guide: from a product of order 24, which takes a GPU 6
    /// µs, one of order 16384 would be expected to take 1,900 s, but takes 0.17.
    pub(super) fn expect(
        &mut self,
        function: &str,
        size: u64,
        before: Option<u64>,
        cost: impl Fn(u64) -> Cost,
    ) -> Option<Duration> {
        let before = before?;
        let took = self.0.get(&(function.to_owned(), before))?;
        let work = |size| work(&cost(size), size);
        let expected = took.mul_f64(work(size) / work(before));
        self.note(function.to_owned(), size, expected);
        Some(expected)
    }
}

/// The work with which an iteration's time is assumed to grow: the larger of its operations and its
/// bytes.
fn work(cost: &Cost, size: u64) -> f64 {
    let known = [cost.flop, cost.bytes].into_iter().flatten();
    known.fold(size as f64, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_iterations_get_fewer_samples_and_time_enough() {
        let plan = SamplingPlan::of(SizeSet::Default);
        for fast in [Duration::ZERO, Duration::from_micros(3)] {
            let sampling = plan.for_iteration(fast);
            assert_eq!(sampling.samples, plan.samples);
            assert_eq!(sampling.measurement, plan.measurement);
        }
        let sampling = plan.for_iteration(Duration::from_secs(1));
        assert_eq!(sampling.samples, FEWEST_SAMPLES);
        assert_eq!(sampling.measurement, Duration::from_secs(15));
        assert_eq!([1e6, 1e9].map(|ns| plan.iterations(ns)), [2, 1]);
        let warm_up = [(1, 9e6), (1, 11e6), (9, 1e6)].map(|(n, ns)| warm_up_in_turns(n, ns));
        assert_eq!(warm_up, [1, 0, 2]);
        let sampling = plan.for_iteration(plan.measurement.mul_f64(1.0 / 25.0));
        assert_eq!(sampling.samples, 12);
    }

    /// As Criterion computes it, where it finds the iteration somewhat faster or slower.
    #[test]
    fn every_sample_has_two_iterations_and_slow_ones_no_more() {
        for set in [SizeSet::Quick, SizeSet::Default, SizeSet::Full] {
            let plan = SamplingPlan::of(set);
            for exponent in -90..10 {
                let planned = Duration::from_secs_f64(1.26f64.powi(exponent));
                let sampling = plan.for_iteration(planned);
                for found in [0.8, 1.0, 1.2].map(|off| planned.mul_f64(off)) {
                    let count = sampling.samples as f64;
                    let runs = match sampling.mode {
                        SamplingMode::Linear => count * (count + 1.0) / 2.0,
                        _ => count,
                    };
                    let fit = sampling.measurement.as_secs_f64() / found.as_secs_f64() / runs;
                    assert!(fit > 1.0, "{set:?} {planned:?}: {fit}");
                    if planned > plan.measurement {
                        assert!(fit <= 2.0, "{set:?} {planned:?}: {fit}");
                    }
                }
            }
        }
    }

    #[test]
    fn time_grows_with_work_from_the_size_before() {
        let cost = |n: u64| Cost {
            flop: Some(2.0 * (n as f64).powi(3)),
            ..Cost::default()
        };
        let mut pace = Pace::default();
        let ms = Duration::from_millis;
        pace.note("cpu/product".to_owned(), 64, ms(10));
        let mut expect = |size, before| pace.expect("cpu/product", size, before, cost);
        assert_eq!(expect(128, Some(64)), Some(ms(80)));
        // One that was left out tells of the next.
        assert_eq!(expect(256, Some(128)), Some(ms(640)));
        assert_eq!(expect(2048, Some(1024)), None, "it was not run");
        assert_eq!(expect(8, None), None, "the smallest size");
    }
}
