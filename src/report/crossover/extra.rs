//! The sizes measured around a crossing, fixed for a machine once found.
//!
//! A crossing between two sizes that lie a factor of two apart is interpolated. The next
//! run measures the quarters between them (320, 384 and 448 between 256 and 512, so that
//! alignment to large powers of two is kept) for the two implementations that cross, and
//! the answer is then measured. The sizes are kept in `<root>/crossings.json` and stay as
//! they are on that machine, so that two runs have the same ids.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::pairs::Found;
use crate::device::environment::Environment;
use crate::record::{self, RecordError};
use crate::report::model::Device;

/// File name under the results root.
pub const CROSSINGS: &str = "crossings.json";

/// Extra sizes of one pair of implementations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The group.
    pub group: String,
    /// The best CPU implementation there.
    pub cpu: String,
    /// The GPU implementation.
    pub gpu: String,
    /// Sizes to measure for both, ascending.
    pub sizes: Vec<u64>,
}

/// What `<root>/crossings.json` holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crossings {
    /// [`record::SCHEMA`] of the writer.
    pub schema: u32,
    /// CPU and GPU the crossings were found on.
    pub machine: String,
    /// One a pair of implementations.
    pub entries: Vec<Entry>,
}

impl Crossings {
    /// Reads the file of a results root; `Ok(None)` where there is none or where it belongs
    /// to another machine.
    pub fn read(root: &Path, environment: &Environment) -> Result<Option<Self>, RecordError> {
        let path = root.join(CROSSINGS);
        if !path.exists() {
            return Ok(None);
        }
        let crossings: Self = record::read_json(&path)?;
        Ok((crossings.machine == machine(environment)).then_some(crossings))
    }

    /// Writes the file under the results root.
    pub fn write(&self, root: &Path) -> Result<(), RecordError> {
        record::write_json(&root.join(CROSSINGS), self)
    }

    /// Extra sizes of one implementation, ascending; empty for most.
    pub fn sizes(&self, group: &str, device: Device, implementation: &str) -> Vec<u64> {
        let mut sizes: Vec<u64> = self
            .entries
            .iter()
            .filter(|e| e.group == group)
            .filter(|e| match device {
                Device::Cpu => e.cpu == implementation,
                Device::Gpu => e.gpu == implementation,
            })
            .flat_map(|e| e.sizes.iter().copied())
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Adds the headline crossings of `found` that are not yet kept. Kept ones stay.
pub fn sizes_to_measure(
    found: &[Found],
    environment: &Environment,
    kept: Option<Crossings>,
) -> Crossings {
    let mut crossings = kept.unwrap_or_default();
    crossings.schema = record::SCHEMA;
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

fn machine(environment: &Environment) -> String {
    let gpu = environment.gpu.as_ref().map_or("no GPU", |gpu| &gpu.name);
    format!("{} + {gpu}", environment.cpu.model)
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
