//! One side of a comparison as a user names it: a baseline, or a folder of results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::store::layout::{NEW, baselines};
use crossover_words::text::visible;

/// One baseline in one results folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineSource {
    /// Folder of the results.
    pub root: PathBuf,
    /// Name of the baseline in it.
    pub baseline: String,
    /// How the user named it, fit to be shown.
    pub label: String,
}

/// Why there is nothing to read, with the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(String);

/// Names in a sentence, where another one was looked for: of many the nearest.
pub fn near(wanted: &str, names: BTreeSet<String>) -> String {
    const MANY: usize = 12;
    const NEAREST: usize = 3;
    let all = names.len();
    let mut shown = Vec::from_iter(names);
    if all > MANY {
        shown.sort_by_cached_key(|name| strsim::damerau_levenshtein(wanted, name));
        shown.truncate(NEAREST);
    }
    let others = all - shown.len();
    let shown: Vec<String> = shown.iter().map(|name| format!("`{name}`")).collect();
    match (all, others) {
        (0, _) => "none".to_owned(),
        (_, 0) => shown.join(", "),
        _ => format!("{} and {others} others", shown.join(", ")),
    }
}

impl BaselineSource {
    /// Resolves what a user wrote, in this order: `DIR:NAME` is baseline NAME of folder DIR;
    /// a plain name is a baseline under the first of `roots` that has it; an existing folder stands
    /// for its `new`. A folder may hold the results themselves, or hold them where Criterion or the
    /// suite writes them. Write `./name` for a folder with the name of a baseline.
    ///
    /// # Errors
    /// Where there are no results, or not that baseline; the folders, and the baselines there are.
    pub fn resolve(text: &str, roots: &[PathBuf]) -> Result<Self, SourceError> {
        if let Some((dir, name)) = text.rsplit_once(':')
            && Path::new(dir).is_dir()
            && !name.is_empty()
        {
            return Self::there(text, &results_in(Path::new(dir)), name);
        }
        let path = Path::new(text);
        let is_name = path.components().count() == 1 && !text.contains(['/', '\\', '.']);
        let is_baseline = || roots.iter().any(|root| baselines(root).contains(text));
        if path.is_dir() && !(is_name && is_baseline()) {
            return Self::there(text, &results_in(path), NEW);
        }
        if text.contains('/') {
            return Err(SourceError(format!(
                "{}: no such folder of results; the record of a machine has no samples to compare",
                visible(text)
            )));
        }
        Self::there(text, roots, text)
    }

    fn there(label: &str, roots: &[PathBuf], baseline: &str) -> Result<Self, SourceError> {
        let label = visible(label);
        let mut others = BTreeSet::new();
        for root in roots {
            let there = baselines(root);
            if there.contains(baseline) {
                return Ok(Self {
                    root: root.clone(),
                    baseline: baseline.to_owned(),
                    label,
                });
            }
            others.extend(there);
        }
        let folders: Vec<String> = (roots.iter())
            .map(|root| root.display().to_string())
            .collect();
        let folders = folders.join(", nor in ");
        Err(SourceError(if others.is_empty() {
            format!(
                "{label}: no results in {folders}; run `cargo bench --bench TARGET -- --save-baseline NAME` first, \
                 or name their folder with --results or CRITERION_HOME"
            )
        } else {
            format!(
                "{label}: no baseline `{baseline}` in {folders}; there are: {}",
                near(baseline, others)
            )
        }))
    }
}

/// The folders of results in the folder of a package, or the folder itself.
fn results_in(dir: &Path) -> Vec<PathBuf> {
    let there = ["target-reports/criterion", "target/criterion", "criterion"]
        .map(|inner| dir.join(inner))
        .into_iter()
        .filter(|inner| inner.is_dir());
    let there = Vec::from_iter(there);
    if there.is_empty() {
        vec![dir.to_owned()]
    } else {
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_names_the_nearest_are_shown() {
        let names = |n: u32| (0..n).map(|i| format!("v{i}")).collect();
        assert_eq!(near("v9", names(2)), "`v0`, `v1`");
        let of_many = "`v123`, `v1230`, `v1231` and 9997 others";
        assert_eq!(near("v123x", names(10_000)), of_many);
    }
}
