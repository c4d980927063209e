//! The thresholds that a report writes, and decisions in words.

use crate::tests::holds;
use std::fs;

use crossover_advice::thresholds::{Kind, Shape};
use crossover_advice::{Advice, Choice, Question, Residency};

use super::fixture::Fixture;
use super::machines::{commit, full, laptop, powers};
use crate::report::{Options, read};
use crate::thresholds::{decision_in_words, thresholds};
use crate::write;
use crossover_results::model::cost::Cost;
use crossover_words::Clock;

fn advice(report: &crate::report::Report) -> Advice {
    Advice::new(thresholds(report).unwrap()).unwrap()
}

#[test]
fn they_are_written_beside_the_page() {
    let (dir, root) = crate::tests::folders();
    full(&root, "Example GPU");
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    assert!(written.to_string().contains("\nthresholds: "), "{written}");
    let advice = Advice::open(dir.path().join("thresholds.json")).unwrap();
    let report = read(&root, dir.path(), &Options::default()).unwrap();
    assert_eq!(Some(advice.thresholds()), thresholds(&report).as_ref());
    let held = &advice.thresholds().machine;
    assert_eq!(
        (held.gpu.as_str(), held.gpu_of_another_machine),
        ("Example GPU", false)
    );

    let matmul = &advice.thresholds().operations[0];
    assert_eq!(
        (matmul.name.as_str(), matmul.shape),
        ("matmul", Shape::SquareProduct)
    );
    let queued = &matmul.places[0];
    assert_eq!(
        (queued.data, queued.crossing.kind),
        (Residency::Queued, Kind::From)
    );
    // Twice and half as large as the crossing is decided, and far from it by the ends.
    let at = queued.crossing.changes[0].size;
    for (size, choice) in [
        (2.0 * at, Choice::Gpu),
        (at / 2.0, Choice::Cpu),
        (1.0, Choice::Cpu),
        (1e6, Choice::Gpu),
    ] {
        let question = Question::new("matmul", size).data(Residency::Queued);
        let answer = advice.decide(&question);
        assert_eq!(answer.choice, choice, "{size} {answer:?}");
    }
    let sine = advice
        .thresholds()
        .operations
        .iter()
        .find(|o| o.name == "nested_sine")
        .unwrap();
    assert_eq!(sine.shape, Shape::Size);
}

/// An operation of a user's own, whose GPU code was measured at every third size of the CPU's.
#[test]
fn a_time_between_two_sizes_has_an_interval_that_knows_it() {
    let (dir, root) = crate::tests::folders();
    let fixture = Fixture::new(&root, Some("Example GPU"));
    let cost = |_| Cost::default();
    let cpu = |n: f64| 10.0 * n * n;
    let gpu = |n: f64| 1e4 + n * n;
    fixture.curve("op/cpu/a", Clock::Wall, &powers(3, 12, 1), cpu, cost);
    let measured = powers(3, 12, 3);
    fixture.curve("op/gpu/b", Clock::Events, &measured, gpu, cost);
    let report = read(&root, dir.path(), &Options::default()).unwrap();
    let thresholds = thresholds(&report).unwrap();
    let points = &thresholds.operations[0].places[0].points;
    let sizes: Vec<u64> = points.iter().map(|point| point.size as u64).collect();
    assert_eq!(sizes, powers(3, 12, 1));
    for point in points {
        let is_measured = measured.contains(&(point.size as u64));
        assert_eq!(point.processes, usize::from(is_measured), "{point:?}");
        let truth = cpu(point.size) / gpu(point.size);
        assert!(
            (point.low..=point.high).contains(&truth),
            "{truth} {point:?}"
        );
    }
    let advice = advice(&report);
    let asked = Question::new("op", 1000).data(Residency::Queued);
    let said = decision_in_words::measured(&advice, &thresholds.operations[0], &asked);
    let verdict = "op, size = 1,000, on the device, a queue of calls: use the GPU; it is ";
    assert!(said.starts_with(verdict), "{said}");
}

#[test]
fn without_answers_there_are_none() {
    let (dir, root) = crate::tests::folders();
    laptop(&root);
    let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
    assert!(!written.to_string().contains("thresholds"), "{written}");
    assert!(!fs::exists(dir.path().join("thresholds.json")).unwrap());
}

#[test]
fn a_laptop_has_its_own_cpu_against_the_gpu_of_the_reference() {
    let (dir, root) = crate::tests::folders();
    laptop(&root);
    commit(dir.path(), |root| full(root, "Example GPU"));
    let report = read(&root, dir.path(), &Options::default()).unwrap();
    let laptop = advice(&report);
    assert!(laptop.thresholds().machine.gpu_of_another_machine);
    assert!(
        decision_in_words::holds_for(laptop.thresholds())
            .contains("Example GPU of another machine")
    );
    let cpu = |advice: &Advice| {
        advice
            .decide(&Question::new("matmul", 1024).data(Residency::Queued))
            .estimate
            .unwrap()
            .cpu_ns
    };
    let none = dir.path().join("none");
    let alone = read(&none, dir.path(), &Options::default()).unwrap();
    let slower = cpu(&laptop) / cpu(&advice(&alone));
    assert!((2.9..3.1).contains(&slower), "{slower}");
}

#[test]
fn a_decision_in_words_has_its_ratio_both_times_and_where_it_turns() {
    let (dir, root) = crate::tests::folders();
    full(&root, "Example GPU");
    let report = read(&root, dir.path(), &Options::default()).unwrap();
    let advice = advice(&report);
    let matmul = &advice.thresholds().operations[0];
    let said = |question: &Question| decision_in_words::measured(&advice, matmul, question);
    let far = said(&Question::new("matmul", 4096).data(Residency::Queued));
    let begin = [
        "matmul, N = 4,096, on the device, a queue of calls: use the GPU; it is ",
        "CPU ",
        "basis: measured at this size",
        "one call: the GPU wins from N = ",
    ];
    for (line, begin) in far.lines().zip(begin) {
        assert!(line.starts_with(begin), "{line}");
    }
    assert!(far.lines().count() >= begin.len(), "{far}");
    holds(
        &far,
        &["× faster (", "; GPU ", "nearest to its compute limit"],
    );
    let near = said(&Question::new("matmul", 16));
    holds(
        &near,
        &[
            "stay on the CPU",
            "\nmoved once and used often: the GPU wins ",
        ],
    );
}
