//! The state of a clock between Criterion's calls: above all, the benchmarks that it has timed.

use std::cell::{Cell, RefCell};

use super::clock_file::{CountedLaunches, Ledger};
use super::rate::Formatter;
use crate::device::Iteration;
use crate::error::TimingError;
use crossover_words::Clock;

/// A benchmark as its bencher knows it: Criterion does not tell the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimedBenchmark {
    pub(crate) clock: Clock,
    /// `None` if the replay of a graph is timed.
    pub(crate) iteration: Option<Iteration>,
    /// The type of its closure.
    pub(crate) routine: &'static str,
}

impl TimedBenchmark {
    /// The sentence of an error that ends it.
    pub(super) fn failed(&self, error: TimingError) -> String {
        let function = self.routine.trim_start_matches("&mut ");
        let function = function.split("::{{closure}}").next().unwrap_or(function);
        match error {
            TimingError::Routine(cause) => format!("the routine of {function} failed: {cause}"),
            error => error.to_string(),
        }
    }
}

/// The state of a clock between Criterion's calls.
#[derive(Default)]
pub(crate) struct OnCriterion {
    pub(super) formatter: Formatter,
    pub(crate) benchmarks: Benchmarks,
}

impl OnCriterion {
    /// Tells the formatter, which Criterion asks after a benchmark.
    pub(crate) fn measures_on(&self, clock: Clock) {
        self.formatter.clock.set(clock);
    }
}

/// The benchmarks that a clock has timed.
#[derive(Debug, Default)]
pub(crate) struct Benchmarks {
    /// The last measurement and its iterations.
    last: Cell<Option<(TimedBenchmark, u64)>>,
    /// An iteration of it, counted.
    pub(super) counted: Cell<Iteration>,
    printed: RefCell<Vec<String>>,
    /// The launches and the constant of a launch when it began.
    pub(super) launches: Cell<CountedLaunches>,
    /// The figures of the last sample on [`Clock::Activity`].
    pub(crate) activity: Cell<Option<[f64; 5]>>,
    /// Whether the next sample is of a benchmark that Criterion only tests.
    #[cfg(feature = "profiler")]
    pub(crate) is_tested: Cell<bool>,
    /// Whether the note on the constant of `events-cold` was printed.
    pub(super) constant_said: Cell<bool>,
    pub(crate) ledger: Ledger,
}

impl Benchmarks {
    /// Whether the last measurement was of the same benchmark, and as many iterations. Criterion begins
    /// each benchmark with a single iteration, and may go on with single ones.
    pub(super) fn repeats(&self, benchmark: TimedBenchmark, iterations: u64) -> bool {
        let this = Some((benchmark, iterations));
        self.last.replace(this) == this
    }

    /// Prints a line, unless it was printed before.
    pub(crate) fn say(&self, line: String) {
        let mut printed = self.printed.borrow_mut();
        if !printed.contains(&line) {
            eprintln!("note: {line}");
            printed.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATED: TimedBenchmark = TimedBenchmark {
        clock: Clock::EventsGated,
        iteration: Some(Iteration::Uncounted),
        routine: "a",
    };

    #[test]
    fn an_error_of_a_routine_names_its_function() {
        let failing = || Err::<(), _>("no file");
        let benchmark = TimedBenchmark {
            routine: std::any::type_name_of_val(&failing),
            ..GATED
        };
        let error = TimingError::from(crate::BoxError::from(failing().unwrap_err()));
        let said = benchmark.failed(error);
        let function = "tests::an_error_of_a_routine_names_its_function failed: no file";
        assert!(said.starts_with("the routine of "), "{said}");
        assert!(said.ends_with(function), "{said}");
    }

    #[test]
    fn only_samples_of_equal_length_repeat() {
        let benchmarks = Benchmarks::default();
        let repeats = |benchmark, runs: &[u64]| -> Vec<bool> {
            (runs.iter())
                .map(|&n| benchmarks.repeats(benchmark, n))
                .collect()
        };
        assert_eq!(
            repeats(GATED, &[1, 2, 4, 30, 30]),
            [false, false, false, false, true]
        );
        // The next size, by the same closure.
        assert_eq!(repeats(GATED, &[1, 2]), [false, false]);
        // Samples of one iteration.
        assert_eq!(repeats(GATED, &[1, 1, 1]), [false, true, true]);
        let other = TimedBenchmark {
            routine: "b",
            ..GATED
        };
        assert_eq!(repeats(other, &[1, 1]), [false, true]);
    }
}
