//! Words that every part of `crossover` shares: the meaning of a [`Clock`], numbers with [units], and
//! [text] from files that is safe to show.
//!
//! The words of answers are in `crossover-results` (`analysis::answer::answer_in_words`), those of decisions
//! for programs in `crossover-report` (`thresholds::decision_in_words`).

mod clock;
pub mod files;
mod hash;
#[cfg(feature = "sidecar")]
pub mod sidecar;
pub mod text;
pub mod units;

pub use clock::Clock;
pub use hash::fnv1a;
