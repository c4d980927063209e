//! How sure an answer is.
//!
//! An answer is firm if at least three processes answered and agree, another run would find the same
//! side ahead at the largest size, the interval of the crossing is narrower than a factor of two, and
//! no other run of the machine contradicts it. The width of the speedup's interval alone is no reason
//! for doubt. A lowered GPU clock is one only where the GPU might win at its highest clock: its time
//! shrinks by no more than the clock rises.

use std::collections::BTreeSet;

use crate::analysis::answer::confirmations::RunAnswer;
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, of_other_runs};
use crate::analysis::answer::estimate::Crossing;
use crate::analysis::telemetry;
use crate::store::curves::Benchmark;
use crate::store::machine_results::MachineResults;
use crossover_advice::thresholds::CrossingKind;
use crossover_words::units;

/// A crossing is rough if its interval is this wide, as a factor.
const ROUGH: f64 = 2.0;

/// The evidence for an answer.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    own: Crossing,
    /// Names of its runs.
    pub runs: Vec<String>,
    /// The answers of other runs of the machine, by the name of the run.
    pub other_runs: Vec<(String, Crossing)>,
    /// Why the GPU's clock was low meanwhile.
    slowed: BTreeSet<String>,
    /// The GPU's highest clock over its clock at the largest size; infinite where either is unknown.
    highest_clock: f64,
}

/// The grade of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Several processes agree, and there is no reason for doubt.
    Firm,
    /// Several processes answered, and there is a reason for doubt.
    Doubtful,
    /// Too few processes answered.
    Thin,
}

impl Trust {
    /// The trust in an estimate alone.
    pub fn of_estimate(own: &Crossing) -> Self {
        Self {
            own: own.clone(),
            highest_clock: f64::INFINITY,
            ..Self::default()
        }
    }

    /// The reasons for doubt, each in a few words.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        // Without a joint answer no process disagrees with it.
        let disagreeing = match self.own.agree {
            0 => 0,
            agree => self.own.processes - agree,
        };
        if disagreeing > 0 {
            let processes = self.own.processes;
            doubts.push(format!(
                "{disagreeing} of {processes} processes disagree about the winner"
            ));
        }
        if self.own.answer == CrossingKind::Undecided {
            doubts.push("another run may find either side ahead at the largest size".to_owned());
        }
        let width = self.own.for_good().map(|change| change.high / change.low);
        if let Some(width) = width.filter(|width| *width >= ROUGH) {
            let width = units::factor(width);
            doubts.push(format!("the interval of the crossing spans {width}"));
        }
        let contradicts = |(_, other): &&(String, Crossing)| self.own.contradicts(other);
        let outside = self.other_runs.iter().filter(contradicts).count();
        if outside > 0 {
            let runs = units::counted(outside, "other run");
            doubts.push(format!("{runs} outside its interval"));
        }
        let loses = self.own.wins_at_the_largest() == Some(false);
        let might_win = self.own.speedup_interval.1 * self.highest_clock >= 1.0;
        if loses && might_win && !self.slowed.is_empty() {
            let slowed: Vec<&str> = self.slowed.iter().map(String::as_str).collect();
            doubts.push(format!("throttled: {}", slowed.join(", ")));
        }
        doubts
    }

    /// Firm without doubts.
    pub fn grade(&self) -> Grade {
        match (self.own.is_confirmed(), self.doubts().is_empty()) {
            (false, _) => Grade::Thin,
            (_, false) => Grade::Doubtful,
            (_, true) => Grade::Firm,
        }
    }
}

/// The evidence for `found`: results of `ours`, the machine of its CPU code, and of `theirs`, the
/// machine of its GPU code. `of_runs` has the answers of each run of `ours`.
pub fn of(
    found: &CrossoverAnswer,
    ours: &MachineResults,
    theirs: &MachineResults,
    of_runs: &[RunAnswer],
) -> Trust {
    let groups = [ours, theirs]
        .into_iter()
        .filter_map(|machine| machine.group(&found.group));
    let both = groups.flat_map(|group| group.benchmarks());
    let results: Vec<&Benchmark> = both.filter(|b| found.benchmarks.contains(&b.id)).collect();
    let runs: BTreeSet<String> = results.iter().filter_map(|b| b.run.clone()).collect();
    let slowed = results.iter().flat_map(|b| telemetry::slowed(b));
    let gpu = theirs.environment.as_ref().and_then(|e| e.gpu.as_ref());
    let highest = gpu.and_then(|gpu| gpu.max_sm_clock_mhz);
    let series = theirs
        .group(&found.group)
        .and_then(|group| found.gpu_series(group));
    let largest = series.and_then(|series| series.at(found.crossing.largest as u64));
    let clock = highest.zip(largest.and_then(telemetry::sm_clock_mhz));
    Trust {
        highest_clock: clock.map_or(f64::INFINITY, |(highest, own)| f64::from(highest) / own),
        runs: runs.into_iter().collect(),
        other_runs: of_other_runs(of_runs, found),
        slowed: slowed.map(str::to_owned).collect(),
        ..Trust::of_estimate(&found.crossing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_clock_is_a_doubt_only_where_the_gpu_might_win_without_it() {
        let mut trust = Trust::of_estimate(&Crossing {
            answer: CrossingKind::Never,
            processes: 5,
            agree: 5,
            speedup_interval: (0.8, 0.95),
            ..Crossing::default()
        });
        assert_eq!(trust.grade(), Grade::Firm);
        trust.slowed.insert("power cap".to_owned());
        for (highest_clock, grade) in [
            (1.04, Grade::Firm),
            (1.06, Grade::Doubtful),
            (f64::INFINITY, Grade::Doubtful),
        ] {
            trust.highest_clock = highest_clock;
            assert_eq!(trust.grade(), grade, "{highest_clock}");
        }
        // The GPU wins, and would at any higher clock.
        trust.own.speedup_interval = (1.1, 1.3);
        assert_eq!(trust.grade(), Grade::Firm);
        // One process disagrees.
        trust.own.agree = 4;
        assert_eq!(trust.grade(), Grade::Doubtful);
    }
}
