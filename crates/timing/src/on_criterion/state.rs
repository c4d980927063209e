//! The state that a clock keeps between Criterion's calls.

use super::benchmarks::Benchmarks;
use super::rate::Formatter;

/// What a clock keeps for Criterion.
#[derive(Default)]
pub(crate) struct OnCriterion {
    pub(super) formatter: Formatter,
    pub(super) benchmarks: Benchmarks,
}
