//! What the benchmarks of a group leave for later ones.

use std::collections::BTreeSet;

use crate::suite::group::Inputs;
use crate::suite::sampling_plan::Pace;

/// The cache of a group's benchmarks for later ones.
#[derive(Default)]
pub(super) struct GroupCache {
    pub(super) pace: Pace,
    /// Implementations that are right on the inputs that are not timed.
    pub(super) right_untimed: BTreeSet<String>,
    /// The inputs of a size, for all implementations.
    pub(super) inputs: OfLastSize,
    /// Inputs with other values than the timed ones.
    pub(super) other_values: OfLastSize,
}

/// Inputs of the last used size.
#[derive(Default)]
pub(super) struct OfLastSize(Option<(u64, Inputs)>);

impl OfLastSize {
    /// Those of this size, made unless they are there. Those of another size go first: there may be no
    /// memory for both.
    pub(super) fn of(&mut self, size: u64, make: impl FnOnce(u64) -> Inputs) -> Inputs {
        let known = self.0.take().filter(|known| known.0 == size);
        let known = known.unwrap_or_else(|| (size, make(size)));
        self.0.insert(known).1.clone()
    }
}
