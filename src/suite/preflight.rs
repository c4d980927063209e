//! What is checked before anything runs, so that nothing is measured and then lost: options that
//! Criterion would panic at, the names of baselines, the results folder, another run in it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::suite::arguments::Arguments;
use crossover_protocol::settings::SettingsError;
use crossover_results::store::criterion_files::baselines;
use crossover_results::store::layout::{CHANGE, LOCK, NEW, PROFILE, REPORT};
use crossover_results::store::source::Names;
use crossover_results::store::whole_file::{sweep, try_to_write};

/// Why a run does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    /// A setting with a bad value.
    #[error(transparent)]
    Setting(#[from] SettingsError),
    /// An option with a bad value.
    #[error("{option} {value}: {good}")]
    Option {
        /// `--sample-size`.
        option: String,
        /// What was given.
        value: String,
        /// What is good, in a sentence.
        good: String,
    },
    /// A name that cannot be a folder beside Criterion's own.
    #[error(
        "--{option} {name:?}: choose a name of letters, digits, `-`, `_` and `.` that is not one \
         of Criterion's own folders ({NEW}, {CHANGE}, {REPORT}, {PROFILE})"
    )]
    Baseline {
        /// The option.
        option: &'static str,
        /// What was given.
        name: String,
    },
    /// A comparison with a baseline that is not there.
    #[error(
        "--{option} {name}: no such baseline in {root}; there are: {there}; --save-baseline {name} saves one"
    )]
    NoBaseline {
        /// The option.
        option: &'static str,
        /// What was given.
        name: String,
        /// Folder of the results.
        root: PathBuf,
        /// Those that are there.
        there: Names,
    },
    /// `CROSSOVER_TURNS` leads nowhere.
    #[error("CROSSOVER_TURNS={}: {source}; `crossover ab` sets it, unset it otherwise", socket.display())]
    Turns {
        /// What it names.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The results cannot be kept.
    #[error(
        "results cannot be written to {}: {source}; set CRITERION_HOME to a folder where they can",
        root.display()
    )]
    Folder {
        /// Folder of the results.
        root: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Two runs would replace each other's files.
    #[error(
        "another run is writing to {}; wait for it, or set CRITERION_HOME to another folder",
        .0.display()
    )]
    Locked(PathBuf),
}

/// Checks the options.
pub(super) fn options(arguments: &Arguments, results: &Path) -> Result<(), Refused> {
    if let Some(error) = arguments.bad_filter() {
        return Err(Refused::Option {
            option: "the filter".to_owned(),
            value: format!("`{}`", error.0),
            good: format!(
                "it is not a regular expression: {}; correct it, or give an id with --exact",
                error.1
            ),
        });
    }
    for (option, least, most, good) in [
        ("sample-size", 10.0, f64::MAX, "give 10 or more"),
        ("nresamples", 1.0, f64::MAX, "give 1 or more"),
        ("warm-up-time", 1e-9, 1e9, "give seconds above 0"),
        ("measurement-time", 1e-9, 1e9, "give seconds above 0"),
        ("profile-time", 1.0, 1e9, "give 1 second or more"),
        ("noise-threshold", 0.0, f64::MAX, "give 0 or more"),
        (
            "confidence-level",
            1e-9,
            1.0 - 1e-9,
            "give a share between 0 and 1",
        ),
        (
            "significance-level",
            1e-9,
            1.0 - 1e-9,
            "give a share between 0 and 1",
        ),
    ] {
        let Some(value) = arguments.value(option) else {
            continue;
        };
        let sound = value
            .parse::<f64>()
            .is_ok_and(|v| (least..=most).contains(&v));
        if !sound {
            return Err(Refused::Option {
                option: format!("--{option}"),
                value: value.to_owned(),
                good: good.to_owned(),
            });
        }
    }
    for option in [
        "save-baseline",
        "baseline",
        "baseline-lenient",
        "load-baseline",
    ] {
        let Some(name) = arguments.value(option) else {
            continue;
        };
        let name = name.to_owned();
        if !is_baseline_name(&name) {
            return Err(Refused::Baseline { option, name });
        }
        let must_exist = matches!(option, "baseline" | "load-baseline");
        if must_exist && arguments.measures() {
            let there = baselines(results);
            if !there.contains(&name) {
                return Err(Refused::NoBaseline {
                    option,
                    there: Names::near(&name, there),
                    name,
                    root: results.to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn is_baseline_name(name: &str) -> bool {
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty()
        && name.chars().all(good)
        && !name.chars().all(|c| c == '.')
        && ![NEW, CHANGE, REPORT, PROFILE].contains(&name)
}

/// Makes the results folder, tries to write there, and keeps other runs out of it for as long as
/// the file is held. A file system without locks keeps nobody out, which is said.
pub(super) fn results_folder(root: &Path) -> Result<File, Refused> {
    let folder = |source| Refused::Folder {
        root: root.to_owned(),
        source,
    };
    fs::create_dir_all(root).map_err(folder)?;
    try_to_write(root).map_err(folder)?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(root.join(LOCK))
        .map_err(folder)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Refused::Locked(root.to_owned())),
        Err(TryLockError::Error(error)) => eprintln!(
            "note: {} cannot be locked ({error}): start no other run that writes there",
            root.display()
        ),
    }
    sweep(root);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<(), String> {
        let dir = tempfile::tempdir().unwrap();
        let words = line.split(' ').map(str::to_owned);
        options(&Arguments::parse(words), dir.path()).map_err(|e| e.to_string())
    }

    #[test]
    fn what_criterion_would_panic_at_is_a_sentence() {
        for (line, words) in [
            (
                "--bench matmul/(",
                "`matmul/(`: it is not a regular expression",
            ),
            (
                "--bench --sample-size 5",
                "--sample-size 5: give 10 or more",
            ),
            (
                "--bench --measurement-time 0",
                "--measurement-time 0: give seconds",
            ),
            ("--bench --warm-up-time x", "--warm-up-time x: give seconds"),
            ("--bench --confidence-level 1", "between 0 and 1"),
            ("--bench --baseline nosuch", "no such baseline"),
        ] {
            let error = check(line).unwrap_err();
            assert!(error.contains(words), "{line}: {error}");
        }
        for line in [
            "--bench",
            "--bench matmul/gpu --sample-size 10 --measurement-time 0.5",
            "--bench --baseline-lenient nosuch",
            "--bench --save-baseline v1.2-rc_3",
            // Lists and compares nothing.
            "--list --baseline nosuch",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
    }

    #[test]
    fn a_baseline_stays_in_its_folder() {
        for name in [
            "new", "change", "report", "../../x", "a/b", "a\\b", "..", ".", "a b", "\u{1b}",
        ] {
            let words = ["--bench", "--save-baseline", name].map(str::to_owned);
            let error = options(&Arguments::parse(words), Path::new("nowhere"));
            assert!(matches!(error, Err(Refused::Baseline { .. })), "{name:?}");
        }
        assert!(!is_baseline_name(""));
    }

    #[test]
    fn a_folder_is_tried_and_held() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("a/b");
        let held = results_folder(&root).unwrap();
        assert!(matches!(results_folder(&root), Err(Refused::Locked(_))));
        drop(held);
        results_folder(&root).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = results_folder(&file).unwrap_err().to_string();
        assert!(refused.contains("set CRITERION_HOME"), "{refused}");
    }
}
