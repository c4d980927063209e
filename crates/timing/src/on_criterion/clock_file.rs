//! The clock of a result, in the sidecar beside Criterion's files.
//!
//! Criterion's files name no clock, and a measurement learns neither the id of a benchmark nor where
//! its files are. The samples are therefore remembered until the [`CudaTime`](crate::CudaTime) is
//! dropped, and the folder of a benchmark is found by its `sample.json`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, fs};

use criterion::{Criterion, PlottingBackend};
use serde_json::{Map, Value, json};

use super::write;
use crate::capture::Enqueued;
use crate::launch_state::is_longer;
use crate::panic::catch_panic;
use crossover_words::Clock;
use crossover_words::sidecar::{
    ACTIVITY, EMPTY_KERNEL, EVENT_STEP, FILE, GRAPHS, LAUNCH_PROBE, LAUNCHES, LaunchConstant,
    SAMPLES, SCHEMA, digest, read,
};

/// Criterion's name for the newest result.
const NEW: &str = "new";
/// `<group>/<function>/<value>/new`, and a little more for odd names.
const MAX_DEPTH: usize = 8;
/// The note on results without a report.
const NO_REPORT: &str = "Criterion drew no HTML report, which takes gnuplot or its feature plotters: in Cargo.toml, add \
    criterion = { version = \"0.8\", features = [\"plotters\"] } (--noplot leaves this note out)";
/// The note on a result during which launches became longer.
const LONGER: &str = "launches became longer during this benchmark or the next one's set-up: its kernels or memory sets ran \
    on eight more streams, or persisting lines of the L2 cache were reset";
/// Some file systems round the time of a file to steps of this length.
const STEP: Duration = Duration::from_secs(2);

/// A measurement of a benchmark.
#[derive(Clone, Copy, Debug)]
struct Taken {
    iterations: u64,
    ns: f64,
    clock: Clock,
    launches: CountedLaunches,
}

/// The launches of an iteration, as far as they were counted; when the benchmark began, the probe of the launches, and
/// on a clock with a gate the constant of a launch; the step of a clock of events; the figures of [`ACTIVITY`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CountedLaunches {
    pub(super) enqueued: Option<Enqueued>,
    pub(super) probe_ns: Option<f64>,
    pub(super) empty_ns: Option<f64>,
    pub(super) event_step_ns: Option<f64>,
    pub(super) activity: Option<[f64; 5]>,
}

/// The measurements of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    begun: SystemTime,
    taken: RefCell<Vec<Taken>>,
    /// Criterion's output folder, where the program has set one.
    root: RefCell<Option<PathBuf>>,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            begun: SystemTime::now() - STEP,
            taken: RefCell::default(),
            root: RefCell::default(),
        }
    }
}

impl Ledger {
    pub(super) fn note(&self, iterations: u64, ns: f64, clock: Clock, launches: CountedLaunches) {
        let taken = Taken {
            iterations,
            ns,
            clock,
            launches,
        };
        self.taken.borrow_mut().push(taken);
    }

    pub(crate) fn set_root(&self, root: PathBuf) {
        *self.root.borrow_mut() = Some(root);
    }

    /// Writes the clock of each result of these measurements. Returns messages: replaced results on
    /// another clock, files that could not be written, and results without a report if Criterion `cannot_plot`.
    fn keep(&self, cannot_plot: bool) -> Vec<String> {
        let taken = self.taken.take();
        if taken.is_empty() {
            return Vec::new();
        }
        let root = self.root.take().unwrap_or_else(default_root);
        let mut remarks = Vec::new();
        for folder in results(&root, self.begun, MAX_DEPTH) {
            let Ok(samples) = fs::read(folder.join(NEW).join(SAMPLES)) else {
                continue;
            };
            let Some(last) = last_among(&taken, &samples) else {
                continue;
            };
            let clock = taken[last].clock;
            let name = folder.strip_prefix(&root).unwrap_or(&folder).display();
            let before = read(&folder.join(NEW), &samples).and_then(|file| file.clock());
            if let Some(before) = before.filter(|before| *before != clock) {
                remarks.push(format!(
                    "{name}: this result was timed on the clock {clock}, the previous one on {before}, but \
                     Criterion compares them"
                ));
            }
            let extra = figures(&taken[last..]);
            let [before, after] = LAUNCH_PROBE.map(|key| extra.get(key).and_then(Value::as_f64));
            let note = (before
                .zip(after)
                .filter(|(before, after)| is_longer(*after, *before)))
            .map(|_| LONGER);
            let moved = LaunchConstant::of(&json!({"extra": extra}));
            let moved = moved.and_then(|constant| LaunchConstant::moved(constant.empty_ns));
            remarks.extend(moved.map(|moved| format!("{name}: {moved}")));
            remarks.extend(write_beside(&folder, &samples, clock, &extra, note).err());
            let no_report = NO_REPORT.to_owned();
            if cannot_plot && !folder.join("report").exists() && !remarks.contains(&no_report) {
                remarks.push(no_report);
            }
        }
        remarks
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        for line in self.keep(cannot_plot()) {
            eprintln!("note: {line}");
        }
    }
}

/// Whether Criterion was built without its feature `plotters`, which panics when it is used. (Criterion plots
/// with gnuplot where that is installed.)
fn cannot_plot() -> bool {
    let plot = || Criterion::default().plotting_backend(PlottingBackend::Plotters);
    let is_left_out = env::args_os().any(|argument| argument == "--noplot" || argument == "-n");
    let may_panic = cfg!(panic = "unwind") && !std::thread::panicking();
    may_panic && !is_left_out && catch_panic(|| drop(plot())).is_err()
}

/// Beside the newest result, and beside the baselines that Criterion copied it to.
fn write_beside(
    folder: &Path,
    samples: &[u8],
    clock: Clock,
    extra: &Map<String, Value>,
    note: Option<&str>,
) -> Result<(), String> {
    let digest = digest(samples);
    let mut fields = json!({"schema": SCHEMA, "clock": clock.name(), "samples": digest});
    if !extra.is_empty() {
        fields["extra"] = extra.clone().into();
    }
    if let Some(note) = note {
        fields["notes"] = json!([note]);
    }
    let text = fields.to_string();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let dir = entry.path();
        if fs::read(dir.join(SAMPLES)).is_ok_and(|there| there == samples) {
            write(&dir, FILE, &text)?;
        }
    }
    Ok(())
}

/// The figures about the launches of the first of these measurements; the probe of the launches before it and when the
/// next benchmark began, and the constant of a launch before it and when the next benchmark on its clock began.
fn figures(taken: &[Taken]) -> Map<String, Value> {
    let Taken {
        clock, launches, ..
    } = taken[0];
    let mut next = (taken.iter()).filter(|next| next.launches != launches);
    let probed_after = next.clone().find_map(|next| next.launches.probe_ns);
    let after = next.find_map(|next| next.launches.empty_ns.filter(|_| next.clock == clock));
    let graphs = |enqueued: Enqueued| Some(enqueued.graphs).filter(|graphs| *graphs > 0);
    let enqueued = launches.enqueued.filter(|_| launches.empty_ns.is_some());
    let figures = [
        (LAUNCHES, enqueued.map(|enqueued| enqueued.launches.into())),
        (GRAPHS, enqueued.and_then(graphs).map(f64::from)),
        (EMPTY_KERNEL[0], launches.empty_ns),
        (
            EMPTY_KERNEL[1],
            after.filter(|_| launches.empty_ns.is_some()),
        ),
        (EVENT_STEP, launches.event_step_ns),
        (LAUNCH_PROBE[0], launches.probe_ns),
        (
            LAUNCH_PROBE[1],
            probed_after.filter(|_| launches.probe_ns.is_some()),
        ),
    ];
    let activity = ACTIVITY
        .into_iter()
        .zip(launches.activity.into_iter().flatten());
    let activity = activity.map(|(key, figure)| (key, Some(figure)));
    let known = figures.into_iter().chain(activity);
    let known = known.filter_map(|(key, figure)| Some((key.to_owned(), figure?.into())));
    known.collect()
}

/// The last of the measurements with these samples, if they are known.
fn last_among(taken: &[Taken], samples: &[u8]) -> Option<usize> {
    let value: Value = serde_json::from_slice(samples).ok()?;
    let numbers = |name: &str| -> Option<Vec<f64>> {
        value[name].as_array()?.iter().map(Value::as_f64).collect()
    };
    let (iterations, times) = (numbers("iters")?, numbers("times")?);
    let count = times.len();
    if count == 0 || iterations.len() != count {
        return None;
    }
    // The last digit of a number may be lost in the file.
    let same = |taken: &Taken, i: usize| {
        taken.iterations as f64 == iterations[i] && (taken.ns / times[i] - 1.0).abs() < 1e-12
    };
    let first = (taken.windows(count)).position(|run| (0..count).all(|i| same(&run[i], i)))?;
    Some(first + count - 1)
}

/// The folders under `root` whose newest result is not older than `since`.
fn results(root: &Path, since: SystemTime, depth: usize) -> Vec<PathBuf> {
    let newest = fs::metadata(root.join(NEW).join(SAMPLES)).and_then(|file| file.modified());
    let mut found = Vec::new();
    if newest.is_ok_and(|time| time >= since) {
        found.push(root.to_owned());
    }
    if depth > 0 {
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.extend(results(&entry.path(), since, depth - 1));
            }
        }
    }
    found
}

/// Where Criterion writes unless told otherwise. It asks cargo for the target folder; the
/// executable lies in it.
fn default_root() -> PathBuf {
    if let Some(home) = env::var_os("CRITERION_HOME") {
        return home.into();
    }
    let executable = env::current_exe().unwrap_or_default();
    let target = env::var_os("CARGO_TARGET_DIR")
        .map(PathBuf::from)
        .or_else(|| {
            let mut folders = executable.ancestors();
            let target = folders.find(|folder| folder.join("CACHEDIR.TAG").is_file())?;
            Some(target.to_owned())
        });
    target.unwrap_or_else(|| "target".into()).join("criterion")
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    struct Root(TempDir);

    impl Root {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        /// As Criterion leaves a result: the newest, and a copy.
        fn result(&self, id: &str, iterations: u64, ns: f64) -> PathBuf {
            let folder = self.0.path().join(id);
            let text = json!({"sampling_mode": "Linear", "iters": [iterations], "times": [ns]});
            for name in [NEW, "base"] {
                let dir = folder.join(name);
                fs::create_dir_all(&dir).unwrap();
                fs::write(dir.join(SAMPLES), text.to_string()).unwrap();
            }
            folder
        }

        fn ledger(&self, taken: &[(u64, f64)]) -> Ledger {
            let ledger = Ledger::default();
            ledger.set_root(self.0.path().to_owned());
            for (iterations, ns) in taken {
                ledger.note(*iterations, *ns, Clock::Wall, CountedLaunches::default());
            }
            ledger
        }
    }

    #[test]
    fn a_result_has_its_launches_and_what_one_costs_before_and_after() {
        let root = Root::new();
        let (gated, wall) = (Clock::EventsGated, Clock::Wall);
        let ledger = root.ledger(&[]);
        let launches = |launches, graphs, empty_ns| CountedLaunches {
            enqueued: Some(Enqueued {
                launches,
                graphs,
                others: 1,
            }),
            probe_ns: Some(if graphs == 0 { 31_000.0 } else { 37_000.0 }),
            empty_ns,
            ..CountedLaunches::default()
        };
        for (id, ns, clock, launches) in [
            ("a/two", 20.0, gated, launches(2, 0, Some(1640.0))),
            ("a/wall", 30.0, wall, launches(1, 0, None)),
            ("a/graph", 40.0, gated, launches(1, 1, Some(1650.0))),
            ("a/last", 50.0, gated, launches(1, 0, Some(1790.0))),
        ] {
            root.result(id, 2, ns);
            ledger.note(1, ns + 1.0, clock, launches);
            ledger.note(2, ns, clock, launches);
        }
        let said = ledger.keep(false);
        let moved = "a/graph: the launch constant moved during the samples: the empty kernel took 1.650 µs \
            before and 1.790 µs after";
        assert_eq!(said, [moved]);
        let constant = |kernels, has_graphs, empty_ns| LaunchConstant {
            kernels,
            has_graphs,
            empty_ns,
        };
        for (id, of) in [
            ("a/two", Some(constant(Some(2.0), false, [1640.0, 1650.0]))),
            ("a/wall", None),
            ("a/graph", Some(constant(None, true, [1650.0, 1790.0]))),
            ("a/last", Some(constant(Some(1.0), false, [1790.0, 1790.0]))),
        ] {
            let file = read(&root.0.path().join(id).join("base"), &[]).unwrap();
            let fields = file.fields.unwrap();
            assert_eq!(LaunchConstant::of(&fields), of, "{id}: {fields}");
            assert_eq!(
                fields["notes"][0].is_string(),
                id == "a/wall",
                "{id}: {fields}"
            );
        }
    }

    #[test]
    fn results_without_a_report_are_noted_once_if_criterion_cannot_plot() {
        let root = Root::new();
        root.result("group/one", 2, 20.0);
        root.result("group/two", 3, 30.0);
        let keep = |cannot_plot| root.ledger(&[(2, 20.0), (3, 30.0)]).keep(cannot_plot);
        assert_eq!(keep(true), [NO_REPORT]);
        assert_eq!(keep(false), [""; 0]);
        for name in ["one", "two"] {
            fs::create_dir(root.0.path().join("group").join(name).join("report")).unwrap();
        }
        assert_eq!(keep(true), [""; 0]);
    }

    #[test]
    fn folders_without_a_result_are_left_alone() {
        let root = Root::new();
        let folder = root.result("group/gpu", 2, 20.0);
        fs::write(folder.join(NEW).join(FILE), "{").unwrap();
        assert_eq!(root.ledger(&[]).keep(false), [""; 0]);
        fs::write(folder.join(NEW).join(SAMPLES), "{}").unwrap();
        assert_eq!(root.ledger(&[(2, 20.0)]).keep(false), [""; 0]);
        assert_eq!(fs::read(folder.join(NEW).join(FILE)).unwrap(), b"{");
    }
}
