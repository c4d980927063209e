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

/// FLOP of a multiprocessor per clock in f32, outside of its tensor cores, a multiply-add counted as two; `None` for a
/// compute capability that NVIDIA's CUDA C++ Programming Guide does not have.
pub const fn f32_flop_per_clock(compute_capability: (u32, u32)) -> Option<u32> {
    match compute_capability {
        (7, 0 | 5) | (8, 0) => Some(128),
        (8, 6 | 7 | 9) | (9, 0) | (10, 0 | 3) | (11, 0) | (12, 0 | 1) => Some(256),
        _ => None,
    }
}

/// FNV-1a with 64 bits, over words or bytes: detects changes, and does not protect against forgery.
pub fn fnv1a(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, word| {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
