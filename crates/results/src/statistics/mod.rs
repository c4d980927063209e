//! What several parts compute alike: medians, and by how much two processes of the same code
//! differ. That is one idea everywhere: benchmarks of a class are taken to differ from process to
//! process by a variance of the class, which a benchmark's own processes moderate.

pub mod drift;
pub mod median;
pub mod spread;
pub mod unsteady;

/// A number that may be a time, a rate or an amount: finite, and above zero.
pub(crate) fn positive(number: f64) -> Option<f64> {
    (number.is_finite() && number > 0.0).then_some(number)
}
