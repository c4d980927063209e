//! The layout of a results root.
//!
//! ```text
//! <group>/<function>/<size>/new/         Criterion's files of the newest result
//! <group>/<function>/<size>/<baseline>/  those of a saved baseline
//!     crossover.json                     our sidecar, in each of them
//! <group>/<function>/<size>/profile/     where its time goes: profile.json, and trace.json
//! <group>/<function>/<size>/.earlier-<baseline>/
//!                                        what an attempt is about to replace
//! runs/<run>.json                        the record of a run
//! crossover.lock                         held by the run that is writing
//! ```

use std::path::{Path, PathBuf};

/// The baseline that Criterion writes in every run.
pub const NEW: &str = "new";

/// Prefix of the folders that keep replaced results.
const EARLIER: &str = ".earlier-";

/// Prefix of temporary files.
pub(crate) use crossover_words::files::TEMPORARY;

/// Criterion's folder beside the baselines: how the newest result differs from the one before.
pub const CHANGE: &str = "change";
/// Criterion's folder beside the baselines: pages.
pub const REPORT: &str = "report";

/// Criterion's folder beside the baselines: where it has a profiler put its files.
pub const PROFILE: &str = "profile";

/// Criterion's file with the parts of the id.
pub const BENCHMARK: &str = "benchmark.json";
/// Criterion's file with median, mean and their intervals.
pub const ESTIMATES: &str = "estimates.json";
/// Criterion's file with iterations and time of each sample.
pub const SAMPLE: &str = crossover_words::sidecar::SAMPLES;
/// Criterion's file with the bounds beyond which a sample is an outlier.
pub(crate) const TUKEY: &str = "tukey.json";

/// The [`Sidecar`](crate::model::Sidecar) beside them.
pub const SIDECAR: &str = crossover_words::sidecar::FILE;

/// The [`Profile`](crossover_profile::Profile) in [`PROFILE`].
pub const PROFILE_FILE: &str = "profile.json";
/// The trace beside it, for Perfetto.
pub(crate) const TRACE: &str = "trace.json";

/// Held by the run that is writing.
pub const LOCK: &str = "crossover.lock";

/// Folder of the [`RunRecord`](crate::model::RunRecord)s.
pub const RUNS: &str = "runs";

/// Where the result of `dir`, a baseline's folder, is kept during an attempt.
pub(super) fn earlier(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    dir.with_file_name(format!("{EARLIER}{name}"))
}

/// The name of the baseline that a folder keeps a result of; `None` for other folders.
pub(super) fn keeps(name: &str) -> Option<&str> {
    name.strip_prefix(EARLIER)
}
