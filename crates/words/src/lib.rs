//! Words that every part of `crossover` shares: what a [`Clock`] means, numbers with their
//! [units], and [text] from files that is safe to show.
//!
//! It is not called `units`, which is one of the three. How an answer is worded is in `crossover-results`
//! (`analysis::answer::answer_in_words`), and how a decision for a program is in `crossover-report`
//! (`thresholds::decision_in_words`).

mod clock;
#[cfg(feature = "clock-file")]
pub mod clock_file;
pub mod text;
pub mod units;

pub use clock::{Clock, UnknownClock};
