//! What the benchmarks of a group learn for those that follow.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::suite::pace::Pace;
use crate::workload::routine::Workload;
use crate::workload::with_other_values;

/// What the benchmarks of a group learn for those that follow.
pub(super) struct Learnt<W> {
    pub(super) pace: Pace,
    pub(super) edge_cases: OnceCell<Option<Rc<W>>>,
    /// Implementations that are right on them. What these set up is the same at each size.
    pub(super) right_on_edge_cases: BTreeSet<String>,
    /// Inputs with other values than the timed ones, of the size that was last asked for.
    other_values: Option<(u64, Rc<W>)>,
}

impl<W: Workload> Learnt<W> {
    pub(super) fn nothing() -> Self {
        Self {
            pace: Pace::default(),
            edge_cases: OnceCell::new(),
            right_on_edge_cases: BTreeSet::new(),
            other_values: None,
        }
    }

    pub(super) fn other_values(&mut self, size: u64) -> Rc<W> {
        let known = self.other_values.take().filter(|known| known.0 == size);
        let (_, problem) = (self.other_values)
            .insert(known.unwrap_or_else(|| (size, Rc::new(with_other_values(size)))));
        problem.clone()
    }
}
