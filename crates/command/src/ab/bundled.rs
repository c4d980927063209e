//! A bundle of `crossover bundle`, as a side of `crossover ab`.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use crate::ab::executable::{Executable, Order};
use crate::ab::worktree::{BuildPlace, Copies};
use crossover_system::files::symlink;

/// Names the record in a bundle.
pub(super) const RECORD: &str = "bundle.json";
/// Folders of a bundle: the files that git tracks, the executables, and these in other orders.
pub(super) const FOLDERS: [&str; 3] = ["files", "target", "orders"];
/// The contents of a bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Bundle {
    #[serde(skip)]
    pub(super) folder: PathBuf,
    pub(super) commit: String,
    pub(super) toolchain: String,
    /// Its target triple.
    pub(super) machine: String,
    pub(super) place: BuildPlace,
    pub(super) executables: Vec<Executable>,
}

impl Bundle {
    /// The bundle in a folder; `None` if there is none with a record.
    ///
    /// # Errors
    /// That its record or its folder cannot be read.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let file = folder.join(RECORD);
        let Ok(bytes) = fs::read(&file) else {
            return Ok(None);
        };
        let mut bundle: Self = (serde_json::from_slice(&bytes))
            .with_context(|| format!("{} cannot be read; build it again", file.display()))?;
        bundle.folder = folder.to_owned();
        for executable in &mut bundle.executables {
            let orders = fs::read_dir(folder.join(FOLDERS[2]).join(file_name(executable)));
            let orders = orders.into_iter().flatten().flatten();
            let mut orders = Vec::from_iter(orders.map(|entry| entry.path()));
            orders.sort_unstable();
            executable.order = (!orders.is_empty()).then(|| Rc::new(Order::Kept(orders)));
        }
        Ok(Some(bundle))
    }

    pub(super) fn label(&self) -> String {
        format!("{} ({})", self.folder.display(), self.commit)
    }

    /// Copies its files to the paths where they were built.
    ///
    /// # Errors
    /// That they cannot be copied.
    pub(super) fn unpack(&self, copies: &Copies) -> anyhow::Result<()> {
        let places = [copies.tree(), copies.target()];
        for (name, to) in FOLDERS.iter().zip(places) {
            copy_folder(&self.folder.join(name), &to).with_context(|| self.label())?;
        }
        for executable in &self.executables {
            fs::create_dir_all(executable.parts().1)?;
            if let Some(order) = &executable.order {
                order.place(executable.parts().0, 1, 0, 0)?;
            }
        }
        Ok(())
    }

    /// How two bundles differ besides their code.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let [old, new] = [self, other].map(|it| [&it.commit, &it.toolchain, &it.machine]);
        let names = ["commit", "toolchain", "machine"].iter();
        let both = names.zip(old.into_iter().zip(new));
        let differ = both.filter(|(_, (old, new))| old != new);
        differ
            .map(|(name, (old, new))| format!("{name} of the bundles: {old}, then {new}"))
            .collect()
    }
}

/// The name of its file, which is that of its folder of orders.
pub(super) fn file_name(executable: &Executable) -> &OsStr {
    executable.parts().0.file_name().unwrap_or_default()
}

/// Copies a folder, if it is there, without what belongs to git.
pub(super) fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    match from.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let entries = WalkDir::new(from).into_iter();
    for entry in entries.filter_entry(|entry| entry.file_name() != ".git") {
        let entry = entry?;
        let to = to.join(entry.path().strip_prefix(from)?);
        // The folder itself may be reached by a link.
        if entry.file_type().is_dir() || entry.depth() == 0 {
            fs::create_dir_all(&to)?;
        } else if entry.path_is_symlink() {
            symlink(&fs::read_link(entry.path())?, &to)?;
        } else {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}
