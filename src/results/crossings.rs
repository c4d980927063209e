//! `<root>/crossings.json`: sizes around crossings, which earlier versions, whose answers rested on
//! one process, kept for their next run.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::model::environment::Environment;
use crate::model::id::Device;
use crate::results::files::{FileError, read_json};
use crate::results::layout::CROSSINGS;

/// Extra sizes of one pair of implementations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
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
pub(crate) struct Crossings {
    /// [`SCHEMA`](crate::model::SCHEMA) of the writer.
    pub schema: u32,
    /// CPU and GPU the crossings were found on.
    pub machine: String,
    /// One per pair of implementations.
    pub entries: Vec<Entry>,
}

impl Crossings {
    /// Reads the file of a results root; `Ok(None)` where there is none or where it belongs
    /// to another machine.
    pub(crate) fn read(root: &Path, environment: &Environment) -> Result<Option<Self>, FileError> {
        let path = root.join(CROSSINGS);
        if !path.exists() {
            return Ok(None);
        }
        let crossings: Self = read_json(&path)?;
        Ok((crossings.machine == machine(environment)).then_some(crossings))
    }

    /// Extra sizes of one implementation, ascending; empty for most.
    pub(crate) fn sizes(&self, group: &str, device: Device, implementation: &str) -> Vec<u64> {
        let mut sizes: Vec<u64> = self
            .entries
            .iter()
            .filter(|e| e.group == group)
            .filter(|e| match device {
                Device::Cpu => e.cpu == implementation,
                Device::Gpu => e.gpu == implementation,
            })
            .flat_map(|e| e.sizes.iter().copied())
            // A damaged file may hold 0 or 2^63, of which no workload can be made.
            .filter(|size| (1..=1 << 40).contains(size))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// CPU and GPU, by which a file is known as this machine's.
pub(crate) fn machine(environment: &Environment) -> String {
    let gpu = environment.gpu.as_ref().map_or("no GPU", |gpu| &gpu.name);
    format!("{} + {gpu}", environment.cpu.model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_of_an_earlier_version_are_read_on_the_same_machine_alone() {
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment::default();
        assert_eq!(Crossings::read(dir.path(), &environment).unwrap(), None);
        let text = format!(
            r#"{{"schema": 1, "machine": {:?}, "entries": [{{"group": "matmul", "cpu": "best",
                "gpu": "cublas-eager", "sizes": [96, 80, 80, 0]}}]}}"#,
            machine(&environment)
        );
        std::fs::write(dir.path().join(CROSSINGS), text).unwrap();
        let kept = Crossings::read(dir.path(), &environment).unwrap().unwrap();
        assert_eq!(kept.sizes("matmul", Device::Cpu, "best"), [80, 96]);
        assert_eq!(kept.sizes("matmul", Device::Gpu, "cublas-eager"), [80, 96]);
        assert!(kept.sizes("matmul", Device::Cpu, "naive").is_empty());

        let mut elsewhere = environment;
        elsewhere.cpu.model = "Another CPU".into();
        assert_eq!(Crossings::read(dir.path(), &elsewhere).unwrap(), None);
    }
}
