//! Differences between the machines, the software and the code of two sides, and disturbances of a benchmark.

use std::collections::{BTreeMap, BTreeSet};

use crossover_results::model::Environment;
use crossover_results::model::environment::SM_CLOCK_LOCK;
use crossover_results::model::record::RunRecord;
use crossover_results::statistics::mean;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::sampled::Sampled;
use crossover_words::sidecar::LaunchConstant;

/// Notes on the two sides, for the reader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remarks {
    /// Differences that can cause a change by themselves.
    pub(super) warnings: Vec<String>,
    /// Commits and other expected differences.
    pub(super) notes: Vec<String>,
    /// Sides whose machine is unknown.
    pub(super) unknown: Vec<String>,
    /// The differences of two known machines.
    pub(super) other_machine: Option<String>,
    /// The clean commit of both sides, if it is one.
    pub(super) commit: Option<String>,
}

type Facts = BTreeMap<&'static str, BTreeSet<String>>;

/// The remarks on two sides. `on_one_machine` if that is known without a record.
pub(super) fn remarks(base: &[Baseline], new: &[Baseline], on_one_machine: bool) -> Remarks {
    let mut remarks = Remarks::default();
    let sides = [base, new].map(|side| side.iter().flat_map(|b| b.runs.values()).collect());
    let [base_runs, new_runs]: [Vec<&RunRecord>; 2] = sides;
    for (name, runs) in [("base", &base_runs), ("new", &new_runs)] {
        if runs.is_empty() && !on_one_machine {
            remarks.unknown.push(format!(
                "the machine of {name} is unknown: its results have no record of a run \
                 (`crossover env --save` writes one)"
            ));
        }
    }
    if base_runs.is_empty() || new_runs.is_empty() {
        return remarks;
    }
    if !on_one_machine {
        remarks.other_machine = other_machine(base, new);
    }
    remarks.commit = one_clean_commit(base_runs.iter().chain(&new_runs));
    let (before, after) = (facts(&base_runs), facts(&new_runs));
    for name in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let sides = [&before, &after].map(|side| side.get(name));
        let is_known = sides.iter().all(Option::is_some);
        if sides[0] == sides[1] || *name == SM_CLOCK_LOCK && !is_known {
            continue;
        }
        let [a, b] = sides.map(|side| side.map_or_else(|| "unknown".to_owned(), list));
        let warning = format!("{name} differs: base {a}, new {b}");
        remarks.warnings.push(warning);
    }
    for (name, runs) in [("base", base_runs), ("new", new_runs)] {
        let commits: BTreeSet<String> = runs.iter().map(|r| commit(r)).collect();
        remarks.notes.push(format!("{name}: {}", list(&commits)));
        let disturbances: BTreeSet<&String> = runs
            .iter()
            .flat_map(|r| &r.environment.disturbances)
            .collect();
        for d in disturbances {
            remarks.warnings.push(format!("{name}: {d}"));
        }
    }
    remarks
}

/// The commit of all these runs, if none had uncommitted changes.
fn one_clean_commit<'a>(runs: impl Iterator<Item = &'a &'a RunRecord>) -> Option<String> {
    let commits = runs.map(|run| {
        let environment = &run.environment;
        (environment.dirty == Some(false)).then(|| environment.commit_in_words())?
    });
    let commits = commits.collect::<Option<BTreeSet<String>>>()?;
    commits.first().filter(|_| commits.len() == 1).cloned()
}

/// How the machines of two compared results differ, if both are known. A side may have runs of several machines,
/// and runs without a GPU.
fn other_machine(base: &[Baseline], new: &[Baseline]) -> Option<String> {
    let pairs = base.iter().zip(new);
    let mut compared = pairs.flat_map(|(a, b)| a.results.keys().map(move |id| (a, b, id)));
    compared.find_map(|(base, new, id)| {
        let (a, b) = (environment(base, id)?, environment(new, id)?);
        let gpus = a.gpu.as_ref().zip(b.gpu.as_ref());
        let gpus = gpus.map(|(a, b)| ("GPU", &a.name, &b.name));
        let names = [Some(("CPU", &a.cpu.model, &b.cpu.model)), gpus];
        let (what, a, b) = names.into_iter().flatten().find(|(_, a, b)| a != b)?;
        Some(format!(
            "the sides ran on different machines: {what} {a} and {b}"
        ))
    })
}

/// The environment of the run that measured a benchmark.
fn environment<'a>(side: &'a Baseline, id: &str) -> Option<&'a Environment> {
    let sidecar = side.results.get(id)?.sidecar.as_ref();
    let run = sidecar.map_or("", |sidecar| &sidecar.run);
    Some(&side.runs.get(run)?.environment)
}

fn list(values: &BTreeSet<String>) -> String {
    values.iter().cloned().collect::<Vec<_>>().join(" and ")
}

fn commit(run: &RunRecord) -> String {
    let commit = run.environment.commit_in_words();
    format!("commit {}", commit.as_deref().unwrap_or("unknown"))
}

fn facts(runs: &[&RunRecord]) -> Facts {
    let mut facts = Facts::new();
    for run in runs {
        let e = &run.environment;
        let package = e
            .package
            .as_ref()
            .map(|package| ("package", package.clone()));
        let of_code = [
            ("crossover version", e.crossover.clone()),
            ("profile", run.size_set.clone()),
        ];
        for (name, fact) in of_code.into_iter().chain(package).chain(e.facts()) {
            facts.entry(name).or_default().insert(fact);
        }
    }
    facts
}

/// Two runs whose SM clocks differ by more than this are marked.
const CLOCK_DIFFERENCE: f64 = 0.02;

/// The disturbances of a benchmark's runs: a launch constant that moved, throttling, another SM clock.
pub(super) fn marks(befores: &[&Sampled], afters: &[&Sampled]) -> Vec<String> {
    let mut marks = Vec::new();
    let mut clocks = Vec::new();
    for (side, runs) in [("base", befores), ("new", afters)] {
        let states = || {
            runs.iter()
                .filter_map(|s| s.sidecar.as_ref()?.device_state.as_ref())
        };
        let reasons: BTreeSet<&str> = states()
            .flat_map(|s| s.throttle_reasons.iter().flatten().map(String::as_str))
            .collect();
        let launches = runs.iter().filter_map(|run| run.launches);
        let moved = launches.filter_map(|it| LaunchConstant::moved(it.empty_ns));
        let moved = Vec::from_iter(moved);
        if let Some(first) = moved.first() {
            let (number, runs) = (moved.len(), runs.len());
            marks.push(format!("{side}, {number} of {runs} runs: {first}"));
        }
        if !reasons.is_empty() {
            let reasons: Vec<&str> = reasons.into_iter().collect();
            marks.push(format!("{side} throttled ({})", reasons.join(", ")));
        }
        let seen: Vec<f64> = states()
            .filter_map(|s| s.sm_clock_mhz.map(f64::from))
            .collect();
        if !seen.is_empty() {
            clocks.push(mean(seen));
        }
    }
    if let [before, after] = clocks[..]
        && (after / before - 1.0).abs() > CLOCK_DIFFERENCE
    {
        marks.push(format!("SM clock {before:.0} → {after:.0} MHz"));
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted;
    use crossover_results::model::GpuInfo;
    use crossover_results::model::record::Sidecar;
    use crossover_words::Clock;

    /// A result for each GPU, or absent GPU, of the run that it is from.
    fn side(gpus: &[Option<&str>]) -> Vec<Baseline> {
        let ids = (0..gpus.len()).map(|i| (format!("a/cpu/b/{i}"), vec![1.0]));
        let mut side = planted(ids);
        for ((id, result), gpu) in side.results.iter_mut().zip(gpus) {
            let run = format!("{gpu:?}");
            let record = side.runs.entry(run.clone()).or_default();
            record.environment.gpu = gpu.map(|name| GpuInfo {
                name: name.to_owned(),
                ..GpuInfo::default()
            });
            result.sidecar = Some(Sidecar {
                run,
                ..Sidecar::of(id, Clock::Wall)
            });
        }
        vec![side]
    }

    #[test]
    fn machines_differ_where_two_results_do() {
        let (none, h100, h200) = (None, Some("H100"), Some("H200"));
        for (base, new, differ) in [
            ([h100, h100], [h200, h200], true),
            ([h100, none], [h200, h200], true),
            ([h100, none], [h200, none], true),
            ([h100, h200], [h200, h100], true),
            ([h100, none], [h100, h100], false),
            ([none, none], [h100, h100], false),
            ([h100, h200], [h100, h200], false),
        ] {
            let remarks = |known| remarks(&side(&base), &side(&new), known).other_machine;
            assert_eq!(remarks(false).is_some(), differ, "{base:?} {new:?}");
            assert_eq!(remarks(true), None);
        }
    }

    #[test]
    fn locked_clocks_differ_from_others_where_both_are_known() {
        let on = |holds_sm_clock| {
            let mut side = side(&[Some("H200")]);
            for run in side[0].runs.values_mut() {
                let gpu = run.environment.gpu.as_mut().unwrap();
                (gpu.holds_sm_clock, gpu.max_sm_clock_mhz) = (holds_sm_clock, Some(1980));
            }
            side
        };
        for (base, new, warnings) in [
            (Some(false), Some(true), 1),
            (Some(true), Some(true), 0),
            (Some(false), None, 0),
        ] {
            let remarks = remarks(&on(base), &on(new), true);
            assert_eq!(remarks.warnings.len(), warnings, "{:?}", remarks.warnings);
        }
    }
}
