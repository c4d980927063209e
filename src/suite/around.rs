//! Sizes beyond the profile's: those around a crossing that an earlier run on this machine
//! found between two of its sizes.

use std::path::Path;

use crate::analysis::crossover::around::sizes_to_measure;
use crate::analysis::crossover::pairs;
use crate::model::environment::Environment;
use crate::results::crossings::Crossings;
use crate::results::files::FileError;
use crate::results::layout::CROSSINGS;
use crate::results::machine::Machine;
use crate::suite::group::Implementation;

/// The sizes that `crossings.json` adds, by group and implementation.
pub(super) struct ExtraSizes(Option<Crossings>);

impl ExtraSizes {
    /// Those of this machine. A file that cannot be read is named and adds none: the run's
    /// own sizes do not depend on it.
    pub(super) fn read(results: &Path, environment: impl FnOnce() -> Environment) -> Self {
        if !results.join(CROSSINGS).exists() {
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
        self.0
            .as_ref()
            .map(|crossings| crossings.sizes(group, row.device(), row.name))
            .unwrap_or_default()
    }
}

/// Keeps the crossings that the results now show, for the next run to measure.
///
/// # Errors
/// A file of crossings that cannot be read or written.
pub(super) fn keep(results: &Path, environment: &Environment) -> Result<(), FileError> {
    let machine = Machine::read(results, "this machine", false);
    let found = pairs::find(&machine, &[]);
    let kept = Crossings::read(results, environment)?;
    let crossings = sizes_to_measure(&found, environment, kept);
    if !crossings.entries.is_empty() {
        crossings.write(results)?;
    }
    Ok(())
}
