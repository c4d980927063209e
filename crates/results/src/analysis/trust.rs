//! How far an answer may be trusted.
//!
//! An answer is firm if at least three processes answered and agree, another run would find the same
//! side ahead at the largest size, the interval of the crossing is narrower than a factor of two, and
//! no other run of the machine contradicts it. The width of the speedup's interval alone is no reason
//! for doubt. A lowered GPU clock is one only where the CPU wins: a higher clock cannot make the GPU
//! lose.

use std::collections::BTreeSet;

use crate::analysis::answer::crossover_answer::{CrossoverAnswer, RunAnswer, of_other_runs};
use crate::analysis::answer::estimate::{Answer, Crossing, FEWEST_PROCESSES};
use crate::analysis::telemetry;
use crate::store::curves::Benchmark;
use crate::store::machine::MachineResults;
use crossover_words::units;

/// A crossing whose interval is this wide, as a factor, is rough.
const ROUGH: f64 = 2.0;

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
    pub other_runs: Vec<(String, Crossing)>,
    /// How many of these found what the interval says.
    pub held: usize,
    /// How far the interval of the speedup at the largest size reaches on its wider side, as a
    /// factor; `None` where it is not known.
    pub reach: Option<f64>,
    /// Whether another run would find the same side ahead at the largest size.
    pub is_decided: bool,
    /// The upper end of the crossing's interval over the lower; 1 where there is no crossing.
    pub width: f64,
    /// Whether the CPU wins, so that a higher GPU clock might change the answer.
    pub cpu_wins: bool,
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
    /// That of an estimate by itself.
    pub fn of_estimate(own: &Crossing) -> Self {
        Self {
            processes: own.processes,
            agree: own.agree,
            boards: 1,
            runs: Vec::new(),
            other_runs: Vec::new(),
            held: 0,
            reach: None,
            is_decided: own.answer != Answer::Undecided,
            width: own
                .for_good()
                .map_or(1.0, |change| change.high / change.low),
            cpu_wins: own.speedup < 1.0,
            slowed: Vec::new(),
        }
    }

    /// The reasons for doubt, each in a few words.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        match (self.agree, self.processes) {
            (0, n) => doubts.push(format!("{n} processes disagree about the winner")),
            (agree, n) if agree < n => {
                let others = n - agree;
                doubts.push(format!(
                    "{others} of {n} processes disagree about the winner"
                ));
            }
            _ => {}
        }
        if !self.is_decided {
            doubts.push("another run may find either side ahead at the largest size".to_owned());
        }
        if self.width >= ROUGH {
            let width = units::factor(self.width);
            doubts.push(format!("the interval of the crossing spans {width}"));
        }
        let outside = self.other_runs.len() - self.held;
        if outside > 0 {
            let runs = units::counted(outside, "other run");
            doubts.push(format!("{runs} outside its interval"));
        }
        if self.cpu_wins && !self.slowed.is_empty() {
            doubts.push(format!("throttled: {}", self.slowed.join(", ")));
        }
        doubts
    }

    /// The grade of the marks together.
    pub fn grade(&self) -> Grade {
        match (self.processes >= FEWEST_PROCESSES, self.doubts().is_empty()) {
            (false, _) => Grade::Thin,
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
    let own = &found.crossing;
    let other_runs = of_other_runs(of_runs, found);
    let held = |(_, other): &&(String, Crossing)| own.is_confirmed() && !own.contradicts(other);
    let reach = interval.map(|(low, high)| (found.speedup / low).max(high / found.speedup));
    Trust {
        boards: 1 + beside.iter().filter(alike).count(),
        runs: runs.into_iter().cloned().collect(),
        held: other_runs.iter().filter(held).count(),
        other_runs,
        reach: reach.filter(|reach| reach.is_finite() && *reach >= 1.0),
        slowed,
        ..Trust::of_estimate(own)
    }
}
