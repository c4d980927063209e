//! Checks at the beginning of a benchmark's warm-up, and their messages.

use super::benchmarks::TimedBenchmark;
use super::clock_file::CountedLaunches;
use crate::capture::Enqueued;
use crate::cuda_time::CudaTime;
use crate::device::{Iteration, Routine, Sample};
use crate::error::TimingError;
use crate::measure::{UNCAPTURED, needs_launches};
use crossover_words::Clock;
use crossover_words::units::time;

impl CudaTime {
    /// [`measure`](Self::measure) for a Criterion benchmark. When the benchmark begins, it is checked,
    /// and a note is printed if it is timed on another clock, or makes another number of launches than
    /// declared.
    pub(crate) fn measure_benchmark(
        &self,
        benchmark: TimedBenchmark,
        iterations: u64,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        let clock = benchmark.clock;
        let benchmarks = &self.inner.criterion.benchmarks;
        let repeats = benchmarks.repeats(benchmark, iterations);
        if clock == Clock::Activity {
            benchmarks.launches.take();
        } else if !repeats {
            let iteration = match iterations {
                1 => {
                    benchmarks.launches.take();
                    self.begin_benchmark(benchmark, &mut *routine)?
                }
                _ => self.counted(
                    clock,
                    benchmark.iteration.unwrap_or_default(),
                    &mut *routine,
                )?,
            };
            benchmarks.counted.set(iteration);
        }
        #[cfg(feature = "profiler")]
        (benchmarks.is_tested)
            .set(iterations == 1 && clock != Clock::Activity && has_argument("--test"));
        let ns = if benchmark.iteration.is_some() {
            let sample = Sample {
                clock,
                iterations,
                iteration: benchmarks.counted.get(),
            };
            self.measure_erased(sample, routine)?
        } else {
            self.measure_graph_erased(clock, iterations, routine)?
        };
        let used = self.effective_clock(clock);
        let launches = CountedLaunches {
            activity: benchmarks
                .activity
                .take()
                .filter(|_| clock == Clock::Activity),
            ..benchmarks.launches.get()
        };
        (benchmarks.ledger).note(iterations, ns, used, launches);
        Ok(ns)
    }

    /// Prints how much of a time on `events-cold` is the clock's own.
    fn say_constant(&self, clock: Clock) -> Result<(), TimingError> {
        let was_said = &self.inner.criterion.benchmarks.constant_said;
        let Some(empty) = self.empty_kernel().filter(|_| clock == Clock::EventsCold) else {
            return Ok(());
        };
        if was_said.replace(true) || self.is_profiling() {
            return Ok(());
        }
        let each = |clock| -> Result<f64, TimingError> {
            // SAFETY: the kernel takes no arguments.
            let launch = || unsafe { empty.launch(self.stream().expect("it has a kernel")) };
            Ok(self.measure_launches(clock, 50, 1, launch)? / 50.0)
        };
        let (cold, gated) = (each(Clock::EventsCold)?, each(Clock::EventsGated)?);
        self.inner.criterion.benchmarks.say(constant(cold, gated));
        Ok(())
    }

    /// The state and the constants of launches. They explain a result, so an error is no reason to lose a benchmark.
    fn probed_launches(&self, clock: Clock) -> CountedLaunches {
        let state = self.or_say(self.launch_state());
        if state.is_some_and(|state| state.is_long) {
            self.inner.criterion.benchmarks.say(LONG.to_owned());
        }
        CountedLaunches {
            probe_ns: state.map(|state| state.probe_ns),
            empty_ns: self.or_say(self.launch_constant(clock)),
            event_step_ns: self.event_step_ns(clock),
            ..CountedLaunches::default()
        }
    }

    fn or_say<T>(&self, found: Result<Option<T>, TimingError>) -> Option<T> {
        found.unwrap_or_else(|error| {
            let note = format!("the launch constant is unknown: {error}");
            self.inner.criterion.benchmarks.say(note);
            None
        })
    }

    /// Checks a benchmark, and counts the launches of an iteration.
    fn begin_benchmark(
        &self,
        benchmark: TimedBenchmark,
        routine: Routine<'_>,
    ) -> Result<Iteration, TimingError> {
        let clock = benchmark.clock;
        let iteration = benchmark.iteration.unwrap_or_default();
        let benchmarks = &self.inner.criterion.benchmarks;
        if !self.is_profiling() && has_argument("--profile-time") {
            benchmarks.say(NO_PROFILER.to_owned());
        }
        let Some(device) = self.device() else {
            return Ok(iteration);
        };
        if device.is_tracked() {
            benchmarks.say(TRACKED.to_owned());
        }
        device.gate.borrow().check(clock)?;
        if self.is_profiling() {
            return Ok(iteration);
        }
        if matches!(clock, Clock::EventsGated | Clock::EventsCold)
            && let Some(reason) = device.gate.borrow().off()
        {
            benchmarks.say(without_gate(clock, reason));
        }
        let mut launches = self.probed_launches(clock);
        launches.enqueued = benchmark.iteration.is_none().then_some(Enqueued::GRAPH);
        if benchmark.iteration.is_none() || iteration == Iteration::Awaited {
            benchmarks.launches.set(launches);
            return Ok(iteration);
        }
        self.say_constant(clock)?;
        self.try_out(clock, &mut *routine)?;
        let required = iteration == Iteration::Uncounted && needs_launches(clock);
        launches.enqueued = device.count(&mut *routine, required)?;
        benchmarks.launches.set(launches);
        let made = launches.enqueued.map(Enqueued::all);
        if made == Some(0) {
            return Err(TimingError::NothingEnqueued);
        }
        if let Some(line) = miscounted(clock, iteration, made) {
            benchmarks.say(line);
        }
        let overlap_shows = matches!(clock, Clock::Events | Clock::EventsGated);
        if overlap_shows && made.is_some() && device.overlaps(routine)? {
            benchmarks.say(OVERLAPS.to_owned());
        }
        Ok(match iteration {
            Iteration::Uncounted => Iteration::Launches(made.unwrap_or(UNCAPTURED)),
            declared => declared,
        })
    }
}

/// The note if Criterion is to profile and has no profiler.
const NO_PROFILER: &str = "--profile-time records nothing here: in Cargo.toml, add features = [\"profiler\"] to \
    crossover-timing, and in the code .with_profiler(CudaProfiler::new(&time)) to Criterion";

/// The note if each launch carries events.
const TRACKED: &str = "the context has several streams, which cudarc orders by events: those of each launch are part \
    of its time; to order the streams yourself, open the device with crossover_timing::open";

/// The note if kernels of a batch overlap.
const OVERLAPS: &str = "a routine makes programmatic dependent launches: on events and events-gated its kernels overlap, \
    so a time is the throughput of a queue of them; events-cold times one alone";

/// The note if launches are long when a benchmark begins.
const LONG: &str = "launches take longer since an earlier benchmark, by kernels or memory sets on eight more streams or by \
    resets of persisting lines: call CudaTime::shorten_launches before each benchmark, or use fewer streams";

/// Whether the program was given an option, with or without a value.
fn has_argument(option: &str) -> bool {
    std::env::args_os().any(|argument| argument.to_string_lossy().split('=').next() == Some(option))
}

/// The note if the gate is off.
fn without_gate(clock: Clock, reason: &str) -> String {
    let instead = match clock {
        Clock::EventsCold => "each time on events-cold includes the wait for its launch",
        _ => "a benchmark on events-gated is timed on events, launches included",
    };
    format!("the gate is off, so {instead}: {reason}; GateMode::Required makes this an error")
}

/// The note on the clock's own time.
fn constant(cold_ns: f64, gated_ns: f64) -> String {
    format!(
        "an empty kernel takes {} on events-cold, whose iterations have an event pair each, and {} on \
         events-gated: time short kernels with iter_gated on inputs of CudaTime::rotating",
        time(cold_ns),
        time(gated_ns)
    )
}

/// The note if a routine makes another number of launches than declared, or an unknown one.
fn miscounted(clock: Clock, iteration: Iteration, made: Option<u32>) -> Option<String> {
    match (iteration, made) {
        (Iteration::Launches(declared), Some(made)) if declared != made => {
            let noun = if declared == 1 { "launch" } else { "launches" };
            Some(format!(
                "a benchmark on {clock} declares {declared} {noun} per iteration and makes {made}, copies and \
                 memory sets included; pass {made}, or let the clock count"
            ))
        }
        (Iteration::Uncounted, None) if matches!(clock, Clock::EventsGated | Clock::Submit) => {
            Some(format!(
                "an iteration of a benchmark on {clock} cannot be captured, so its launches were not counted: \
                 {UNCAPTURED} are assumed; iter_on takes their number"
            ))
        }
        _ => None,
    }
}
