//! Checks at the beginning of a benchmark's warm-up, and their messages.

use super::benchmarks::Benchmark;
use crate::capture::Enqueued;
use crate::cuda_time::CudaTime;
use crate::device::Routine;
use crate::error::{TimingError, count};
use crate::sequence;
use crossover_words::Clock;
use crossover_words::units::time;

impl CudaTime {
    /// [`measure`](Self::measure) for a benchmark of Criterion's: where it begins, says on which
    /// other clock it is timed, and whether it makes as many launches as it was said to.
    pub(crate) fn measure_benchmark(
        &self,
        benchmark: Benchmark,
        iterations: u64,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        let Benchmark {
            clock, launches, ..
        } = benchmark;
        if self.criterion().benchmarks.begins(benchmark, iterations) {
            self.begin_benchmark(clock, launches, routine)?;
        }
        let ns = self.measure_erased(clock, iterations, launches, routine)?;
        self.note(clock, iterations, ns);
        Ok(ns)
    }

    /// [`measure_graph`](Self::measure_graph) for a benchmark of Criterion's.
    pub(crate) fn measure_graph_benchmark(
        &self,
        benchmark: Benchmark,
        iterations: u64,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        if self.criterion().benchmarks.begins(benchmark, iterations) {
            self.say_without_gate(benchmark.clock);
        }
        let ns = self.measure_graph_erased(benchmark.clock, iterations, routine)?;
        self.note(benchmark.clock, iterations, ns);
        Ok(ns)
    }

    /// Keeps a measurement of a benchmark, for the clock of its result to be written.
    fn note(&self, clock: Clock, iterations: u64, ns: f64) {
        let used = self.effective_clock(clock);
        self.criterion()
            .benchmarks
            .ledger
            .note(iterations, ns, used);
    }

    /// Says where another clock takes the place of this one.
    fn say_without_gate(&self, clock: Clock) {
        let off = self
            .device()
            .and_then(|d| d.gate.borrow().off().map(str::to_owned));
        if let (Some(reason), Clock::EventsGated | Clock::EventsCold) = (off, clock) {
            self.criterion()
                .benchmarks
                .say(without_gate(clock, &reason));
        }
    }

    /// Says how much of a time on `events-cold` is the clock's own, where the numbers are shown.
    fn say_constant(&self, clock: Clock) -> Result<(), TimingError> {
        let said = &self.criterion().benchmarks.constant_said;
        let Some(empty) = self.empty_kernel().filter(|_| clock == Clock::EventsCold) else {
            return Ok(());
        };
        if said.replace(true) || self.is_profiling() {
            return Ok(());
        }
        let each = |clock| -> Result<f64, TimingError> {
            // SAFETY: the kernel takes no arguments.
            let launch = || unsafe { empty.launch(self.stream().expect("it has a kernel")) };
            Ok(self.measure(clock, 50, 1, launch)? / 50.0)
        };
        let (cold, gated) = (each(Clock::EventsCold)?, each(Clock::EventsGated)?);
        self.criterion().benchmarks.say(constant(cold, gated));
        Ok(())
    }

    fn begin_benchmark(
        &self,
        clock: Clock,
        launches: u32,
        routine: Routine<'_>,
    ) -> Result<(), TimingError> {
        let Some(device) = self.device() else {
            return Ok(());
        };
        device.gate.borrow().check(clock)?;
        if self.is_profiling() || !matches!(clock, Clock::EventsGated | Clock::EventsCold) {
            return Ok(());
        }
        self.say_without_gate(clock);
        self.say_constant(clock)?;
        // In a capture nothing may be loaded.
        sequence::load(&mut device.window(routine)?)?;
        if let Some(enqueued) = device.count(routine)?
            && let Some(line) = miscounted(clock, launches, enqueued)?
        {
            self.criterion().benchmarks.say(line);
        }
        Ok(())
    }
}

/// What is said where the gate is off.
fn without_gate(clock: Clock, reason: &str) -> String {
    let instead = match clock {
        Clock::EventsCold => "each time on events-cold includes the wait for its launch",
        _ => "what asks for events-gated is timed on events, launches included",
    };
    format!("the gate is off, so {instead}: {reason}; GateMode::Required makes this an error")
}

/// What is said of the clock's own time.
fn constant(cold_ns: f64, gated_ns: f64) -> String {
    format!(
        "an empty kernel takes {} on events-cold, whose iterations have an event pair each, and {} on \
         events-gated: time short kernels with iter_gated on inputs of CudaTime::rotating",
        time(cold_ns),
        time(gated_ns)
    )
}

/// What is said where a routine does not make the launches that it was said to.
///
/// # Errors
/// It declares some launches and enqueues nothing: there would be nothing to time.
fn miscounted(
    clock: Clock,
    launches: u32,
    enqueued: Enqueued,
) -> Result<Option<String>, TimingError> {
    if launches > 0 && enqueued.launches + enqueued.others == 0 {
        return Err(TimingError::NothingEnqueued { launches });
    }
    let why = match launches.cmp(&enqueued.launches) {
        std::cmp::Ordering::Equal => return Ok(None),
        std::cmp::Ordering::Less => "more than fit may be queued behind the gate",
        std::cmp::Ordering::Greater => {
            "a batch is smaller than it could be, and its constant larger"
        }
    };
    Ok(Some(format!(
        "a benchmark on {clock} declares {} per iteration and makes {}: {why}; pass {}",
        count(launches, "launch", "launches"),
        enqueued.launches,
        enqueued.launches
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_and_more_launches_than_said_are_told_with_the_number_to_say() {
        let said = |launches, made, others| {
            let enqueued = Enqueued {
                launches: made,
                others,
            };
            miscounted(Clock::EventsGated, launches, enqueued).unwrap()
        };
        assert_eq!(said(2, 2, 0), None);
        assert_eq!(said(0, 0, 1), None, "a copy is no launch");
        assert_eq!(said(0, 0, 0), None);
        let fewer = said(1, 3, 0).unwrap();
        for words in [
            "1 launch per iteration and makes 3",
            "queued behind the gate; pass 3",
        ] {
            assert!(fewer.contains(words), "{fewer}");
        }
        let more = said(448, 1, 2).unwrap();
        for words in ["448 launches per iteration and makes 1", "pass 1"] {
            assert!(more.contains(words), "{more}");
        }
    }

    #[test]
    fn work_elsewhere_is_an_error() {
        let nothing = Enqueued {
            launches: 0,
            others: 0,
        };
        let error = miscounted(Clock::EventsCold, 3, nothing).unwrap_err();
        let error = error.to_string();
        for words in [
            "enqueued nothing on the timed stream, where it should make 3 launches",
            "CudaTime::stream",
        ] {
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn another_clock_is_named_with_the_reason_and_the_remedy() {
        let gated = without_gate(Clock::EventsGated, "switched off");
        for part in ["timed on events,", "switched off", "GateMode::Required"] {
            assert!(gated.contains(part), "{gated}");
        }
        let cold = without_gate(Clock::EventsCold, "switched off");
        assert!(cold.contains("includes the wait"), "{cold}");
    }
}
