//! How far an answer may be trusted: the number of its processes, runs and boards, the width of its
//! interval, and what disturbed the measurements that it rests on.

use std::collections::BTreeSet;

use crate::analysis::answer::crossover_answer::{CrossoverAnswer, RunAnswer, of_other_runs};
use crate::analysis::answer::several_processes::Confirmed;
use crate::analysis::telemetry;
use crate::store::curves::Benchmark;
use crate::store::machine::MachineResults;
use crossover_words::units;

/// A speedup whose interval reaches further than this on one side, as a factor, is rough.
const ROUGH: f64 = 1.25;

/// What an answer rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Trust {
    /// Processes that answered.
    pub processes: usize,
    /// How many of them agree on the kind of answer.
    pub agree: usize,
    /// Boards of the same model with an answer to the same question, this one included.
    pub boards: usize,
    /// Names of the runs that it rests on.
    pub runs: Vec<String>,
    /// What other runs of the machine answered, by the name of the run.
    pub other_runs: Vec<(String, Confirmed)>,
    /// How many of these found what the interval says.
    pub held: usize,
    /// How far the interval of the speedup at the largest size reaches on its wider side, as a
    /// factor; `None` where it is not known.
    pub reach: Option<f64>,
    /// What held the GPU's clock down meanwhile.
    pub slowed: Vec<String>,
}

/// The grade that the marks come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Several processes agree within a narrow interval, and nothing disturbed them.
    Firm,
    /// Several processes say it, with something against it.
    Doubtful,
    /// One process says it.
    Thin,
}

impl Trust {
    /// What is to be said against it, each in a few words.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        match (self.agree, self.processes) {
            (0, n) => doubts.push(format!("{n} processes together do not say who wins where")),
            (agree, n) if agree < n => doubts.push(format!(
                "{} of {n} processes say otherwise who wins where",
                n - agree
            )),
            _ => {}
        }
        let outside = self.other_runs.len() - self.held;
        if outside > 0 {
            let runs = units::counted(outside, "other run");
            doubts.push(format!("{runs} found what lies outside its range"));
        }
        match self.reach {
            Some(reach) if reach > ROUGH => {
                doubts.push(format!(
                    "another run may differ by {}",
                    units::factor(reach)
                ));
            }
            Some(_) => {}
            None => doubts.push("its range is not known".to_owned()),
        }
        if !self.slowed.is_empty() {
            doubts.push(format!("throttled: {}", self.slowed.join(", ")));
        }
        doubts
    }

    /// The grade of the marks together.
    pub fn grade(&self) -> Grade {
        match (self.processes, self.doubts().is_empty()) {
            (..=1, _) => Grade::Thin,
            (_, false) => Grade::Doubtful,
            (_, true) => Grade::Firm,
        }
    }
}

/// What `found` rests on: results of `ours`, the machine of its CPU code, and of `theirs`, that of
/// its GPU code. `beside` has the answers of each other machine, `of_runs` those
/// of each run of `ours`. `interval` is that of the speedup
/// at the largest size.
pub fn of(
    found: &CrossoverAnswer,
    ours: &MachineResults,
    theirs: &MachineResults,
    beside: &[(MachineResults, Vec<CrossoverAnswer>)],
    of_runs: &[RunAnswer],
    interval: Option<(f64, f64)>,
) -> Trust {
    let mut results: Vec<&Benchmark> = Vec::new();
    let mut machines = vec![ours];
    if !std::ptr::eq(ours, theirs) {
        machines.push(theirs);
    }
    for machine in machines {
        let group = machine.group(&found.group);
        let all = group.into_iter().flat_map(|group| group.benchmarks());
        results.extend(all.filter(|b| found.benchmarks.contains(&b.id)));
    }
    let runs: BTreeSet<&String> = results.iter().filter_map(|b| b.run.as_ref()).collect();
    let mut slowed: Vec<String> = Vec::new();
    for words in results.iter().flat_map(|b| telemetry::slowed(b)) {
        if !slowed.iter().any(|known| known == words) {
            slowed.push(words.to_owned());
        }
    }
    let alike = |(machine, answers): &&(MachineResults, Vec<CrossoverAnswer>)| {
        !std::ptr::eq(machine, theirs)
            && machine.gpu().is_some()
            && machine.gpu() == theirs.gpu()
            && answers.iter().any(|other| {
                other.headline && (&other.group, other.question) == (&found.group, found.question)
            })
    };
    let confirmed = found.confirmed;
    let other_runs = of_other_runs(of_runs, found);
    let held = |(_, other): &&(String, Confirmed)| confirmed.is_some_and(|own| own.holds(other));
    let reach = interval.map(|(low, high)| (found.speedup / low).max(high / found.speedup));
    Trust {
        processes: confirmed.map_or(1, |confirmed| confirmed.processes),
        agree: confirmed.map_or(1, |confirmed| confirmed.agree),
        boards: 1 + beside.iter().filter(alike).count(),
        runs: runs.into_iter().cloned().collect(),
        held: other_runs.iter().filter(held).count(),
        other_runs,
        reach: reach.filter(|reach| reach.is_finite() && *reach >= 1.0),
        slowed,
    }
}
