//! How often a history has a false change and how often a planted one is found, in simulated histories.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::series::{Change, FEWEST_RUNS, judge};
use crate::tests::simulated::Random;

const RUNS: usize = 60;
/// The rule was tuned on other seeds.
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

/// A planted change: its size, and the number of runs that it takes.
type Planted = (f64, usize);
const NOTHING: Planted = (0.0, 1);

/// Every twentieth benchmark changes, each at a run of its own.
fn changes_at(benchmark: usize) -> Option<usize> {
    benchmark.is_multiple_of(20).then_some(20 + benchmark / 4)
}

type Times = Vec<Vec<Option<f64>>>;

fn simulated(machine: &Machine, (size, over): Planted, benchmarks: usize, seed: u64) -> Times {
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
            let own = match machine.is_heavy {
                true => random.student(4.0) / 2.0_f64.sqrt(),
                false => random.normal(),
            };
            let since = changes_at(benchmark).and_then(|at| (run + 1).checked_sub(at));
            let share = since.map_or(0.0, |runs| (runs as f64 / over as f64).min(1.0));
            let change = share * size.ln_1p();
            let log = layout + machine.own * own + common[run] + of_hosts[hosts[run]] + change;
            Some(1e3 * log.exp())
        });
        row.collect()
    };
    (0..benchmarks).map(row).collect()
}

/// Shares: of judged runs with a false change, of planted changes found within three runs (a slope before its end
/// and five runs), found at all, and dated within one run.
fn shares(machine: &Machine, planted: Planted, families: u64, rule: Rule) -> [f64; 4] {
    let late = if planted.1 > 1 { 34 } else { 2 };
    let count = |seed| {
        let mut false_at = BTreeSet::new();
        let mut counts = [0.0; 5];
        let times = simulated(machine, planted, 100, UNSEEN + seed);
        for (benchmark, changes) in rule(&times).iter().enumerate() {
            let Some(at) = changes_at(benchmark).filter(|_| planted != NOTHING) else {
                false_at.extend(changes.iter().map(|change| change.found_at));
                continue;
            };
            counts[1] += 1.0;
            if let Some(change) = changes.iter().find(|change| change.found_at >= at) {
                counts[2] += f64::from(u8::from(change.found_at <= at + late));
                counts[3] += 1.0;
                counts[4] += f64::from(u8::from(change.between.1.abs_diff(at) <= 1));
            }
        }
        counts[0] = false_at.len() as f64 / (RUNS - FEWEST_RUNS + 1) as f64;
        counts
    };
    let add = |a: [f64; 5], b: [f64; 5]| std::array::from_fn(|i| a[i] + b[i]);
    let counts = (0..families).into_par_iter().map(count);
    let [falsely, all, soon, found, dated] = counts.reduce(|| [0.0; 5], add);
    [
        falsely / families as f64,
        soon / all,
        found / all,
        dated / found,
    ]
    .map(|share| 100.0 * share)
}

type Rule = fn(&Times) -> Vec<Vec<Change>>;

fn ours(times: &Times) -> Vec<Vec<Change>> {
    let judged = judge(times).0.into_iter();
    judged.map(|judged| judged.changes).collect()
}

/// A change wherever a run differs by more than 5 % from the one before.
fn five_percent(times: &Times) -> Vec<Vec<Change>> {
    let of_row = |row: &Vec<Option<f64>>| {
        let far = (FEWEST_RUNS - 1..RUNS).filter_map(|run| {
            let ratio = row[run]? / row[run - 1]?;
            ((ratio - 1.0).abs() > 0.05).then_some(Change {
                between: (run - 1, run),
                found_at: run,
                ratio,
                is_slope: false,
            })
        });
        far.collect()
    };
    times.iter().map(of_row).collect()
}

#[test]
fn a_step_is_dated_and_reported_once_and_a_slope_is_found() {
    let changed = |planted| {
        let changes = ours(&simulated(&EVEN, planted, 12, 4));
        assert!(changes[1..].iter().all(Vec::is_empty), "{changes:?}");
        changes[0].clone()
    };
    let [step] = changed((0.1, 1))[..] else {
        panic!("one step");
    };
    assert_eq!((step.between, step.is_slope), ((19, 20), false));
    assert!(step.found_at <= 22, "{step:?}");
    assert!((step.ratio - 1.1).abs() < 0.02, "{step:?}");
    let slope = changed((0.05, 30));
    assert!(slope[0].found_at < 50, "{slope:?}");
    assert_eq!(changed(NOTHING), []);
}

/// All benchmarks change at once, a history has one benchmark, or each run counts the same.
#[test]
fn a_step_is_no_property_of_the_machine() {
    let found = |benchmarks: usize, size: f64| {
        let seeds = 0..20;
        let is_found = |seed: &u64| {
            let mut times = simulated(&EVEN, NOTHING, benchmarks, UNSEEN + seed);
            // A step is found soon or not at all.
            times.iter_mut().for_each(|row| row.truncate(40));
            let after = times.iter_mut().flat_map(|row| &mut row[20..]);
            after.flatten().for_each(|ns| *ns *= 1.0 + size);
            let (rows, common) = judge(&times);
            let judged = if benchmarks == 1 { &rows[0] } else { &common };
            let mut changes = judged.changes.iter();
            changes.any(|change| change.between == (19, 20))
        };
        seeds.filter(is_found).count()
    };
    for benchmarks in [1, 12] {
        let [unchanged, slower] = [0.0, 0.1].map(|size| found(benchmarks, size));
        assert!(unchanged <= 1, "{benchmarks}: {unchanged}");
        assert!(slower >= 14, "{benchmarks}: {slower}");
    }
    let count = |run| Some(if run < 20 { 1_000.0 } else { 1_001.0 });
    for benchmarks in [1, 12] {
        let mut times = vec![vec![Some(1_000.0); RUNS]; benchmarks];
        times[0] = (0..RUNS).map(count).collect();
        assert_eq!(ours(&times)[0][0].between, (19, 20));
    }
}

/// A host that is slower from some run on changes no benchmark of a run with few.
#[test]
fn runs_of_few_benchmarks_have_the_common_shift() {
    let mut times = simulated(&EVEN, NOTHING, 12, 7);
    for (at, row) in times.iter_mut().enumerate() {
        row[30..].iter_mut().flatten().for_each(|ns| *ns *= 1.2);
        if at >= 5 {
            row[40..43].fill(None);
        }
    }
    let (rows, common) = judge(&times);
    assert!(rows.iter().all(|row| row.changes.is_empty()), "{rows:?}");
    assert_eq!(common.changes.len(), 1, "{common:?}");
}

/// A run that lacks a benchmark, and too few runs, are no changes.
#[test]
fn what_was_not_run_is_no_change() {
    let mut times = simulated(&EVEN, (0.1, 1), 12, 1);
    times[0][18..21].fill(None);
    assert_eq!(ours(&times)[0][0].between, (17, 21));
    times
        .iter_mut()
        .for_each(|row| row.truncate(FEWEST_RUNS - 1));
    assert!(ours(&times).iter().all(Vec::is_empty));
    assert!(ours(&Vec::new()).is_empty());
}

/// Prints the table of docs/comparing.md.
#[test]
#[ignore = "takes minutes"]
fn histories_at_length() {
    let machines = [
        ("1 %", EVEN),
        (
            "heavy tails",
            Machine {
                is_heavy: true,
                own: 0.0087,
                layout: (0.005, 0.005),
                ..EVEN
            },
        ),
        ("0.7 to 7 %", UNEVEN),
        (
            "four hosts",
            Machine {
                hosts: 0.02,
                ..UNEVEN
            },
        ),
        (
            "layouts kept",
            Machine {
                kept: 0.8,
                ..UNEVEN
            },
        ),
    ];
    let rules: [(&str, Rule); 2] = [("ours", ours), ("5 %", five_percent)];
    for (name, machine) in machines {
        for (rule_name, rule) in rules {
            let [none, step, slope] = [NOTHING, (0.03, 1), (0.05, 30)]
                .map(|planted| shares(&machine, planted, 100, rule));
            println!("{name}, {rule_name}: none {none:.1?}, step {step:.1?}, slope {slope:.1?}");
            assert!(rule_name != "ours" || none[0] <= 1.5, "{name}: {none:?}");
        }
    }
}
