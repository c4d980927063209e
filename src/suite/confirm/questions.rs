//! The questions of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::model::id::{self, Device};
use crate::model::record::{Confirmation, PairedTimes};
use crate::suite::journal::Journal;
use crate::timing::Clock;
use crossover_advice::thresholds::CrossingKind;
use crossover_results::analysis::answer::confirmations::{
    next_sizes, of_confirmations, with_confirmed_times,
};
use crossover_results::analysis::answer::crossover_answer::{
    CrossoverAnswer, best_at, best_cpu as best_times, curve, find, headlines, of_several,
};
use crossover_results::analysis::answer::curve::Curve;
use crossover_results::analysis::answer::estimate::{Crossing, FEWEST_PROCESSES};
use crossover_results::analysis::trust::{Grade, Trust};
use crossover_results::store::curves::Benchmark;
use crossover_results::store::machine_results::MachineResults;

/// Processes for a question if the GPU's times are another machine's. These cannot be measured again
/// here, so more processes would tell more about this CPU, but not about the answer.
const OF_ANOTHER_GPU: usize = FEWEST_PROCESSES;

/// If one side is this many times faster at an end of the range by the run's own times, no process needs to look
/// for a crossing there.
const NOT_SEARCHED_BEYOND: f64 = 3.0;

/// Median times by group, size and implementation.
pub(super) type Times = BTreeMap<(String, u64), BTreeMap<String, f64>>;

/// A question, and the run's own answer to it.
pub(super) struct AskedQuestion {
    /// The question with the answers of the processes so far.
    pub(super) confirmation: Confirmation,
    /// Number of processes that tried to answer it.
    pub(super) attempts: usize,
    /// Whether it is put to the next process.
    pub(super) is_open: bool,
    /// The crossing by the run's own results.
    near: f64,
    /// The end of the range beyond which the crossing lies by far.
    beyond: Option<u64>,
    /// Whether the processes so far give a firm answer, so that no more are asked. In the committed records
    /// as many answers are then firm as with six processes each (`the_first_firm_answer_is_as_good`).
    pub(super) is_firm: bool,
    /// The GPU's times, where they are another machine's.
    pub(super) gpu_times: Option<Curve>,
}

impl AskedQuestion {
    /// The sizes for the next process.
    pub(super) fn sizes(&self) -> Vec<u64> {
        let Confirmation {
            range, processes, ..
        } = &self.confirmation;
        match self.beyond {
            Some(end) if processes.is_empty() => {
                BTreeSet::from([end, range.1]).into_iter().collect()
            }
            _ => next_sizes(self.near, *range, processes),
        }
    }

    /// How many processes should answer it, at most `most`.
    pub(super) fn wanted(&self, most: usize) -> usize {
        match &self.gpu_times {
            Some(_) => most.min(OF_ANOTHER_GPU),
            None if self.is_firm => self.attempts.min(most),
            None => most,
        }
    }

    /// Whether more processes than wanted may make the answer firm. A question that no process could answer is
    /// not tried again, and more processes would not tell more about another machine's GPU.
    pub(super) fn may_become_firm(&self) -> bool {
        !self.is_firm && self.gpu_times.is_none() && !self.confirmation.processes.is_empty()
    }

    /// The answer of one process; `None` if a time is missing.
    pub(super) fn paired_times(
        &self,
        machine: &MachineResults,
        times: &Times,
    ) -> Option<Vec<PairedTimes>> {
        let group = &self.confirmation.group;
        let at_size = |size| {
            let cpu = best_at(machine.group(group)?, size as f64)?;
            let times = times.get(&(group.clone(), size))?;
            let gpu_ns = match &self.gpu_times {
                Some(curve) => curve.at(size as f64)?.median,
                None => *times.get(&format!("gpu/{}", self.confirmation.gpu))?,
            };
            Some(PairedTimes {
                size,
                cpu_ns: *times.get(&baseline(machine, group, size)?)?,
                cpu,
                gpu_ns,
            })
        };
        self.sizes().into_iter().map(at_size).collect()
    }
}

/// Device and name of the code that the GPU is compared with at a size, such as the best of the CPU, by the
/// run's curves.
pub(super) fn baseline(machine: &MachineResults, group: &str, size: u64) -> Option<String> {
    let group = machine.group(group)?;
    let best = best_at(group, size as f64)?;
    Some(id::function_of(group.baseline(), &best))
}

/// The results of a run and the questions that it answered with both sides measured.
#[derive(Default)]
pub(super) struct OpenQuestions {
    pub(super) machine: MachineResults,
    pub(super) questions: Vec<AskedQuestion>,
}

impl OpenQuestions {
    /// Takes the results so far, and adds the questions that they newly answer.
    pub(super) fn renew(&mut self, journal: &Journal, references: &Path, is_whole: bool) {
        let run = &*journal.record.run;
        // Unsteady results too: the processes can decide them.
        let results =
            MachineResults::of_results(journal.results(), "this machine", false).with_unsteady();
        let machines = MachineResults::read_machines(references).0.into_iter();
        let machines: Vec<MachineResults> = machines.map(with_confirmed_times).collect();
        self.machine = if is_whole {
            results.of_run(run)
        } else {
            results.clone()
        };
        let found = find(&self.machine, &machines);
        let of_this_run = |found: &&CrossoverAnswer| {
            let mut own = (found.benchmarks.iter())
                .filter_map(|id| self.machine.benchmarks().find(|b| b.id == *id))
                .peekable();
            own.peek().is_some() && own.all(|b| b.run.as_deref() == Some(run))
        };
        // If an earlier run used a GPU of this machine, no other machine's GPU is compared.
        let has_gpu = |found: &CrossoverAnswer| {
            let group = results.group(&found.group);
            group.is_some_and(|group| group.on(Device::Gpu).next().is_some())
        };
        let is_asked = |found: &&CrossoverAnswer| {
            of_this_run(found) && !(found.gpu_machine.is_some() && has_gpu(found))
        };
        for found in headlines(&found).chain(of_several(&found)).filter(is_asked) {
            let is_known = (self.questions.iter()).any(|known| {
                (&known.confirmation.group, known.confirmation.question)
                    == (&found.group, found.question)
                    && (found.devices.is_none() || known.confirmation.gpu == found.gpu)
            });
            if !is_known {
                self.questions
                    .extend(question(found, &self.machine, &machines));
            }
        }
    }

    /// Whether there is a result of each of these at this size, and so a verified one.
    pub(super) fn has_verified(
        &self,
        group: &str,
        size: u64,
        functions: &BTreeSet<String>,
    ) -> bool {
        let measured = |b: &&Benchmark| b.group == group && b.size == size && b.verified.is_some();
        let verified: Vec<_> = self.machine.benchmarks().filter(measured).collect();
        (functions.iter()).all(|function| {
            (verified.iter()).any(|b| id::function_of(b.device, &b.implementation) == *function)
        })
    }

    /// The questions that are put to the next process.
    pub(super) fn open(&self) -> impl Iterator<Item = &AskedQuestion> {
        self.questions.iter().filter(|question| question.is_open)
    }
}

fn question(
    found: &CrossoverAnswer,
    machine: &MachineResults,
    others: &[MachineResults],
) -> Option<AskedQuestion> {
    let clock = Clock::named(found.clock)?;
    let mut gpu_run = None;
    let gpu_times = match &found.gpu_machine {
        None => None,
        Some(name) => {
            let other = others.iter().find(|m| m.hardware() == *name)?;
            let series = other
                .group(&found.group)?
                .on(Device::Gpu)
                .find(|series| series.implementation == found.gpu && series.clock == Some(clock))?;
            gpu_run = series.points.last().and_then(|b| b.run.clone());
            Some(curve(series))
        }
    };
    let near = near(&found.crossing);
    let (first, last) = found.crossing.range;
    let speedup = |size: f64| {
        let group = machine.group(&found.group)?;
        let own = || found.gpu_series(group).map(curve);
        let gpu = gpu_times.clone().or_else(own)?.at(size)?.median;
        Some(best_times(group).0.at(size)?.median / gpu)
    };
    let beyond = match near {
        0.0 => speedup(first)
            .filter(|by| *by >= NOT_SEARCHED_BEYOND)
            .and(Some(first)),
        f64::INFINITY => speedup(last)
            .filter(|by| *by <= 1.0 / NOT_SEARCHED_BEYOND)
            .and(Some(last)),
        _ => None,
    };
    Some(AskedQuestion {
        confirmation: Confirmation {
            group: found.group.clone(),
            question: found.question,
            gpu: found.gpu.clone(),
            clock,
            gpu_machine: found.gpu_machine.clone(),
            gpu_run,
            range: (first as u64, last as u64),
            processes: Vec::new(),
        },
        attempts: 0,
        is_open: false,
        is_firm: false,
        near,
        beyond: beyond.map(|size| size as u64),
        gpu_times,
    })
}

/// The size near which processes search the crossing: infinite if the GPU never wins, 0 if it always does.
fn near(crossing: &Crossing) -> f64 {
    // Also if it is undecided.
    let change = crossing.changes.last().filter(|c| c.to_b);
    match (crossing.answer, change) {
        // With more than one crossing, only the speedup is measured again.
        (CrossingKind::BothWays, _) => f64::NAN,
        (CrossingKind::Always, None) => 0.0,
        (CrossingKind::Undecided, None) if crossing.speedup >= 1.0 => 0.0,
        (_, Some(change)) => change.size,
        (_, None) => f64::INFINITY,
    }
}

/// Marks the questions that have a firm answer.
pub(super) fn mark_firm(questions: &mut [AskedQuestion]) {
    let confirmations: Vec<Confirmation> =
        questions.iter().map(|q| q.confirmation.clone()).collect();
    for (answer, question) in of_confirmations(&confirmations).into_iter().zip(questions) {
        let grade = answer.map(|answer| Trust::of_estimate(&answer).grade());
        question.is_firm = grade == Some(Grade::Firm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::role::Residency;

    /// A question about sizes from 1 on, where the GPU takes `first_ns`; the processes measured these GPU times
    /// at size 2.
    fn question(first_ns: f64, gpu_ns: [f64; 4]) -> AskedQuestion {
        let process = |gpu_ns| {
            let paired = |size, gpu_ns| PairedTimes {
                size,
                cpu: "best".to_owned(),
                cpu_ns: 100.0,
                gpu_ns,
            };
            vec![paired(1, first_ns), paired(2, gpu_ns)]
        };
        AskedQuestion {
            confirmation: Confirmation {
                group: "matmul".to_owned(),
                question: Residency::Pinned,
                gpu: "best".to_owned(),
                clock: Clock::Wall,
                gpu_machine: None,
                gpu_run: None,
                range: (1, 2),
                processes: gpu_ns.map(process).to_vec(),
            },
            attempts: 4,
            is_open: false,
            near: 1.5,
            beyond: None,
            is_firm: false,
            gpu_times: None,
        }
    }

    #[test]
    fn an_end_at_which_one_side_is_clearly_faster_is_measured_alone() {
        let mut asked = question(200.0, [50.0; 4]);
        asked.confirmation.range = (1, 64);
        let processes = std::mem::take(&mut asked.confirmation.processes);
        asked.near = 0.0;
        assert_eq!(asked.sizes(), [1, 2, 64]);
        asked.beyond = Some(1);
        assert_eq!(asked.sizes(), [1, 64]);
        asked.beyond = Some(64);
        assert_eq!(asked.sizes(), [64]);
        asked.confirmation.processes = processes;
        assert_eq!(asked.sizes(), [1, 2, 3, 64], "the processes decide");
    }

    #[test]
    fn a_crossing_is_sought_where_the_winner_changes_or_at_an_end() {
        let near = |first_ns, last_ns| {
            let asked = question(first_ns, [last_ns; 4]).confirmation;
            near(of_confirmations(&[asked])[0].as_ref().unwrap())
        };
        assert_eq!(near(50.0, 50.0), 0.0);
        assert_eq!(near(200.0, 200.0), f64::INFINITY);
        assert!((1.0..2.0).contains(&near(200.0, 50.0)));
        assert!(near(50.0, 200.0).is_nan());
    }

    #[test]
    fn no_more_processes_are_asked_once_the_answer_is_firm() {
        // A question of its own: others about data in the same place share their spread.
        let wanted = |gpu_ns, processes: usize, most| {
            let mut questions = [question(200.0, gpu_ns)];
            questions[0].confirmation.processes.truncate(processes);
            questions[0].attempts = processes;
            mark_firm(&mut questions);
            questions[0].wanted(most)
        };
        let (alike, apart) = ([50.0; 4], [10.0, 30.0, 60.0, 90.0]);
        assert_eq!(wanted(apart, 4, 6), 6);
        assert_eq!(
            [4, 3, 2].map(|processes| wanted(alike, processes, 6)),
            [4, 3, 6]
        );
        assert_eq!(wanted(alike, 2, 2), 2);
    }
}
