//! Checks at the beginning of a benchmark's warm-up, and their messages.

use super::benchmarks::Benchmark;
use crate::capture::Enqueued;
use crate::cuda_time::CudaTime;
use crate::device::{Routine, Sample};
use crate::error::{TimingError, count};
use crate::sequence;
use crossover_words::Clock;
use crossover_words::units::time;

impl CudaTime {
    /// [`measure`](Self::measure) for a Criterion benchmark. When the benchmark begins, it is checked,
    /// and a note is printed if it is timed on another clock, or makes another number of launches than
    /// declared.
    pub(crate) fn measure_benchmark(
        &self,
        benchmark: Benchmark,
        iterations: u64,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        let clock = benchmark.clock;
        let benchmarks = &self.criterion().benchmarks;
        if benchmarks.begins(benchmark, iterations) {
            self.begin_benchmark(benchmark, routine)?;
        }
        let ns = match benchmark.launches {
            Some(launches) => {
                let sample = Sample {
                    clock,
                    iterations,
                    launches,
                };
                self.measure_erased(sample, routine)?
            }
            None => self.measure_graph_erased(clock, iterations, routine)?,
        };
        let used = self.effective_clock(clock);
        benchmarks.ledger.note(iterations, ns, used);
        Ok(ns)
    }

    /// Prints how much of a time on `events-cold` is the clock's own.
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
        benchmark: Benchmark,
        routine: Routine<'_>,
    ) -> Result<(), TimingError> {
        let clock = benchmark.clock;
        let Some(device) = self.device() else {
            return Ok(());
        };
        device.gate.borrow().check(clock)?;
        if self.is_profiling() || !matches!(clock, Clock::EventsGated | Clock::EventsCold) {
            return Ok(());
        }
        let benchmarks = &self.criterion().benchmarks;
        if let Some(reason) = device.gate.borrow().off() {
            benchmarks.say(without_gate(clock, reason));
        }
        let Some(launches) = benchmark.launches else {
            return Ok(());
        };
        self.say_constant(clock)?;
        // In a capture nothing may be loaded.
        sequence::load(&mut device.window(routine)?)?;
        if let Some(enqueued) = device.count(routine)?
            && let Some(line) = miscounted(clock, launches, enqueued)?
        {
            benchmarks.say(line);
        }
        Ok(())
    }
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

/// The note if a routine makes another number of launches than declared.
///
/// # Errors
/// The benchmark declares launches and enqueues nothing: there would be nothing to time.
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
            "batches are smaller than they could be, so their constant weighs more"
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
    fn a_wrong_number_of_launches_is_told_with_the_right_one_and_none_is_an_error() {
        let said = |declared, launches, others| {
            let enqueued = Enqueued { launches, others };
            miscounted(Clock::EventsGated, declared, enqueued)
                .map(Option::unwrap_or_default)
                .unwrap_or_else(|error| error.to_string())
        };
        assert_eq!(said(2, 2, 0), "");
        assert_eq!(said(0, 0, 1), "", "a copy is no launch");
        assert_eq!(said(0, 0, 0), "");
        for (said, words) in [
            (said(1, 3, 0), "1 launch per iteration and makes 3"),
            (said(1, 3, 0), "queued behind the gate; pass 3"),
            (said(448, 1, 2), "448 launches per iteration and makes 1"),
            (said(448, 1, 2), "pass 1"),
            (said(3, 0, 0), "where it should make 3 launches"),
            (said(3, 0, 0), "on CudaTime::stream"),
        ] {
            assert!(said.contains(words), "{said}");
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
