//! The sizes measured around a crossing, fixed for a machine once found.
//!
//! A crossing between two sizes that lie a factor of two apart is interpolated. The next
//! run measures the quarters between them (320, 384 and 448 between 256 and 512, so that
//! alignment to large powers of two is kept) for the two implementations that cross, and
//! the answer is then measured. The sizes are kept in `<root>/crossings.json` and stay as
//! they are on that machine, so that two runs have the same ids.

use crate::analysis::crossover::pairs::Found;
use crate::model::SCHEMA;
use crate::model::environment::Environment;
use crate::results::crossings::{Crossings, Entry, machine};

/// Adds the headline crossings of `found` that are not yet kept. Kept ones stay.
pub(crate) fn sizes_to_measure(
    found: &[Found],
    environment: &Environment,
    kept: Option<Crossings>,
) -> Crossings {
    let mut crossings = kept.unwrap_or_default();
    crossings.schema = SCHEMA;
    crossings.machine = machine(environment);
    for f in found
        .iter()
        .filter(|f| f.headline && f.gpu_machine.is_none())
    {
        let Some(change) = f.crossing.for_good() else {
            continue;
        };
        let known = |e: &Entry| e.group == f.group && e.gpu == f.gpu;
        let sizes = between(change.size);
        if change.measured || sizes.is_empty() || crossings.entries.iter().any(known) {
            continue;
        }
        crossings.entries.push(Entry {
            group: f.group.clone(),
            cpu: f.cpu.clone(),
            gpu: f.gpu.clone(),
            sizes,
        });
    }
    crossings
}

/// The whole quarters strictly between the powers of two around `size`.
fn between(size: f64) -> Vec<u64> {
    if !(1.0..9e15).contains(&size) {
        return Vec::new();
    }
    let below = 1u64 << (size as u64).ilog2();
    [5, 6, 7]
        .into_iter()
        .filter(|quarters| (below * quarters).is_multiple_of(4))
        .map(|quarters| below * quarters / 4)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_between_the_powers_of_two() {
        assert_eq!(between(300.0), [320, 384, 448]);
        assert_eq!(between(512.0), [640, 768, 896]);
        assert_eq!(between(2.5), [3]);
        assert_eq!(between(5.0), [5, 6, 7]);
        assert!(between(1.5).is_empty());
        assert!(between(f64::NAN).is_empty());
    }
}
