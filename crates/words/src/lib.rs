//! Words that every part of `crossover` shares: the meaning of a [`Clock`], numbers with [units], and
//! [text] from files that is safe to show.
//!
//! The words of answers are in `crossover-results` (`analysis::answer::answer_in_words`), those of decisions
//! for programs in `crossover-report` (`thresholds::decision_in_words`).

mod clock;
pub mod files;
#[cfg(feature = "sidecar")]
pub mod sidecar;
pub mod text;
pub mod units;

pub use clock::Clock;

/// FNV-1a with 64 bits, over words or bytes: detects changes, and does not protect against forgery.
pub fn fnv1a(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
