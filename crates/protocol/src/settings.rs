//! Settings from the environment, checked before anything runs.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::filter::meant;
use crossover_timing::GateMode;

/// The sizes that are run, and for how long each is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeSet {
    /// A few sizes, about a minute.
    Quick,
    /// The sizes that answer the suite's questions within a few minutes.
    #[default]
    Default,
    /// All sizes that fit in memory.
    Full,
}

impl SizeSet {
    /// The name that `CROSSOVER_SIZES` takes.
    pub fn name(self) -> &'static str {
        match self {
            SizeSet::Quick => "quick",
            SizeSet::Default => "default",
            SizeSet::Full => "full",
        }
    }
}

/// The GPUs that `CROSSOVER_DEVICE` names beside the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FurtherDevices {
    /// The GPUs with these indices.
    Listed(Vec<usize>),
    /// All that the driver shows.
    All,
}

/// The settings of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `CROSSOVER_SIZES`.
    pub size_set: SizeSet,
    /// The first GPU of `CROSSOVER_DEVICE`; `None` switches the GPU off.
    pub device: Option<usize>,
    /// The GPUs beside it, for the groups that use several.
    pub further: FurtherDevices,
    /// Whether `CROSSOVER_DEVICE` names a GPU by its index.
    pub device_named: bool,
    /// `CROSSOVER_GATE`.
    pub gate: GateMode,
    /// `CROSSOVER_MONITOR`: NVML is read ten times per second while a GPU benchmark runs.
    pub monitor: bool,
    /// `CROSSOVER_PROCESSES`: the most additional processes that answer a question.
    pub processes: usize,
    /// `CROSSOVER_TURNS`: the socket of the process that drives this one and another in turns.
    pub turns: Option<PathBuf>,
    /// `CRITERION_HOME`: the folder of Criterion's files and ours.
    pub results: PathBuf,
}

/// The settings of a run, for its `--help`.
pub const VARIABLES_IN_WORDS: &str = "\
Environment variables:
  CROSSOVER_SIZES      sizes: quick, default or full       [default: default]
  CROSSOVER_DEVICE     index of the GPU, or none           [default: 0]
                       0,1 or all: several, for the groups that use more than one
  CROSSOVER_GATE       auto, or off: no gated clock        [default: auto]
  CROSSOVER_MONITOR    on or off: reads NVML meanwhile     [default: on]
  CROSSOVER_PROCESSES  0 to 99: more processes for each answer
                                                           [default: 6, quick 0]
  CRITERION_HOME       folder of the results               [default: target-reports/criterion]";

/// Every variable of ours that a run or its tests read.
const VARIABLES: [&str; 9] = [
    "CROSSOVER_SIZES",
    "CROSSOVER_DEVICE",
    "CROSSOVER_GATE",
    "CROSSOVER_MONITOR",
    // The path of NCCL.
    "CROSSOVER_NCCL",
    "CROSSOVER_PROCESSES",
    // Set by `crossover ab`.
    "CROSSOVER_TURNS",
    // Read by programs with thresholds, and by `crossover advise`.
    "CROSSOVER_THRESHOLDS",
    // Used at build time.
    "CROSSOVER_BLAS_LIB",
];

/// Beginnings of the variables that are no settings of users: this project sets them for its own processes and tests.
const INTERNAL: [&str; 7] = [
    "CROSSOVER_AB_",
    "CROSSOVER_ADDED_FORMAT",
    // `build.rs` sets these two; `cargo bench` hands them to the executable.
    "CROSSOVER_COMMIT",
    "CROSSOVER_DIRTY",
    "CROSSOVER_GOLDEN",
    "CROSSOVER_REQUIRE_",
    "CROSSOVER_TEST_",
];

/// A warning for each environment variable with our prefix that is no setting.
pub fn unknown_variables() -> Vec<String> {
    unknown_among(env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
}

fn unknown_among(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_known = |name: &str| {
        VARIABLES.contains(&name) || INTERNAL.iter().any(|start| name.starts_with(start))
    };
    let mut names: Vec<String> = names
        .into_iter()
        .filter(|name| name.starts_with("CROSSOVER_") && !is_known(name))
        .collect();
    names.sort();
    let remark = |name: &String| {
        let meant = meant(";", name, VARIABLES);
        format!("{name} is not a setting and is ignored{meant}")
    };
    names.iter().map(remark).collect()
}

/// A variable with a value it cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}={value:?} is not valid; good values are {good}")]
pub struct SettingsError {
    variable: &'static str,
    value: String,
    good: &'static str,
}

impl Settings {
    /// The folder of the page.
    pub fn report_folder(&self) -> &Path {
        report_folder(&self.results)
    }

    /// Reads the environment.
    ///
    /// # Errors
    /// The first variable with a bad value, and the values it can have.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_lookup(|name| env::var_os(name))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, SettingsError> {
        // Shells unset a variable for a single command by making it empty.
        let path = |name| lookup(name).filter(|v| !v.is_empty());
        let value = |name| path(name).map(|v| v.to_string_lossy().into_owned());
        let bad = |variable, value: &str, good| SettingsError {
            variable,
            value: value.to_owned(),
            good,
        };
        let size_set = value("CROSSOVER_SIZES");
        let sets = [SizeSet::Default, SizeSet::Quick, SizeSet::Full].map(|set| (set.name(), set));
        let good = "quick, default and full";
        let size_set = one_of("CROSSOVER_SIZES", size_set, &sets, good)?;
        let named = value("CROSSOVER_DEVICE");
        let listed = FurtherDevices::Listed;
        let (device, further) = match named.as_deref() {
            None => (Some(0), listed(Vec::new())),
            Some("none") => (None, listed(Vec::new())),
            Some("all") => (Some(0), FurtherDevices::All),
            Some(v) => {
                let devices = indices(v).ok_or_else(|| {
                    let good = "a device index (0, 1, …), different ones with commas between, all and none";
                    bad("CROSSOVER_DEVICE", v, good)
                })?;
                (Some(devices[0]), listed(devices[1..].to_vec()))
            }
        };
        let gates = [("auto", GateMode::Auto), ("off", GateMode::Off)];
        let gate = one_of(
            "CROSSOVER_GATE",
            value("CROSSOVER_GATE"),
            &gates,
            "auto and off",
        )?;
        let monitor = value("CROSSOVER_MONITOR");
        let on_or_off = [("on", true), ("off", false)];
        let monitor = one_of("CROSSOVER_MONITOR", monitor, &on_or_off, "on and off")?;
        let processes = match value("CROSSOVER_PROCESSES") {
            None if size_set == SizeSet::Quick => 0,
            None => 6,
            Some(v) => v
                .parse()
                .ok()
                .filter(|n| *n < 100)
                .ok_or_else(|| bad("CROSSOVER_PROCESSES", &v, "whole numbers from 0 to 99"))?,
        };
        let results = path("CRITERION_HOME").map(PathBuf::from);
        Ok(Self {
            size_set,
            device,
            further,
            device_named: named.is_some() && device.is_some(),
            gate,
            monitor,
            processes,
            turns: path("CROSSOVER_TURNS").map(PathBuf::from),
            results: results.unwrap_or_else(|| "target-reports/criterion".into()),
        })
    }
}

/// The value of this name, or the first one if the variable is not set.
fn one_of<T: Copy>(
    variable: &'static str,
    value: Option<String>,
    known: &[(&str, T)],
    good: &'static str,
) -> Result<T, SettingsError> {
    let Some(value) = value else {
        return Ok(known[0].1);
    };
    let found = known.iter().find(|(name, _)| *name == value);
    found.map(|(_, it)| *it).ok_or(SettingsError {
        variable,
        value,
        good,
    })
}

/// One or more indices with commas between, none twice.
fn indices(list: &str) -> Option<Vec<usize>> {
    let devices = list.split(',').map(|index| index.trim().parse().ok());
    let devices: Vec<usize> = devices.collect::<Option<_>>()?;
    let is_new = |(at, device): (usize, &usize)| !devices[..at].contains(device);
    devices.iter().enumerate().all(is_new).then_some(devices)
}

/// The folder of the page for a results folder: the folder around one named `criterion`, else itself.
pub fn report_folder(results: &Path) -> &Path {
    match results.parent() {
        Some(parent) if results.ends_with("criterion") => parent,
        _ => results,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        Settings::from_lookup(|name| {
            pairs
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).into())
        })
    }

    #[test]
    fn good_values_are_taken() {
        let s = settings(&[
            ("CROSSOVER_SIZES", "full"),
            ("CROSSOVER_DEVICE", "3"),
            ("CROSSOVER_GATE", "off"),
            ("CROSSOVER_MONITOR", "off"),
            ("CRITERION_HOME", "/tmp/x"),
        ])
        .unwrap();
        assert_eq!((s.size_set, s.device), (SizeSet::Full, Some(3)));
        assert_eq!((s.gate, s.monitor), (GateMode::Off, false));
        assert_eq!(s.results, PathBuf::from("/tmp/x"));
        let none = settings(&[("CROSSOVER_DEVICE", "none")]).unwrap();
        assert_eq!(none.device, None);
        let several = settings(&[("CROSSOVER_DEVICE", "2, 0,1")]).unwrap();
        let listed = FurtherDevices::Listed(vec![0, 1]);
        assert_eq!((several.device, several.further), (Some(2), listed));
        assert_eq!(settings(&[("CROSSOVER_SIZES", "")]), settings(&[]));
        let all = settings(&[("CROSSOVER_DEVICE", "all")]).unwrap();
        assert_eq!((all.device, all.further), (Some(0), FurtherDevices::All));
        assert_eq!(unknown_among(["CROSSOVER_COMMIT".to_owned()]), [""; 0]);
    }

    #[test]
    fn a_bad_value_is_named_with_the_good_ones() {
        for (variable, value, good) in [
            ("CROSSOVER_SIZES", "fast", "quick, default and full"),
            ("CROSSOVER_DEVICE", "-1", "none"),
            ("CROSSOVER_DEVICE", "gpu", "none"),
            ("CROSSOVER_DEVICE", "0,1,0", "different ones"),
            ("CROSSOVER_DEVICE", "0,", "different ones"),
            ("CROSSOVER_GATE", "on", "auto and off"),
            ("CROSSOVER_MONITOR", "auto", "on and off"),
        ] {
            let text = settings(&[(variable, value)]).unwrap_err().to_string();
            assert!(
                text.contains(variable) && text.contains(value) && text.contains(good),
                "{text}"
            );
        }
    }
}
