//! Words that every part of `crossover` shares: what a [`Clock`] means, numbers with their
//! [units], and [text] from files that is safe to show.
//!
//! It is not called `units`, which is one of the three. What the report says in sentences is in
//! `crossover-report` (`texts`), and how an answer is worded in `crossover-results`
//! (`analysis::answer::answer_in_words`).

mod clock;
#[cfg(feature = "clock-file")]
pub mod clock_file;
pub mod text;
pub mod units;

pub use clock::{Clock, UnknownClock};
