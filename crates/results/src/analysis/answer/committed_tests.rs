//! The answers of the committed records: of the first two as they were before this crate was rebuilt.

use std::fmt::Write;

use crate::analysis::answer::confirmations::{
    RunAnswer, of_confirmations, of_runs, with_confirmed_times,
};
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, find, headlines};
use crate::analysis::answer::estimate::{Crossing, FEWEST_PROCESSES};
use crate::analysis::tests::{H100, NEWEST, golden, machines};
use crate::analysis::trust::{self, Grade, Trust};
use crate::model::id::Device;
use crate::model::record::Confirmation;
use crate::model::role::Residency;
use crate::statistics::median::median;
use crate::store::machine::MachineResults;
use crossover_advice::thresholds::CrossingKind;

const RECORDS: [&str; 6] = [
    "nvidia-h200--intel-xeon-processor/20261125T022932Z--38f947a0e118.json.gz",
    "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261124T094152Z--1ed0545daaa1.json.gz",
    "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261125T214741Z--364d48c7dd10.json.gz",
    H100,
    // From here on a run asked no more processes once an answer was firm.
    "nvidia-h200--intel-xeon-processor/20261127T071356Z--814a689129d8.json.gz",
    NEWEST,
];

fn records() -> impl Iterator<Item = MachineResults> {
    RECORDS
        .map(|record| MachineResults::read_other(&machines().join(record)).unwrap())
        .into_iter()
}

/// Newer records lack them.
#[test]
fn the_shown_records_of_all_machines_have_profiles() {
    let (shown, problems) = MachineResults::read_machines(&machines());
    assert!(problems.is_empty() && shown.len() >= 2);
    assert!(shown.iter().all(|machine| !machine.profiles.is_empty()));
}

fn line(f: &CrossoverAnswer) -> (String, [f64; 6]) {
    let kind = format!("{:?}", f.crossing.answer).to_lowercase();
    let change = f.crossing.for_good().map(|c| [c.size, c.low, c.high]);
    let [size, low, high] = change.unwrap_or([0.0; 3]);
    let (slowest, fastest) = f.crossing.speedup_interval;
    let numbers = [size, low, high, f.crossing.speedup, slowest, fastest];
    (format!("{} {} {kind}", f.group, f.question.name()), numbers)
}

/// `committed.txt` has a line for each answer, below the name of its record: group, place of the data, kind, then
/// size and speedup, each with the ends of its interval.
#[test]
fn the_answers_of_the_committed_records_stay() {
    let (mut text, mut answers) = (String::new(), Vec::new());
    for (machine, record) in records().zip(RECORDS) {
        writeln!(text, "# {record}").unwrap();
        let found = find(&machine, &[]);
        for (words, numbers) in headlines(&found).map(line) {
            let written = numbers.map(|number| format!("{number:.4}")).join(" ");
            writeln!(text, "{words} {written}").unwrap();
            answers.push((words, numbers));
        }
    }
    let wanted = golden("answer/committed.txt", &text);
    let wanted: Vec<&str> = wanted.lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(wanted.len(), answers.len());
    for (wanted, (words, [size, _, _, speedup, ..])) in wanted.iter().zip(&answers) {
        let numbers = wanted.strip_prefix(words);
        let numbers = numbers.unwrap_or_else(|| panic!("{wanted}: {words}"));
        let numbers = numbers.split_whitespace();
        let ends: Vec<f64> = numbers.map(|n| n.parse().unwrap()).collect();
        assert!((ends[1]..=ends[2]).contains(size), "{wanted}: {size}");
        assert!((ends[4]..=ends[5]).contains(speedup), "{wanted}: {speedup}");
    }
}

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

/// How many crossings and speedups of one run lie where another run of the record says, of how many, and how
/// wide the intervals are.
fn coverage(answers: &[RunAnswer]) -> ([usize; 2], usize, [String; 2]) {
    let (mut held, mut all) = ([0, 0], 0);
    let (mut sizes, mut speedups) = (Vec::new(), Vec::new());
    for one in answers {
        sizes.extend(one.answer.for_good().map(|change| change.high / change.low));
        let (low, high) = one.answer.speedup_interval;
        speedups.push(high / low);
        let others = answers.iter().filter(|other| other.run != one.run);
        let question = |of: &RunAnswer| (of.asked.group.clone(), of.asked.question);
        for other in others.filter(|other| question(other) == question(one)) {
            let holds = holds(&one.answer, &other.answer).map(usize::from);
            held = [held[0] + holds[0], held[1] + holds[1]];
            all += 1;
        }
    }
    let width = |widths: Vec<f64>| format!("{:.2}", median(widths).unwrap());
    (held, all, [width(sizes), width(speedups)])
}

/// As docs/method.md has it. CPU code was faster in the first run on the first H100's host.
#[test]
fn the_intervals_of_one_run_hold_the_answers_of_another() {
    let wanted = [
        ([216, 216], 216, ["1.65", "1.43"]),
        ([188, 186], 216, ["1.94", "1.64"]),
        ([205, 213], 216, ["1.74", "1.49"]),
        ([211, 198], 216, ["1.96", "1.57"]),
        ([70, 68], 72, ["2.05", "1.43"]),
        ([213, 197], 216, ["2.03", "1.59"]),
    ];
    let wanted = wanted.map(|(held, all, widths)| (held, all, widths.map(str::to_owned)));
    let found: Vec<_> = records()
        .map(|machine| coverage(&of_runs(&machine)))
        .collect();
    assert_eq!(found, wanted);
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

/// How many answers of all runs are firm with the recorded processes, and with those of [`until_firm`]; how many
/// processes these are; and how often their intervals hold.
#[test]
fn the_first_firm_answer_is_as_good() {
    let wanted = [
        ([213, 214], ["1.72", "1.49"], [92, 96], 376),
        ([187, 159], ["1.93", "1.72"], [81, 84], 398),
        ([204, 214], ["1.83", "1.50"], [89, 93], 390),
        ([210, 200], ["1.95", "1.70"], [82, 82], 404),
    ];
    let wanted = wanted
        .map(|(held, widths, firm, processes)| (held, widths.map(str::to_owned), firm, processes));
    let found = records().take(wanted.len()).map(|machine| {
        let asked = machine.confirmations();
        let asked: Vec<_> = asked.map(|(run, all)| (run, until_firm(all))).collect();
        let answers = asked.iter().flat_map(|(run, asked)| {
            let answers = of_confirmations(asked);
            asked.iter().zip(answers).filter_map(|(asked, answer)| {
                let answer = answer?;
                Some(RunAnswer { run, asked, answer })
            })
        });
        let answers: Vec<RunAnswer> = answers.collect();
        let count = |answers: &[RunAnswer]| answers.iter().filter(|of| is_firm(&of.answer)).count();
        let firm = [count(&of_runs(&machine)), count(&answers)];
        let asked = answers.iter().map(|of| of.asked.processes.len());
        let (held, all, widths) = coverage(&answers);
        assert_eq!(all, 216);
        (held, widths, firm, asked.sum::<usize>())
    });
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

/// How many of a record's 36 answers are firm, and how many of those of its first run alone, as
/// docs/method.md has it.
#[test]
fn most_answers_of_the_committed_records_are_firm() {
    let wanted = [(31, 32), (27, 30), (28, 31), (27, 27), (29, 25), (26, 27)];
    let found = records().map(|machine| {
        let found = find(&machine, &[]);
        let runs = of_runs(&machine);
        let trust = |f| trust::of(f, &machine, &machine, &runs);
        let firm = (headlines(&found).map(trust)).filter(|trust| trust.grade() == Grade::Firm);
        let firm = firm.count();
        let oldest = &machine.runs.last().unwrap().0.run;
        let of_oldest = runs.iter().filter(|of| of.run == oldest);
        let alone = of_oldest.filter(|of| is_firm(&of.answer)).count();
        (firm, alone)
    });
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

/// The GPU of a record stands in for a machine without one. Its transform from ordinary memory was unsteady in
/// the run itself, and steady in three processes.
#[test]
fn processes_time_what_was_unsteady_in_the_run() {
    let machine = MachineResults::read_other(&machines().join(NEWEST)).unwrap();
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
    let (size, unsteady) = largest(&machine);
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
    assert!(
        confirmed
            .notes
            .iter()
            .any(|note| note.starts_with("the median of 3 processes; "))
    );
}
