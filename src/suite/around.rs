//! Sizes beyond the profile's: those around crossings that an earlier version, whose answers
//! rested on one process, kept for this machine in `crossings.json`.

use std::path::Path;

use crate::model::environment::Environment;
use crate::results::crossings::Crossings;
use crate::results::layout::CROSSINGS;
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
