//! Words that every part of `crossover` shares: what a [`Clock`] means, numbers with their
//! [units], and [text] from files that is safe to show.

mod clock;
#[cfg(feature = "clock-file")]
pub mod clock_file;
pub mod text;
pub mod units;

pub use clock::{Clock, UnknownClock};
