//! Compares two sets of benchmark results: verdicts with an error rate, and an exit code. `docs/comparing.md` gives
//! the reasons for the method.
//!
//! ```text
//! Baseline                samples of the runs of a side, read by `crossover_results`
//!   rows                  matches ids
//! BenchmarkRow, Case      Median of each side, in RunPairs
//!   constant              subtracts the launch constant
//!   learn                 for each class: Case -> MeanSquare -> Hypothesis -> DriftModel (`drift`)
//!   estimate              for some pairs of a case: an Estimate with one or two Distributions
//!   evidence              CaseEvidence: all pairs, and the best of the planned analyses
//!   judge                 Judged: one error rate for all; its interval is the Judgement
//!   rows, environment     the judged BenchmarkRow, and differences between the machines
//! Comparison
//!   show                  sentences
//!   forms, page           cells; for a terminal, as Markdown, as JSON and as a page
//! ```

mod case;
pub mod comparison;
mod constant;
mod distribution;
mod drift;
mod environment;
mod estimate;
mod evidence;
mod forms;
pub mod history;
mod judge;
mod learn;
mod page;
mod rows;
mod series;
mod show;
pub mod verdict;

#[cfg(test)]
mod tests;
