//! The thresholds that a report writes, and decisions in words.

use std::fs;

use crossover_advice::Choice::{Cpu, Gpu};
use crossover_advice::thresholds::{CrossingKind, Shape, Thresholds};
use crossover_advice::{Advice, HostInfo, Question, Residency};

use crate::report::Report;
use crate::tests::committed::{commit, measured, newest, of_one_process, without_gpu};
use crate::tests::{folder, holds, report, written};
use crate::thresholds::breakpoints::breakpoints;
use crate::thresholds::{decision_in_words, thresholds};
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::store::curves::Benchmark;

fn advice(report: &Report) -> Advice {
    Advice::new(thresholds(report).unwrap()).unwrap()
}

#[test]
fn they_are_written_beside_the_page() {
    let dir = folder();
    let results = measured(&["matmul", "nested_sine"]);
    let said = written(results.clone(), dir.path()).to_string();
    holds(&said, &["\nthresholds: "]);
    let advice = Advice::open(dir.path().join("thresholds.json")).unwrap();
    let report = report(results, dir.path());
    assert_eq!(Some(advice.thresholds()), thresholds(&report).as_ref());
    let held = &advice.thresholds().machine;
    assert!(held.gpu == "NVIDIA H200" && !held.gpu_of_another_machine);
    let operations = &advice.thresholds().operations;
    let shapes = Vec::from_iter(operations.iter().map(|it| (&*it.name, it.shape)));
    let expected = [
        ("matmul", Shape::SquareProduct),
        ("nested_sine", Shape::Size),
    ];
    assert_eq!(shapes, expected);
    let queued = &operations[0].places[0];
    assert_eq!(queued.data, Residency::Queued);
    assert_eq!(queued.crossing.kind, CrossingKind::From);
    // Twice and half as large as the crossing is decided, and far from it by the ends.
    let at = queued.crossing.changes[0].size;
    for (size, choice) in [(2.0 * at, Gpu), (at / 2.0, Cpu), (1.0, Cpu), (1e6, Gpu)] {
        let question = Question::new("matmul", size).data(Residency::Queued);
        let answer = advice.decide(&question);
        assert_eq!(answer.choice, choice, "{size} {answer:?}");
    }
}

/// A later run measured one group of two.
#[test]
fn thresholds_are_as_old_as_their_oldest_result() {
    let dir = folder();
    let mut results = measured(&["matmul", "nested_sine"]);
    let mut later = newest(&mut results).clone();
    let wanted = (later.started.clone(), later.environment.commit.clone());
    let driver = later.environment.gpu.as_ref().unwrap().driver.clone();
    later.run = "later".into();
    later.started = "2030-01-02T03:04:05Z".into();
    later.environment.commit = Some("later".into());
    later.environment.gpu.as_mut().unwrap().driver = Some("later".into());
    later.confirmations.clear();
    results.runs.push(later);
    let dates = ["nested_sine", "matmul"].map(|again| {
        let of_group = results.benchmarks.iter_mut().filter(|b| b.group == again);
        of_group.for_each(|b| b.run = Some("later".into()));
        let found = thresholds(&report(results.clone(), dir.path())).unwrap();
        ((found.date, found.commit), found.machine.driver)
    });
    let later = Some("later".to_owned());
    let all = ("2030-01-02T03:04:05Z".to_owned(), later.clone());
    assert_eq!(dates, [(wanted, driver), (all, later)]);
}

/// The processes of the run measured close to the crossing and at the largest size; at 512 the run's own
/// process saw the CPU win.
#[test]
fn page_terminal_advice_and_thresholds_know_a_size_that_the_cpu_wins_above_the_crossing() {
    let dir = folder();
    let mut results = measured(&["matmul"]);
    let is_slow = |b: &&mut Benchmark| b.id.contains("/gpu/") && [512, 2048].contains(&b.size);
    for benchmark in results.benchmarks.iter_mut().filter(is_slow) {
        let (low, high) = benchmark.interval_ns.unwrap();
        benchmark.median_ns *= 1e3;
        benchmark.interval_ns = Some((1e3 * low, 1e3 * high));
    }
    let said = written(results.clone(), dir.path());
    holds(&said.to_string(), &["N ≥ 762, 32× faster"]);
    let advice = advice(&report(results, dir.path()));
    let matmul = &advice.thresholds().operations[0];
    assert_eq!(matmul.places[0].crossing.kind, CrossingKind::BothWays);
    let (topic, crossing) = decision_in_words::answer(matmul, &matmul.places[0]);
    let words = answer_in_words::wins(&topic, &crossing);
    let (changes, rest) = words.split_once(" on; ").unwrap();
    holds(changes, &["from N = ", ", until N = ", ", from N = "]);
    holds(&said.pages(), &[changes, rest]);
    let at = |size: u64| {
        let question = Question::new("matmul", size).data(Residency::Queued);
        advice.decide(&question).choice
    };
    let choices = [8, 256, 512, 1024, 2048].map(at);
    assert_eq!(choices, [Cpu, Gpu, Cpu, Gpu, Gpu]);
}

/// The GPU code of a group without processes was measured at every second size of the CPU's.
#[test]
fn a_time_between_two_sizes_has_an_interval_that_knows_it() {
    let dir = folder();
    let mut results = of_one_process(&["nested_sine"]);
    let points = |thresholds: &Thresholds| thresholds.operations[0].places[0].points.clone();
    let all = thresholds(&report(results.clone(), dir.path())).unwrap();
    let left_out = [1 << 16, 1 << 20, 1 << 24];
    results
        .benchmarks
        .retain(|b| !b.id.contains("/gpu/") || !left_out.contains(&b.size));
    let report = report(results, dir.path());
    let some = thresholds(&report).unwrap();
    assert_eq!(
        all.operations[0].places[0].gpu,
        some.operations[0].places[0].gpu
    );
    let mut seen = 0;
    for point in points(&some) {
        let is_measured = !left_out.contains(&(point.size as u64));
        assert_eq!(point.processes, usize::from(is_measured), "{point:?}");
        let all = points(&all);
        let truth = all.iter().find(|at| at.size == point.size).unwrap();
        let truth = truth.cpu_ns / truth.gpu_ns;
        let interval = point.low..=point.high;
        assert!(interval.contains(&truth), "{truth} {point:?}");
        seen += usize::from(!is_measured);
    }
    assert_eq!(seen, left_out.len());
}

#[test]
fn a_machine_without_a_gpu_compares_its_cpu_with_the_gpu_of_the_reference() {
    let dir = folder();
    let mut slow = without_gpu(&["matmul"]);
    for benchmark in &mut slow.benchmarks {
        benchmark.median_ns *= 3.0;
        let (low, high) = benchmark.interval_ns.unwrap();
        benchmark.interval_ns = Some((3.0 * low, 3.0 * high));
    }
    let alone = written(slow.clone(), dir.path());
    assert!(!alone.to_string().contains("thresholds"), "{alone}");
    assert!(!fs::exists(dir.path().join("thresholds.json")).unwrap());

    commit(measured(&["matmul"]), dir.path());
    let slow = advice(&report(slow, dir.path()));
    assert!(slow.thresholds().machine.gpu_of_another_machine);
    let whose = decision_in_words::holds_for(slow.thresholds());
    holds(&whose, &["NVIDIA H200 of another machine"]);
    let question = Question::new("matmul", 1024).data(Residency::Pinned);
    // As the page says it, although the thresholds are not of this machine alone.
    let mut here = HostInfo::default();
    here.cpu = Some(slow.thresholds().machine.cpu.clone());
    let checked = slow.clone().check(&here);
    let said = decision_in_words::measured(&checked, &slow.thresholds().operations[0], &question);
    holds(&said, &[": with an NVIDIA H200 this would be ", "× faster"]);
    let cpu = |advice: &Advice| advice.decide(&question).estimate.unwrap().cpu_ns;
    let fast = without_gpu(&["matmul"]);
    let slower = cpu(&slow) / cpu(&advice(&report(fast, dir.path())));
    assert!((2.9..3.1).contains(&slower), "{slower}");
}

#[test]
fn a_decision_in_words_has_its_ratio_both_times_and_where_it_turns() {
    let dir = folder();
    let mut thresholds = thresholds(&report(measured(&["matmul"]), dir.path())).unwrap();
    thresholds.operations[0].first_call_ns = Some(1e9);
    let advice = Advice::new(thresholds).unwrap();
    let matmul = &advice.thresholds().operations[0];
    let said = |question: &Question| decision_in_words::measured(&advice, matmul, question);
    let far = said(&Question::new("matmul", 2048).data(Residency::Queued));
    let first = "matmul, N = 2,048, on the device, a queue of calls: use the GPU; it is ";
    assert!(far.starts_with(first), "{far}");
    let basis = "nearest to its compute limit)\nbasis: measured at this size\n";
    holds(
        &far,
        &["× faster (", basis, "one call: the GPU wins: from N = "],
    );
    let often = said(&Question::new("matmul", 2048).reuse(5).cold());
    let together = "\nall calls together, with the start of the process on the GPU: CPU ";
    holds(&often, &[together]);
    let near = said(&Question::new("matmul", 16));
    holds(&near, &["stay on the CPU", "\nmoved once and used often: "]);
}

#[test]
fn stored_answers_and_breakpoints_are_the_decisions() {
    let dir = folder();
    let advice = advice(&report(measured(&["matmul"]), dir.path()));
    let operations = advice.thresholds().operations.iter();
    let places = operations.flat_map(|of| of.places.iter().map(|place| (&of.name, place)));
    for (name, place) in places {
        assert!(place.answers.len() >= 2, "{:?}", place.answers);
        let question = |size: u64| Question::new(name, size).data(place.data);
        let found = breakpoints(&advice, &question(1));
        // Each measured size and its neighbours, and few between them.
        assert!(found.len() < 80, "{}", found.len());
        for size in (1..=2100u64).chain([9_999]) {
            let mut stored = place.answers.iter();
            let stored = stored.rfind(|answer| answer.from <= size as f64).unwrap();
            let answer = advice.decide(&question(size));
            assert_eq!(answer.choice, stored.choice, "{size}");
            if size > 2048 {
                continue;
            }
            let at = found.partition_point(|point| point.size <= size) - 1;
            let (from, to) = (&found[at], found.get(at + 1).unwrap_or(&found[at]));
            assert_eq!(answer.choice, from.choice, "{size}");
            let log = |to: u64| (to as f64 / from.size as f64).ln();
            let is_last = at + 1 == found.len();
            let share = if is_last {
                0.0
            } else {
                log(size) / log(to.size)
            };
            let here = answer.estimate.unwrap();
            let here = [here.speedup, here.low, here.high];
            let ends = from.speedups().into_iter().zip(to.speedups());
            for (here, (from, to)) in here.into_iter().zip(ends) {
                let line = from * (to / from).powf(share);
                assert!((here / line - 1.0).abs() < 0.01, "{size}: {here}, {line}");
            }
        }
    }
}

/// Without the times on the device, or with the start of a process that was not measured.
#[test]
fn an_unknown_number_of_uses_is_not_none() {
    let dir = folder();
    let all = thresholds(&report(measured(&["matmul"]), dir.path())).unwrap();
    let uses = |thresholds: Thresholds, question: Question| {
        let advice = Advice::new(thresholds).unwrap();
        let matmul = &advice.thresholds().operations[0];
        let said = decision_in_words::measured(&advice, matmul, &question);
        let mut lines = said.lines();
        let line = lines.find(|line| line.starts_with("moved once"));
        line.unwrap_or(&said).to_owned()
    };
    let small = Question::new("matmul", 16);
    let never = "moved once and used often: the GPU wins at no number of uses";
    assert_eq!(uses(all.clone(), small), never);
    let mut moved = all.clone();
    moved.operations[0]
        .places
        .retain(|place| !place.data.on_device());
    let unknown = "from an unknown number of uses on; ";
    let reason = "not measured with its data on the device";
    holds(&uses(moved, small), &[unknown, reason]);
    let mut warm = all.clone();
    warm.operations[0].first_call_ns = None;
    let said = uses(warm, Question::new("matmul", 2048).cold());
    holds(&said, &[unknown, "what the first call costs was not"]);
    // The GPU wins each call, and sooner or later the start of the process has paid.
    let mut cold = all;
    cold.operations[0].first_call_ns = Some(1e15);
    let said = uses(cold, Question::new("matmul", 2048).cold());
    holds(&said, &["the GPU wins from ", " uses on"]);
}
