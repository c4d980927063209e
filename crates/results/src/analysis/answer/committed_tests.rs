//! Back-tests on the committed records: how often the intervals of one run hold the answers of another, and how
//! many answers are firm. docs/method.md has the figures; the bounds here lie below them.

use std::sync::LazyLock;

use crate::analysis::answer::confirmations::{
    RunAnswer, of_confirmations, of_runs, with_confirmed_times,
};
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, find, headlines};
use crate::analysis::answer::estimate::{Crossing, FEWEST_PROCESSES};
use crate::analysis::tests::{H100, NEWEST, machines};
use crate::analysis::trust::{self, Grade, Trust};
use crate::model::id::Device;
use crate::model::record::Confirmation;
use crate::model::role::Residency;
use crate::statistics::median::median;
use crate::store::machine_results::MachineResults;
use crossover_advice::thresholds::CrossingKind;

/// The records, and how many of their 36 answers are firm: over all runs, and in the first run alone.
const RECORDS: [(&str, [usize; 2]); 6] = [
    (
        "nvidia-h200--intel-xeon-processor/20261125T022932Z--38f947a0e118.json.gz",
        [31, 32],
    ),
    (
        "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261124T094152Z--1ed0545daaa1.json.gz",
        [27, 30],
    ),
    (
        "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261125T214741Z--364d48c7dd10.json.gz",
        [28, 31],
    ),
    (H100, [27, 27]),
    // From here on a run asked no more processes once an answer was firm.
    (
        "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261127T135608Z--23cdf577788c.json.gz",
        [26, 27],
    ),
    (NEWEST, [29, 29]),
];

/// The records of the rule that asks six processes.
const OF_SIX: usize = 4;

/// The results in the records, which take long to read.
static MACHINES: LazyLock<[MachineResults; RECORDS.len()]> = LazyLock::new(|| {
    RECORDS.map(|(record, _)| MachineResults::read_other(&machines().join(record)).unwrap())
});

/// Whether the crossing and the speedup of another run lie in the intervals of this one.
fn holds(own: &Crossing, other: &Crossing) -> [bool; 2] {
    let size = match (own.for_good(), other.for_good()) {
        (Some(own), Some(other)) => (own.low..=own.high).contains(&other.size),
        (Some(_), None) => match other.answer {
            CrossingKind::Always => own.or_always,
            CrossingKind::Never => own.or_never,
            _ => false,
        },
        (None, _) => own.answer == other.answer,
    };
    let (low, high) = own.speedup_interval;
    [size, (low..=high).contains(&other.speedup)]
}

/// Whether the crossings and the speedups of one run lie in the intervals of another run of the record.
fn coverage(answers: &[RunAnswer]) -> Vec<[bool; 2]> {
    let mut held = Vec::new();
    for own in answers {
        let question = |of: &RunAnswer| (of.asked.group.clone(), of.asked.question);
        let of_other_runs = answers.iter().filter(|other| other.run != own.run);
        let comparable = of_other_runs.filter(|other| question(other) == question(own));
        held.extend(comparable.map(|other| holds(&own.answer, &other.answer)));
    }
    held
}

/// Requires that the intervals hold sizes and speedups of each record, and of all records together, at least this
/// often.
fn assert_coverage(records: &[Vec<[bool; 2]>], of_each: f64, of_all: f64) {
    let assert_share = |held: &[[bool; 2]], least: f64| {
        for at in [0, 1] {
            let (number, of) = (held.iter().filter(|held| held[at]).count(), held.len());
            assert!(number as f64 >= least * of as f64, "{number} of {of}");
        }
    };
    records.iter().for_each(|held| assert_share(held, of_each));
    let intervals = records.concat();
    assert_share(&intervals, of_all);
    assert!(!intervals.is_empty());
}

/// An interval that holds everything would be useless.
#[test]
fn the_narrow_intervals_of_one_run_hold_the_answers_of_another() {
    let found = MACHINES.each_ref().map(|machine| {
        let answers = of_runs(machine);
        let sizes = answers.iter().filter_map(|of| of.answer.for_good());
        let speedups = answers.iter().map(|of| of.answer.speedup_interval);
        let size = median(sizes.map(|change| change.high / change.low)).unwrap();
        let speedup = median(speedups.map(|(low, high)| high / low)).unwrap();
        assert!(size < 2.2 && speedup < 1.7, "{size}, {speedup}");
        coverage(&answers)
    });
    assert_coverage(&found, 0.82, 0.92);
}

fn is_firm(answer: &Crossing) -> bool {
    Trust::of_estimate(answer).grade() == Grade::Firm
}

/// The processes of a run, had each question been put to no more of them once its answer was firm.
fn until_firm(all: &[Confirmation]) -> Vec<Confirmation> {
    let mut asked = all.to_vec();
    (asked.iter_mut()).for_each(|asked| asked.processes.truncate(FEWEST_PROCESSES - 1));
    for _ in FEWEST_PROCESSES..=6 {
        let answers = of_confirmations(&asked);
        for ((asked, answer), all) in asked.iter_mut().zip(answers).zip(all) {
            let next = all.processes.get(asked.processes.len());
            let next = next.filter(|_| !answer.as_ref().is_some_and(is_firm));
            asked.processes.extend(next.cloned());
        }
    }
    asked
}

/// A run that asks no more processes once an answer is firm needs two thirds of them, and its answers are as
/// good.
#[test]
fn the_first_firm_answer_is_as_good() {
    let (mut found, mut firm, mut processes) = (Vec::new(), [0, 0], [0, 0]);
    for machine in &MACHINES[..OF_SIX] {
        let all: Vec<_> = machine.confirmations().collect();
        let asked: Vec<_> = all
            .iter()
            .map(|(run, all)| (*run, until_firm(all)))
            .collect();
        let answers = asked.iter().flat_map(|(run, asked)| {
            let answers = of_confirmations(asked);
            asked.iter().zip(answers).filter_map(|(asked, answer)| {
                let answer = answer?;
                Some(RunAnswer { run, asked, answer })
            })
        });
        let answers: Vec<RunAnswer> = answers.collect();
        let of_six = of_runs(machine);
        for (at, answers) in [&of_six, &answers].into_iter().enumerate() {
            firm[at] += answers.iter().filter(|of| is_firm(&of.answer)).count();
            let asked = answers.iter().map(|of| of.asked.processes.len());
            processes[at] += asked.sum::<usize>();
        }
        found.push(coverage(&answers));
    }
    assert!(3 * processes[1] <= 2 * processes[0], "{processes:?}");
    assert!(firm[1] >= firm[0], "{firm:?}");
    assert_coverage(&found, 0.7, 0.9);
}

/// As docs/method.md has it, within two.
#[test]
fn most_answers_of_the_committed_records_are_firm() {
    for (machine, (_, documented)) in MACHINES.iter().zip(RECORDS) {
        let found = find(machine, &[]);
        let runs = of_runs(machine);
        let trust = |f| trust::of(f, machine, machine, &runs);
        let firm = headlines(&found)
            .map(trust)
            .filter(|trust| trust.grade() == Grade::Firm);
        let oldest = &machine.runs.last().unwrap().0.run;
        let of_oldest = runs.iter().filter(|of| of.run == oldest);
        let alone = of_oldest.filter(|of| is_firm(&of.answer));
        let found = [firm.count(), alone.count()];
        let is_near = found
            .iter()
            .zip(documented)
            .all(|(n, of)| n.abs_diff(of) <= 2);
        assert!(is_near, "{found:?} instead of {documented:?}");
    }
}

/// The GPU of a record stands in for a machine without one. Its transform from ordinary memory was unsteady in
/// the run itself, and steady in three processes.
#[test]
fn processes_time_what_was_unsteady_in_the_run() {
    let [.., machine, _] = &*MACHINES;
    let without_gpu = machine.only(|b| b.device == Device::Cpu);
    let largest = |gpu: &MachineResults| {
        let found = find(&without_gpu, std::slice::from_ref(gpu));
        let is_it = |f: &&CrossoverAnswer| f.group == "fft" && f.question == Residency::Ordinary;
        let found = headlines(&found).find(is_it).unwrap();
        let at_it = found
            .gpu_series(gpu.group("fft").unwrap())
            .unwrap()
            .at(262_144);
        (found.crossing.largest, at_it.unwrap().clone())
    };
    let (size, unsteady) = largest(machine);
    assert!(size < 262_144.0 && unsteady.unsteady.is_some());
    let (size, confirmed) = largest(&with_confirmed_times(machine.clone()));
    assert_eq!(size, 262_144.0);
    let asked = machine
        .confirmations()
        .filter(|(run, _)| Some(*run) == unsteady.run.as_deref());
    let asked = asked.flat_map(|(_, all)| all);
    let asked =
        asked.filter(|asked| (&*asked.group, asked.question) == ("fft", Residency::Ordinary));
    let pairs = asked.flat_map(|asked| asked.processes.iter().flatten());
    let times = pairs
        .filter(|pair| pair.size == 262_144)
        .map(|pair| pair.gpu_ns);
    assert!((confirmed.median_ns / median(times).unwrap() - 1.0).abs() < 1e-9);
    let tells = |note: &String| note.starts_with("the median of 3 processes; ");
    assert!(confirmed.notes.iter().any(tells));
}
