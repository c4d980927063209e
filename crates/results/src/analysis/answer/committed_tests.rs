//! The answers of the committed records: of the first two as they were before this crate was rebuilt.

use std::fmt::Write;

use crate::analysis::answer::crossover_answer::{
    CrossoverAnswer, RunAnswer, find, headlines, of_runs,
};
use crate::analysis::answer::estimate::Crossing;
use crate::analysis::answer::kind::Answer;
use crate::analysis::tests::{NEWEST, golden, machines};
use crate::analysis::trust::{self, Grade, Trust};
use crate::statistics::median::median;
use crate::store::machine::MachineResults;

/// The records, each with the file of its answers, a line each: group, place of the data, kind, then size and
/// speedup, each with the ends of its interval.
const RECORDS: [(&str, &str); 4] = [
    (
        "nvidia-h200--intel-xeon-processor/20261125T022932Z--38f947a0e118.json.gz",
        "answer/committed/h200.txt",
    ),
    (
        "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261124T094152Z--1ed0545daaa1.json.gz",
        "answer/committed/h100.txt",
    ),
    (
        "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261125T214741Z--364d48c7dd10.json.gz",
        "answer/committed/h100-newer.txt",
    ),
    (NEWEST, "answer/committed/h100-newest.txt"),
];

fn records() -> impl Iterator<Item = MachineResults> {
    RECORDS
        .map(|(record, _)| MachineResults::read_other(&machines().join(record)).unwrap())
        .into_iter()
}

fn line(f: &CrossoverAnswer) -> (String, [f64; 6]) {
    let kind = format!("{:?}", f.crossing.answer).to_lowercase();
    let change = f.crossing.for_good().map(|c| [c.size, c.low, c.high]);
    let [size, low, high] = change.unwrap_or([0.0; 3]);
    let (slowest, fastest) = f.crossing.speedup_interval;
    let numbers = [size, low, high, f.crossing.speedup, slowest, fastest];
    (format!("{} {} {kind}", f.group, f.question.name()), numbers)
}

#[test]
fn the_answers_of_the_committed_records_stay() {
    for (machine, (_, file)) in records().zip(RECORDS) {
        let found = find(&machine, &[]);
        let answers: Vec<_> = headlines(&found).map(line).collect();
        let mut text = String::new();
        for (words, numbers) in &answers {
            let numbers = numbers.map(|number| format!("{number:.4}")).join(" ");
            writeln!(text, "{words} {numbers}").unwrap();
        }
        let wanted = golden(file, &text);
        assert_eq!(wanted.lines().count(), answers.len());
        for (wanted, (words, [size, _, _, speedup, ..])) in wanted.lines().zip(&answers) {
            let numbers = wanted.strip_prefix(words);
            let numbers = numbers.unwrap_or_else(|| panic!("{wanted}: {words}"));
            let numbers = numbers.split_whitespace();
            let ends: Vec<f64> = numbers.map(|n| n.parse().unwrap()).collect();
            assert!((ends[1]..=ends[2]).contains(size), "{wanted}: {size}");
            assert!((ends[4]..=ends[5]).contains(speedup), "{wanted}: {speedup}");
        }
    }
}

/// Whether the answer of another run lies in the intervals of this one.
fn holds(own: &Crossing, other: &Crossing) -> bool {
    let same = match (own.for_good(), other.for_good()) {
        (Some(own), Some(other)) => (own.low..=own.high).contains(&other.size),
        (Some(_), None) => match other.answer {
            Answer::Always => own.or_always,
            Answer::Never => own.or_never,
            _ => false,
        },
        (None, _) => own.answer == other.answer,
    };
    let (low, high) = own.speedup_interval;
    same && (low..=high).contains(&other.speedup)
}

/// How many answers of one run lie where another run of the record says, and how wide the intervals
/// are. CPU code was faster in the first run on the first H100's host.
#[test]
fn the_intervals_of_one_run_hold_the_answers_of_another() {
    let wanted = [
        (0.9, 1.72, 1.45),
        (0.7, 1.91, 1.65),
        (0.9, 1.72, 1.5),
        (0.9, 1.99, 1.54),
    ];
    for (machine, (share, of_sizes, of_speedups)) in records().zip(wanted) {
        let answers = of_runs(&machine);
        let (mut held, mut all) = (0.0, 0.0);
        let (mut sizes, mut speedups) = (Vec::new(), Vec::new());
        for one in &answers {
            sizes.extend(one.answer.for_good().map(|change| change.high / change.low));
            let (low, high) = one.answer.speedup_interval;
            speedups.push(high / low);
            let others = answers.iter().filter(|other| other.run != one.run);
            let question = |of: &RunAnswer| (of.asked.group.clone(), of.asked.question);
            for other in others.filter(|other| question(other) == question(one)) {
                held += f64::from(u8::from(holds(&one.answer, &other.answer)));
                all += 1.0;
            }
        }
        assert!(all == 240.0 && held / all >= share, "{held} of {all}");
        let widths = [sizes, speedups].map(|widths| median(widths).unwrap());
        let narrow = widths[0] <= of_sizes && widths[1] <= of_speedups;
        assert!(narrow, "{widths:?}");
    }
}

/// How many of a record's 40 answers are firm, and how many of those of its first run alone.
#[test]
fn most_answers_of_the_committed_records_are_firm() {
    for (machine, wanted) in records().zip([(30, 30), (29, 30), (30, 30), (29, 28)]) {
        let found = find(&machine, &[]);
        let runs = of_runs(&machine);
        let trust = |f| trust::of(f, &machine, &machine, &runs);
        let is_firm = |trust: &Trust| trust.grade() == Grade::Firm;
        let firm = headlines(&found).map(trust).filter(is_firm).count();
        let oldest = &machine.runs.last().unwrap().0.run;
        let of_oldest = runs.iter().filter(|of| of.run == oldest);
        let alone = of_oldest.map(|of| Trust::of_estimate(&of.answer));
        let alone = alone.filter(is_firm).count();
        assert!(firm >= wanted.0 && alone >= wanted.1, "{firm}, {alone}");
    }
}
