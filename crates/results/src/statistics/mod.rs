//! Shared statistics: medians, and the spread between processes of the same code. Benchmarks
//! of a class are assumed to vary between processes by a variance of the class, which moderates that of
//! a benchmark's own processes.

pub mod between_processes;
pub mod median;
pub mod unsteady;

/// The arithmetic mean; NaN without numbers.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let add = |(sum, n): (f64, f64), value| (sum + value, n + 1.0);
    let (sum, n) = values.into_iter().fold((0.0, 0.0), add);
    sum / n
}

/// A number that may be a time, a rate or an amount: finite, and above zero.
pub(crate) fn positive(number: f64) -> Option<f64> {
    (number.is_finite() && number > 0.0).then_some(number)
}
