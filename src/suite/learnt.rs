//! What the benchmarks of a group learn for those that follow.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use crate::suite::group::{Inputs, Operation};
use crate::suite::pace::Pace;

/// What the benchmarks of a group learn for those that follow.
#[derive(Default)]
pub(super) struct Learnt {
    pub(super) pace: Pace,
    pub(super) edge_cases: OnceCell<Option<Inputs>>,
    /// Implementations that are right on them. What these set up is the same at each size.
    pub(super) right_on_edge_cases: BTreeSet<String>,
    /// Inputs with other values than the timed ones, of the size that was last asked for.
    other_values: Option<(u64, Inputs)>,
}

impl Learnt {
    pub(super) fn other_values(&mut self, operation: &Operation, size: u64) -> Inputs {
        let known = self.other_values.take().filter(|known| known.0 == size);
        let known = known.unwrap_or_else(|| (size, (operation.other_values)(size)));
        self.other_values.insert(known).1.clone()
    }
}
