//! Checks before anything runs, so that no measurement is lost: options at which Criterion would panic,
//! the names of baselines, the results folder and other runs in it, and what a group declares.

use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::Path;

use crossover_results::store::baseline::near;
use crossover_results::store::layout::{CHANGE, LOCK, NEW, PROFILE, REPORT, baselines};
use crossover_results::store::whole_file::{sweep, try_to_write};

use crate::model::id::Device;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::group::AnyGroup;
use crate::timing::{BoxError, Clock, Rate};

/// Checks the options.
///
/// # Errors
/// Why the run does not start, in a sentence.
pub(super) fn options(arguments: &Arguments, results: &Path) -> Result<(), BoxError> {
    if let Some(why) = arguments.bad_filter() {
        return Err(why.into());
    }
    let share = 1e-9..=1.0 - 1e-9;
    for (option, range, good) in [
        ("sample-size", 10.0..=f64::MAX, "10 or more"),
        ("nresamples", 1.0..=f64::MAX, "1 or more"),
        ("warm-up-time", 1e-9..=1e9, "seconds above 0"),
        ("measurement-time", 1e-9..=1e9, "seconds above 0"),
        ("profile-time", 1.0..=1e9, "1 second or more"),
        ("noise-threshold", 0.0..=f64::MAX, "0 or more"),
        ("confidence-level", share.clone(), "a share between 0 and 1"),
        ("significance-level", share, "a share between 0 and 1"),
    ] {
        let is_sound = |value: &str| value.parse().is_ok_and(|value: f64| range.contains(&value));
        if let Some(value) = arguments.value(option).filter(|value| !is_sound(value)) {
            return Err(format!("--{option} {value}: give {good}").into());
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
        if !is_baseline_name(name) {
            return Err(format!(
                "--{option} {name:?}: choose a name of letters, digits, `-`, `_` and `.` that is not one of \
                 Criterion's own folders ({NEW}, {CHANGE}, {REPORT}, {PROFILE})"
            )
            .into());
        }
        let must_exist =
            arguments.mode == Mode::Bench && matches!(option, "baseline" | "load-baseline");
        let there = baselines(results);
        if must_exist && !there.contains(name) {
            return Err(format!(
                "--{option} {name}: no such baseline in {}; there are: {}; --save-baseline {name} saves one",
                results.display(),
                near(name, there)
            )
            .into());
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
/// the file is held. A file system without locks keeps nobody out, and a note is printed.
///
/// # Errors
/// Why the run does not start, in a sentence.
pub(super) fn results_folder(root: &Path) -> Result<File, BoxError> {
    let shown = root.display();
    let unusable = |error: io::Error| {
        format!(
            "results cannot be written to {shown}: {error}; set CRITERION_HOME to a folder where they can"
        )
    };
    fs::create_dir_all(root).map_err(unusable)?;
    try_to_write(root).map_err(unusable)?;
    let mut options = File::options();
    let options = options.create(true).truncate(false).write(true);
    let file = options.open(root.join(LOCK)).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(format!(
                "another run is writing to {shown}; wait for it, or set CRITERION_HOME to another folder"
            )
            .into());
        }
        Err(TryLockError::Error(error)) => eprintln!(
            "note: {shown} cannot be locked ({error}): start no other run that writes there"
        ),
    }
    sweep(root);
    Ok(file)
}

/// The most bytes that a kernel moves for an element: 64 values of f64, for several passes over a few arrays.
const ELEMENT_BYTES: f64 = 512.0;

impl AnyGroup {
    /// Contradictions in what the group declares, in sentences; a run refuses such a group.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let sizes = self.sizes.all();
        for (at, row) in self.rows.iter().enumerate() {
            let function = row.function();
            let name = format!("{}/{function}", self.name);
            if self.rows[..at].iter().any(|r| r.function() == function) {
                found.push(format!("two rows are named {name}; rename one of them"));
            }
            let moves = |size: &u64| {
                self.cost_of(row, *size)
                    .link_bytes
                    .is_some_and(|b| b.sum() > 0.0)
            };
            if row.clock == Clock::Activity {
                found.push(format!(
                    "{name} is timed by `activity`, which leaves out launches and is compared with itself alone; \
                     time it on another clock, or with iter_activity in a benchmark of your own"
                ));
            }
            if row.device() == Device::Gpu
                && row.role.data.on_device()
                && !row.role.leaves_the_device()
                && sizes.iter().any(moves)
            {
                found.push(format!(
                    "the cost of {name} has bytes over the link, but its data are declared to stay on the \
                     device; declare them with .data(Residency::Pinned) or \
                     .data(Residency::Ordinary)"
                ));
            }
        }
        found.extend(self.bytes_of_elements().filter(|bytes| *bytes > ELEMENT_BYTES).map(|bytes| {
            format!(
                "{}: its rate counts elements, but by its cost a kernel moves {bytes:.0} bytes for each, so \
                 they are rows or other inputs: use Rate::inputs",
                self.name
            )
        }));
        found
    }

    /// The bytes that a kernel moves for one more element, if the rate counts elements. Bytes that do not depend on
    /// the size, such as weights, do not count.
    fn bytes_of_elements(&self) -> Option<f64> {
        self.rate
            .as_ref()
            .filter(|rate| rate.unit() == Rate::elements().unit())?;
        let sizes = self.sizes.all();
        let (least, most) = (*sizes.iter().min()?, *sizes.iter().max()?);
        let bytes = |size| {
            let cost = (self.cost)(size);
            Some(cost.bytes? / f64::from(cost.launches.unwrap_or(1).max(1)))
        };
        (least < most).then_some((bytes(most)? - bytes(least)?) / (most - least) as f64)
    }

    /// What is wrong with the inputs, in a sentence: there are none, or another seed gives the same.
    pub fn doubtful_inputs(&self) -> Option<String> {
        let operation = &self.operation;
        let sizes = self.sizes.for_tests().into_iter();
        let size = sizes.max().filter(|_| self.has_inputs)?;
        let digest = |inputs| {
            let (mut hasher, mut bytes) = (DefaultHasher::new(), 0);
            (operation.visit_inputs)(&inputs, &mut |piece| {
                hasher.write(piece);
                bytes += piece.len();
            });
            (bytes, hasher.finish())
        };
        let (name, usual) = (self.name, digest((operation.inputs)(size)));
        if usual.0 == 0 {
            return Some(format!(
                "{name} shows no inputs for a digest: implement Workload::visit_inputs, or declare \
                 Group::no_inputs"
            ));
        }
        (digest(operation.other_values(size)) == usual).then(|| {
            format!(
                "{name} has the same inputs with another seed, so an implementation that keeps an earlier \
                 result would pass: make the values with workload::uniform or from workload::seed"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<(), BoxError> {
        let dir = tempfile::tempdir().unwrap();
        let words = line.split(' ').map(str::to_owned);
        options(&Arguments::parse(words), dir.path())
    }

    #[test]
    fn values_that_criterion_panics_at_are_refused() {
        for (line, words) in [
            ("--bench matmul/(", "it is not a regular expression"),
            ("--bench --sample-size 5", "give 10 or more"),
            ("--bench --measurement-time 0", "give seconds"),
            ("--bench --warm-up-time x", "give seconds"),
            ("--bench --profile-time 0.5", "give 1 second or more"),
            ("--bench --confidence-level 1", "between 0 and 1"),
            ("--bench --baseline nosuch", "no such baseline"),
        ] {
            let error = check(line).unwrap_err().to_string();
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
            check(line).unwrap();
        }
    }

    #[test]
    fn a_baseline_stays_in_its_folder() {
        for name in [
            "new", "change", "report", "../../x", "a/b", "a\\b", "..", ".", "a b", "\u{1b}",
        ] {
            let words = ["--bench", "--save-baseline", name].map(str::to_owned);
            let error = options(&Arguments::parse(words), Path::new("nowhere"));
            let error = error.unwrap_err().to_string();
            assert!(error.contains("choose a name"), "{name:?}");
        }
        assert!(!is_baseline_name(""));
    }
}
