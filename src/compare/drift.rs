//! What two runs of the same code, one after the other, differ by on a machine: learnt by `ab`,
//! whose processes of one side are such runs, and used where two saved baselines are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::compare::beliefs::{Beliefs, Evidence};
use crate::compare::class::Class;
use crate::compare::median::Median;
use crate::results::baseline::Baseline;
use crate::results::files::{read_json, write_json};

/// Version of the file.
const SCHEMA: u32 = 1;

/// Fewer benchmarks say too little of a class to be kept.
const ENOUGH_BENCHMARKS: usize = 4;

/// The drift of all machines that `ab` has run on, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KnownDrift {
    schema: u32,
    /// By machine, then by class.
    machines: BTreeMap<String, BTreeMap<String, Beliefs>>,
}

impl Default for KnownDrift {
    fn default() -> Self {
        Self {
            schema: SCHEMA,
            machines: BTreeMap::new(),
        }
    }
}

impl KnownDrift {
    /// Reads the file; nothing is known where there is none.
    ///
    /// # Errors
    /// A file that cannot be read or holds nonsense.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let advice = "delete it: the next `crossover ab` learns it again";
        let known: Self = read_json(path).map_err(|error| anyhow!("{error}; {advice}"))?;
        let all = || known.machines.values().flat_map(BTreeMap::values);
        if known.schema != SCHEMA || !all().all(Beliefs::is_sound) {
            bail!(
                "{}: not a drift file of this version; {advice}",
                path.display()
            );
        }
        Ok(known)
    }

    /// Replaces what is known of the machine of these runs of one code each, and of the classes
    /// that they ran; gives whether anything was learnt.
    pub(crate) fn learn(&mut self, sides: [&[Baseline]; 2]) -> bool {
        let Some(machine) = machine(sides.iter().copied().flatten()) else {
            return false;
        };
        let mut seen: BTreeMap<String, (Class, Vec<Evidence>)> = BTreeMap::new();
        for side in sides {
            for (class, evidence) in evidence(side) {
                let name = class.name();
                let of_class = seen.entry(name).or_insert_with(|| (class, Vec::new()));
                of_class.1.push(evidence);
            }
        }
        seen.retain(|_, (_, evidence)| evidence.len() >= 2 * ENOUGH_BENCHMARKS);
        let learnt: Vec<(String, Beliefs)> = seen
            .into_iter()
            .map(|(name, (class, evidence))| {
                (
                    name,
                    Beliefs::assumed(class.assumed_drift()).after(&evidence),
                )
            })
            .collect();
        let any = !learnt.is_empty();
        self.machines.entry(machine).or_default().extend(learnt);
        any
    }

    /// Writes the file.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        Ok(write_json(path, self)?)
    }

    /// What is known of the one machine that all these runs are of.
    pub(crate) fn of(&self, base: &[Baseline], new: &[Baseline]) -> BTreeMap<String, Beliefs> {
        machine(base.iter().chain(new))
            .and_then(|machine| self.machines.get(&machine))
            .cloned()
            .unwrap_or_default()
    }
}

/// The one machine of all runs: CPU, number of cores, and board.
fn machine<'a>(runs: impl Iterator<Item = &'a Baseline>) -> Option<String> {
    let all: BTreeSet<String> = runs
        .flat_map(|baseline| baseline.runs.values())
        .map(|run| {
            let e = &run.environment;
            let gpu = e.gpu.as_ref();
            let board = gpu.map(|gpu| gpu.uuid.as_ref().unwrap_or(&gpu.name).as_str());
            format!(
                "{}, {} cores, {}",
                e.cpu.model,
                e.cpu.usable_cores,
                board.unwrap_or("no GPU")
            )
        })
        .collect();
    let [one] = &all.into_iter().collect::<Vec<_>>()[..] else {
        return None;
    };
    Some(one.clone())
}

/// What each benchmark's medians differ by from one run of this side to the next.
fn evidence(side: &[Baseline]) -> Vec<(Class, Evidence)> {
    let ids: BTreeSet<&String> = side.iter().flat_map(|run| run.results.keys()).collect();
    let of_id = |id: &String| {
        let runs: Vec<_> = side.iter().filter_map(|run| run.results.get(id)).collect();
        let medians: Vec<Median> = runs.iter().filter_map(|run| Median::of(&run.ns)).collect();
        let n = medians.len() as f64;
        if medians.len() < 2 {
            return None;
        }
        let mean = medians.iter().map(|m| m.ns.ln()).sum::<f64>() / n;
        let squares: f64 = medians.iter().map(|m| (m.ns.ln() - mean).powi(2)).sum();
        let noise: f64 = medians.iter().map(|m| m.variance).sum();
        let sidecar = runs.iter().find_map(|run| run.sidecar.as_ref());
        let launches = sidecar.and_then(|s| s.cost.launches).unwrap_or(1).max(1);
        let class = Class::of(
            id,
            sidecar.map(|s| s.clock),
            mean.exp() / f64::from(launches),
        );
        // A change is between two runs: twice the variance of one.
        let evidence = Evidence {
            square: 2.0 * squares / (n - 1.0),
            freedom: n - 1.0,
            noise: 2.0 * noise / n,
        };
        evidence.noise.is_finite().then_some((class, evidence))
    };
    ids.into_iter().filter_map(of_id).collect()
}
