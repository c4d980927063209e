//! Sizes beyond the profile's: those around a crossing that an earlier run on this machine
//! found between two of its sizes.

use std::path::Path;

use super::group::Implementation;
use crate::device::environment::Environment;
use crate::report::crossover::{Crossings, sizes_to_measure};
use crate::report::model::Device;
use crate::report::{self, Options};

/// The sizes that `crossings.json` adds, by group and implementation.
pub(super) struct ExtraSizes(Option<Crossings>);

impl ExtraSizes {
    /// Those of this machine. A file that cannot be read is named and adds none: the run's
    /// own sizes do not depend on it.
    pub(super) fn read(results: &Path, environment: impl FnOnce() -> Environment) -> Self {
        if !results.join(report::crossover::CROSSINGS).exists() {
            return Self(None);
        }
        Self(
            Crossings::read(results, &environment()).unwrap_or_else(|error| {
                eprintln!("note: no sizes around crossings are added: {error}; delete the file");
                None
            }),
        )
    }

    pub(super) fn of<W>(&self, group: &str, row: &Implementation<W>) -> Vec<u64> {
        let device = if row.is_gpu() {
            Device::Gpu
        } else {
            Device::Cpu
        };
        self.0
            .as_ref()
            .map(|crossings| crossings.sizes(group, device, row.name))
            .unwrap_or_default()
    }
}

/// Keeps the crossings that the results now show, for the next run to measure.
///
/// # Errors
/// What keeps the results from being read or the file from being written.
pub(super) fn keep(
    results: &Path,
    out: &Path,
    environment: &Environment,
) -> Result<(), Box<dyn std::error::Error>> {
    let no_reference = Options {
        no_reference: true,
        ..Options::default()
    };
    let assembled = report::assemble(results, out, &no_reference)?;
    let kept = Crossings::read(results, environment)?;
    let crossings = sizes_to_measure(&assembled.found, environment, kept);
    if !crossings.entries.is_empty() {
        crossings.write(results)?;
    }
    Ok(())
}
