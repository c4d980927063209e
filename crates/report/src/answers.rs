//! An answer with the curve of its speedup, its limits, and how far it can be trusted.

use crate::report::Report;
use crossover_results::analysis::answer::confirmations::RunAnswer;
use crossover_results::analysis::answer::crossover_answer::{CrossoverAnswer, curve};
use crossover_results::analysis::answer::curve::Curve;
use crossover_results::analysis::answer::kind::Speedup;
use crossover_results::analysis::limits::{self, Share};
use crossover_results::analysis::trust::{self, Grade, Trust};
use crossover_results::store::curves::Series;
use crossover_results::store::machine::MachineResults;

/// The answer to one question of a group.
pub(crate) struct GroupAnswer<'a> {
    pub(crate) found: &'a CrossoverAnswer,
    /// The machine of its GPU code.
    pub(crate) machine: &'a MachineResults,
    /// Its GPU code.
    pub(crate) series: &'a Series,
    /// The speedup along the sizes.
    pub(crate) speedup: Vec<Speedup>,
    /// Its limit at the crossing and at the largest size.
    pub(crate) limits: Vec<(u64, Share)>,
    pub(crate) trust: Trust,
}

impl<'a> GroupAnswer<'a> {
    /// The answer with its evidence; `None` if its GPU code has no results any more.
    pub(crate) fn of(
        report: &'a Report,
        found: &'a CrossoverAnswer,
        best_cpu: &Curve,
        of_runs: &[RunAnswer],
    ) -> Option<Self> {
        let (machine, series) = (report.gpu(), report.gpu_of(found)?);
        let crossing = found.crossing.for_good().map(|change| change.size.ceil());
        let sizes = crossing.into_iter().chain([found.crossing.largest]);
        let gpu = curve(series);
        let limit = |size: f64| {
            let ns = gpu.at(size)?.median;
            Some((size as u64, limits::at(series, size as u64, ns, machine)?))
        };
        let mut limits: Vec<(u64, Share)> = sizes.filter_map(limit).collect();
        limits.dedup_by_key(|(size, _)| *size);
        Some(Self {
            found,
            machine,
            series,
            speedup: found.speedups(best_cpu, series),
            limits,
            trust: trust::of(found, &report.machine, machine, of_runs),
        })
    }

    /// The speedup that each process measured at each of its sizes.
    pub(crate) fn of_processes(&self) -> Vec<(u64, f64)> {
        let pairs = self.found.processes.iter().flatten();
        let ratios = pairs.map(|pair| (pair.size, pair.cpu_ns / pair.gpu_ns));
        let sound = ratios.filter(|(size, ratio)| *size > 0 && ratio.is_normal() && *ratio > 0.0);
        sound.collect()
    }

    /// How sure it is, and why, in a sentence.
    pub(crate) fn cause(&self) -> String {
        match self.trust.grade() {
            Grade::Firm => format!("Firm: {} processes agree.", self.found.crossing.processes),
            Grade::Doubtful => format!("Uncertain: {}.", self.trust.doubts().join("; ")),
            Grade::Thin => "Unconfirmed: measured by one process.".to_owned(),
        }
    }
}
