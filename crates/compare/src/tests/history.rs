//! How often a history has a false change and how often a planted one is found, in simulated histories.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::history::{Change, FEWEST_RUNS, judge};
use crate::tests::simulated::Random;

const RUNS: usize = 60;
const BENCHMARKS: usize = 100;
/// The rule was tuned on smaller seeds.
const UNSEEN: u64 = 1_000;

/// How runs of unchanged code differ, as standard deviations.
#[derive(Clone, Copy)]
struct Machine {
    /// Between days, each benchmark on its own.
    own: f64,
    /// Between days, all benchmarks alike.
    common: f64,
    /// Between the layouts of two commits: of the least and of the most sensitive benchmark.
    layout: (f64, f64),
    /// Probability that a commit keeps the layout of the one before it.
    kept: f64,
    /// Between hosts, one of which each run gets.
    hosts: f64,
    /// Whether the days have heavy tails (Student's t with four degrees of freedom).
    is_heavy: bool,
}

const EVEN: Machine = Machine {
    own: 0.005,
    common: 0.01,
    layout: (0.00866, 0.00866),
    kept: 0.0,
    hosts: 0.0,
    is_heavy: false,
};
const UNEVEN: Machine = Machine {
    layout: (0.005, 0.07),
    ..EVEN
};
const HEAVY: Machine = Machine {
    is_heavy: true,
    own: 0.0087,
    layout: (0.005, 0.005),
    ..EVEN
};
const KEPT: Machine = Machine {
    kept: 0.8,
    ..UNEVEN
};
const HOSTS: Machine = Machine {
    hosts: 0.02,
    ..UNEVEN
};

#[derive(Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    /// A step of this size.
    Step(f64),
    /// A slope over thirty runs.
    Slope(f64),
}

/// Every twentieth benchmark changes, each at a run of its own.
fn changes_at(benchmark: usize) -> Option<usize> {
    benchmark.is_multiple_of(20).then_some(20 + benchmark / 4)
}

type Times = Vec<Vec<Option<f64>>>;

fn simulated(machine: &Machine, planted: Planted, benchmarks: usize, seed: u64) -> Times {
    let mut random = Random::seeded(seed);
    let common: Vec<f64> = (0..RUNS)
        .map(|_| machine.common * random.normal())
        .collect();
    let hosts: Vec<usize> = (0..RUNS)
        .map(|_| (4.0 * random.uniform()) as usize)
        .collect();
    let row = |benchmark: usize| {
        let (low, high) = machine.layout;
        let sensitive = low * (high / low).powf(random.uniform());
        let of_hosts: Vec<f64> = (0..4).map(|_| machine.hosts * random.normal()).collect();
        let mut layout = 0.0;
        let row = (0..RUNS).map(|run| {
            if run == 0 || random.uniform() >= machine.kept {
                layout = sensitive * random.normal();
            }
            let mut own = random.normal();
            if machine.is_heavy {
                let squares: f64 = (0..4).map(|_| random.normal().powi(2)).sum();
                own *= (2.0 / squares).sqrt();
            }
            let at = changes_at(benchmark).filter(|at| run >= *at);
            let change = match (planted, at) {
                (Planted::Step(step), Some(_)) => step.ln_1p(),
                (Planted::Slope(rise), Some(at)) => {
                    rise.ln_1p() * ((run - at + 1) as f64 / 30.0).min(1.0)
                }
                _ => 0.0,
            };
            let log = layout + machine.own * own + common[run] + of_hosts[hosts[run]] + change;
            Some(1e3 * log.exp())
        });
        row.collect()
    };
    (0..benchmarks).map(row).collect()
}

/// Shares: of judged runs with a false change, of planted changes found within three runs (a slope before its end
/// and five runs), found at all, and dated within one run.
fn shares(
    machine: &Machine,
    planted: Planted,
    benchmarks: usize,
    families: u64,
    rule: impl Fn(&Times) -> Vec<Vec<Change>> + Sync,
) -> [f64; 4] {
    let counts = (0..families).into_par_iter().map(|seed| {
        let times = simulated(machine, planted, benchmarks, UNSEEN + seed);
        let mut false_at = BTreeSet::new();
        let mut counts = [0.0; 5];
        for (benchmark, changes) in rule(&times).iter().enumerate() {
            let at = changes_at(benchmark).filter(|_| planted != Planted::Nothing);
            let late = if matches!(planted, Planted::Slope(_)) {
                34
            } else {
                2
            };
            let true_one = at.and_then(|at| {
                changes
                    .iter()
                    .find(|change| change.found_at >= at)
                    .map(|c| (at, c))
            });
            if at.is_none() {
                false_at.extend(changes.iter().map(|change| change.found_at));
            }
            counts[1] += f64::from(u8::from(at.is_some()));
            if let Some((at, change)) = true_one {
                let is_soon = change.found_at <= at + late;
                let is_near = change.between.1.abs_diff(at) <= 1;
                counts[2] += f64::from(u8::from(is_soon));
                counts[3] += 1.0;
                counts[4] += f64::from(u8::from(is_near));
            }
        }
        counts[0] = false_at.len() as f64 / (RUNS - FEWEST_RUNS + 1) as f64;
        counts
    });
    let add = |a: [f64; 5], b: [f64; 5]| std::array::from_fn(|i| a[i] + b[i]);
    let sum: [f64; 5] = counts.reduce(|| [0.0; 5], add);
    [
        sum[0] / families as f64,
        sum[2] / sum[1],
        sum[3] / sum[1],
        sum[4] / sum[3],
    ]
}

fn ours(times: &Times) -> Vec<Vec<Change>> {
    judge(times)
        .0
        .into_iter()
        .map(|judged| judged.changes)
        .collect()
}

/// A change wherever the newest run is far from the runs before it.
fn other_rule(times: &Times, is_far: impl Fn(&[f64], f64) -> bool) -> Vec<Vec<Change>> {
    let of_row = |row: &Vec<Option<f64>>| {
        let row: Vec<f64> = row.iter().flatten().copied().collect();
        let far = (FEWEST_RUNS - 1..row.len()).filter(|run| is_far(&row[..*run], row[*run]));
        let change = |run| Change {
            between: (run - 1, run),
            found_at: run,
            ratio: 1.0,
            is_slope: false,
        };
        far.map(change).collect()
    };
    times.iter().map(of_row).collect()
}

/// The default of github-action-benchmark is a factor of 2; 5 % is what many projects set.
fn five_percent(times: &Times) -> Vec<Vec<Change>> {
    other_rule(times, |before, new| {
        (new / before[before.len() - 1] - 1.0).abs() > 0.05
    })
}

/// Three standard deviations from the mean of the runs before.
fn three_deviations(times: &Times) -> Vec<Vec<Change>> {
    other_rule(times, |before, new| {
        let spread = crossover_results::statistics::between_processes::Spread::of(before);
        let middle = before.iter().sum::<f64>() / before.len() as f64;
        (new - middle).abs() > 3.0 * spread.variance().unwrap_or_default().sqrt()
    })
}

#[test]
fn a_step_is_dated_and_reported_once_and_a_slope_is_found() {
    let changed = |planted| {
        let times = simulated(&EVEN, planted, 12, 1);
        let changes = ours(&times);
        assert!(changes[1..].iter().all(Vec::is_empty), "{changes:?}");
        changes[0].clone()
    };
    let [step] = changed(Planted::Step(0.1))[..] else {
        panic!("one step");
    };
    assert_eq!((step.between, step.is_slope), ((19, 20), false));
    assert!(
        step.found_at <= 22 && (step.ratio - 1.1).abs() < 0.02,
        "{step:?}"
    );
    let slope = changed(Planted::Slope(0.05));
    assert!(slope[0].found_at < 50, "{slope:?}");
    assert_eq!(changed(Planted::Nothing), []);
}

/// A run that lacks a benchmark, and too few runs, are no changes.
#[test]
fn what_was_not_run_is_no_change() {
    let mut times = simulated(&EVEN, Planted::Step(0.1), 12, 1);
    times[0][18..21].fill(None);
    assert_eq!(ours(&times)[0][0].between, (17, 21));
    times
        .iter_mut()
        .for_each(|row| row.truncate(FEWEST_RUNS - 1));
    assert!(ours(&times).iter().all(Vec::is_empty));
    assert!(ours(&Vec::new()).is_empty());
}

type Rule = fn(&Times) -> Vec<Vec<Change>>;

/// Prints the table of docs/comparing.md.
#[test]
#[ignore = "takes minutes"]
fn histories_at_length() {
    let machines = [
        ("1 %", EVEN),
        ("0.7 to 7 %", UNEVEN),
        ("heavy tails", HEAVY),
        ("four hosts", HOSTS),
        ("layouts kept", KEPT),
    ];
    let rules: [(&str, Rule); 3] = [
        ("ours", ours),
        ("5 %", five_percent),
        ("3 deviations", three_deviations),
    ];
    for (name, machine) in machines {
        for (rule, of) in rules {
            let row =
                |planted| shares(&machine, planted, BENCHMARKS, 100, of).map(|share| 100.0 * share);
            let [none, step, slope] =
                [Planted::Nothing, Planted::Step(0.03), Planted::Slope(0.05)].map(row);
            println!("{name}, {rule}: none {none:.1?}, step {step:.1?}, slope {slope:.1?}");
            assert!(rule != "ours" || none[0] <= 1.5, "{name}: {none:?}");
        }
    }
}
