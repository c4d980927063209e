//! The state that a clock keeps between Criterion's calls.

use std::cell::RefCell;

use super::benchmarks::Benchmarks;
use super::rate::Formatter;
use crate::error::TimingError;

/// What a clock keeps for Criterion.
#[derive(Default)]
pub(crate) struct OnCriterion {
    pub(super) formatter: Formatter,
    pub(super) failure: RefCell<Option<TimingError>>,
    pub(super) benchmarks: Benchmarks,
}
