//! Checks of what a group declares.

use std::hash::{DefaultHasher, Hasher};

use crate::model::id::Device;
use crate::suite::group::AnyGroup;
use crate::timing::Rate;

/// The most bytes that an element has in memory: eight values of f64, read or written.
const ELEMENT_BYTES: f64 = 64.0;

impl AnyGroup {
    /// Contradictions in what the group declares, in sentences; a run refuses such a group.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let sizes = self.sizes.all();
        for (at, row) in self.rows.iter().enumerate() {
            let function = row.function();
            let name = format!("{}/{function}", self.name);
            if self.rows[..at].iter().any(|r| r.function() == function) {
                found.push(format!("two rows are named {name}; rename one of them"));
            }
            let moves = |size: &u64| {
                self.cost_of(row, *size)
                    .link_bytes
                    .is_some_and(|b| b.sum() > 0.0)
            };
            if row.device() == Device::Gpu
                && row.role.data.on_device()
                && !row.role.leaves_the_device()
                && sizes.iter().any(moves)
            {
                found.push(format!(
                    "the cost of {name} has bytes over the link, but its data are declared to stay on the \
                     device; declare them with .data(Residency::Pinned) or \
                     .data(Residency::Ordinary)"
                ));
            }
        }
        found.extend(self.bytes_of_elements().filter(|bytes| *bytes > ELEMENT_BYTES).map(|bytes| {
            format!(
                "{}: its rate counts elements, but by its cost a kernel moves {bytes:.0} bytes for each, so \
                 they are rows or other inputs: use Rate::inputs",
                self.name
            )
        }));
        found
    }

    /// The bytes that a kernel moves for one more element, if the rate counts elements. What does not depend on the
    /// size, such as weights, is not in it.
    fn bytes_of_elements(&self) -> Option<f64> {
        self.rate
            .as_ref()
            .filter(|rate| rate.unit() == Rate::elements().unit())?;
        let sizes = self.sizes.all();
        let (least, most) = (*sizes.iter().min()?, *sizes.iter().max()?);
        let bytes = |size| {
            let cost = (self.cost)(size);
            Some(cost.bytes? / f64::from(cost.launches.unwrap_or(1).max(1)))
        };
        (least < most).then_some((bytes(most)? - bytes(least)?) / (most - least) as f64)
    }

    /// What is wrong with the inputs, in a sentence: there are none, or another seed gives the same.
    pub fn doubtful_inputs(&self) -> Option<String> {
        let operation = &self.operation;
        let sizes = self.sizes.for_tests().into_iter();
        let size = sizes.max().filter(|_| self.has_inputs)?;
        let digest = |inputs| {
            let (mut hasher, mut bytes) = (DefaultHasher::new(), 0);
            (operation.visit_inputs)(&inputs, &mut |piece| {
                hasher.write(piece);
                bytes += piece.len();
            });
            (bytes, hasher.finish())
        };
        let (name, usual) = (self.name, digest((operation.inputs)(size)));
        if usual.0 == 0 {
            return Some(format!(
                "{name} shows no inputs for a digest: implement Workload::visit_inputs, or declare \
                 Group::no_inputs"
            ));
        }
        (digest(operation.other_values(size)) == usual).then(|| {
            format!(
                "{name} has the same inputs with another seed, so an implementation that keeps an earlier \
                 result would pass: make the values with workload::uniform or from workload::seed"
            )
        })
    }
}
