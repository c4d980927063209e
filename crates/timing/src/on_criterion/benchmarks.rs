//! The benchmarks that a clock has timed for Criterion.

use std::cell::{Cell, RefCell};

use super::clock_file::Ledger;
use crossover_words::Clock;

/// A benchmark as its bencher knows it: Criterion does not tell the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Benchmark {
    pub(crate) clock: Clock,
    /// Launches of an iteration; `None` if the replay of a graph is timed.
    pub(crate) launches: Option<u32>,
    /// The type of its closure.
    pub(crate) routine: &'static str,
}

/// The benchmarks that a clock has timed.
#[derive(Debug, Default)]
pub(crate) struct Benchmarks {
    /// The last measurement and its iterations.
    last: Cell<Option<(Benchmark, u64)>>,
    said: RefCell<Vec<String>>,
    /// Whether the note on the constant of `events-cold` was printed.
    pub(super) constant_said: Cell<bool>,
    pub(crate) ledger: Ledger,
}

impl Benchmarks {
    /// Whether a benchmark begins with this measurement. Criterion begins each with a single
    /// iteration; where samples are of one iteration too, the same routine goes on.
    pub(super) fn begins(&self, benchmark: Benchmark, iterations: u64) -> bool {
        let last = self.last.replace(Some((benchmark, iterations)));
        iterations == 1 && last.is_none_or(|last| last != (benchmark, 1))
    }

    /// Prints a line, unless it was printed before.
    pub(super) fn say(&self, line: String) {
        let mut said = self.said.borrow_mut();
        if !said.contains(&line) {
            eprintln!("note: {line}");
            said.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATED: Benchmark = Benchmark {
        clock: Clock::EventsGated,
        launches: Some(1),
        routine: "a",
    };

    #[test]
    fn a_benchmark_begins_with_a_single_iteration_and_once() {
        let benchmarks = Benchmarks::default();
        let begins = |benchmark, runs: &[u64]| -> Vec<bool> {
            (runs.iter())
                .map(|&n| benchmarks.begins(benchmark, n))
                .collect()
        };
        assert_eq!(
            begins(GATED, &[1, 2, 4, 30, 30]),
            [true, false, false, false, false]
        );
        // The next size, by the same closure.
        assert_eq!(begins(GATED, &[1, 2]), [true, false]);
        // Samples of one iteration.
        assert_eq!(begins(GATED, &[1, 1, 1]), [true, false, false]);
        let other = Benchmark {
            routine: "b",
            ..GATED
        };
        assert_eq!(begins(other, &[1, 1]), [true, false]);
    }
}
