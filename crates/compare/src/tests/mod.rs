//! How often a verdict is false and how often a true change is found, in simulated comparisons with
//! known truth.

mod history;
mod launched;
pub(crate) mod simulated;

use std::ops::Range;

use crate::case::{Case, Median, RunPair};
use crate::judge::{Judged, judge};
use crate::tests::simulated::{
    EVENTS, GATED, Machine, Noise, Random, SHARED, SHORT, Simulated, Tally, WALL, compare, tally,
    tally_of, truths,
};
use crate::verdict::{Location, Options, THRESHOLD, TOO_FEW, Verdict};
use crossover_results::model::id::Device;
use crossover_results::statistics::between_processes::Class;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::sampled::Sampled;
use crossover_words::Clock;

/// A run of benchmarks without sidecars.
pub(super) fn planted(samples: impl IntoIterator<Item = (String, Vec<f64>)>) -> Baseline {
    let sampled = |(id, ns)| {
        let default = Sampled::default();
        (id, Sampled { ns, ..default })
    };
    let mut run = Baseline::default();
    run.results = samples.into_iter().map(sampled).collect();
    run
}

/// A benchmark of 100 ns, with these rounds and the times that `new` gives for them.
pub(crate) fn case_of(device: Device, rounds: Range<usize>, new: impl Fn(usize) -> f64) -> Case {
    let median = |ns| Median::of(Location::Median, &[ns; 5]).expect("sound times");
    let pairs = rounds.map(|round| RunPair::new(round, median(100.0), median(new(round))));
    Case::new(Class::of(Some(device), None, 1e3, None), pairs.collect())
}

/// Every twentieth benchmark truly changes.
const CHANGED: usize = 20;

/// The machines that must not cause false verdicts, each in the ways in which pairs of processes are run
/// there.
fn machines() -> Vec<(String, Machine)> {
    let ten = |m: Machine| Machine { samples: 10, ..m };
    let noisy = |noise, m: Machine| Machine { noise, ..m };
    let busy = |busy, m: Machine| Machine { busy, ..m };
    let uneven = Machine {
        drift: 0.003,
        unlike: 0.5,
        ..GATED
    };
    let few = Machine {
        common: 0.01,
        ..ten(WALL)
    };
    let interrupted = noisy(Noise::Interrupted(0.7), SHORT);
    let ordered = Machine {
        drift: 0.003,
        orders: 0.13,
        ..SHORT
    };
    let following = noisy(Noise::Following, EVENTS);
    let outliers = noisy(Noise::Outliers(0.1), WALL);
    let (seldom, at_times) = (busy(0.01, SHARED), busy(0.05, SHARED));
    let loaded = busy(0.1, interrupted);
    let machines: [(&str, Machine, &str); 15] = [
        ("gated", GATED, "one pair, two pairs, turns"),
        ("gated, ten samples", ten(GATED), "one pair"),
        ("gated, uneven drift", uneven, "one pair, two pairs, turns"),
        ("events", EVENTS, "one pair, turns"),
        (
            "events, samples follow each other",
            following,
            "one pair, two pairs",
        ),
        ("wall, heavy tails", WALL, "one pair, two pairs, turns"),
        ("wall, outliers", outliers, "one pair, two pairs"),
        (
            "wall, ten samples, common drift",
            few,
            "one pair, two pairs, turns",
        ),
        ("shared host, seldom busy", seldom, "two pairs, turns"),
        ("shared host, at times busy", at_times, "two pairs, turns"),
        ("shared host", SHARED, "two pairs, eight pairs, turns"),
        ("short processes", SHORT, "quiet"),
        ("short processes, orders of functions", ordered, "quiet"),
        ("short processes, interrupted", interrupted, "quiet"),
        ("short processes, interrupted", loaded, "at times busy"),
    ];
    let run = |m: Machine, way: &str| match way {
        "two pairs" => Machine { pairs: 2, ..m },
        "eight pairs" => Machine { pairs: 8, ..m },
        "turns" => Machine {
            pairs: 14,
            screened: 2,
            ..m
        },
        _ => m,
    };
    let each = |(name, m, ways): (&'static str, Machine, &'static str)| {
        let ways = ways.split(", ");
        ways.map(move |way| (format!("{name}, {way}"), run(m, way)))
    };
    machines.into_iter().flat_map(each).collect()
}

/// So many comparisons of each machine where nothing changed, and where some benchmarks did.
fn no_false_verdicts(comparisons: usize) {
    let (mut of_nothing, mut of_some) = (Tally::default(), Tally::default());
    println!("machine | false where nothing changed | false share | 3 % found | called the same");
    for (name, m) in machines() {
        let nothing = tally(&m, comparisons, 1.0, 1);
        let some = tally(&m, comparisons, 1.03, CHANGED);
        println!(
            "{name} | {:.2} % | {:.2} % | {:.0} % | {:.0} %",
            100.0 * nothing.false_families as f64 / comparisons as f64,
            100.0 * some.false_rate(),
            100.0 * some.power(),
            100.0 * some.same as f64 / some.unchanged as f64,
        );
        // Of a few comparisons, one weighs much.
        assert!(
            nothing.false_families * 100 <= 3 * comparisons + 100,
            "{name}: {nothing:?}"
        );
        // Of a few comparisons, one with a single verdict and that one false weighs much.
        let allowed = 0.02 + 1.0 / comparisons as f64;
        assert!(some.false_rate() <= allowed, "{name}: {some:?}");
        assert!(some.missed * 100 <= some.changed, "{name}: {some:?}");
        of_nothing.add(&nothing);
        of_some.add(&some);
    }
    let is_rare = of_nothing.false_families * 100 <= of_nothing.families;
    assert!(is_rare, "{of_nothing:?}");
    assert!(of_some.false_rate() <= 0.02, "{of_some:?}");
}

#[test]
fn verdicts_are_rarely_false() {
    no_false_verdicts(1);
}

#[test]
#[ignore = "takes minutes: the simulations with 500 comparisons of each kind"]
fn verdicts_at_length() {
    no_false_verdicts(500);
    one_pair_finds_what_stands_out(500);
    launched::launch_constants(500);
}

/// Kinds of results: the machine, the change, the number of benchmarks for each changed one, and the least share of
/// the changes that is found.
fn pairs_of_baselines() -> [(&'static str, Machine, f64, usize, f64); 6] {
    let wall = |spread, drift| Machine {
        spread: (spread, 0.0),
        drift,
        noise: Noise::Normal,
        unlike: 0.0,
        common: 0.0,
        ..WALL
    };
    let plain = Machine {
        clock: None,
        spread: (0.001, 0.004),
        noise: Noise::Outliers(0.04),
        ..wall(0.0, 0.003)
    };
    let gpu = Machine {
        device: Device::Gpu,
        ..plain
    };
    // Few changes are found there, and few outliers are taken for one.
    let loaded = Machine {
        is_loaded: true,
        noise: Noise::Heavy,
        ..wall(0.002, 0.07)
    };
    const MOST: f64 = 11.0 / 12.0;
    [
        ("2 %, 0.6 %, 12 by 10 %", wall(0.02, 0.006), 1.10, 5, 0.97),
        ("0.3 %, 0.3 %, 12 by 3 %", wall(0.003, 0.003), 1.03, 5, MOST),
        ("no sidecars, 12 by 3 %", plain, 1.03, 5, MOST),
        ("no sidecars, GPU, 12 by -3 %", gpu, 1.0 / 1.03, 5, MOST),
        // The more changed, the fewer are left to tell by how much processes differ.
        ("no sidecars, 20 by 3 %", plain, 1.03, 3, 17.0 / 20.0),
        ("7 % with outliers, 12 by 100 %", loaded, 2.0, 5, 0.0),
    ]
}

fn one_pair_finds_what_stands_out(families: usize) {
    for (name, machine, effect, every, power) in pairs_of_baselines() {
        let found = tally_of(&machine, families, &truths(60, effect, every));
        let nothing = tally_of(&machine, families, &[1.0; 60]);
        println!(
            "{name} | {:.1} % | {} and {} of {families} with a false verdict",
            100.0 * found.power(),
            found.false_families,
            nothing.false_families,
        );
        // Of few comparisons the share is not known as well.
        let at_least = if families < 500 { power - 0.02 } else { power };
        assert!(found.power() >= at_least, "{name}: {found:?}");
        let allowed = 1 + families / 100;
        assert!(found.false_families <= allowed, "{name}: {found:?}");
        assert!(nothing.false_families <= allowed, "{name}: {nothing:?}");
    }
}

#[test]
fn one_pair_of_baselines_finds_what_stands_out() {
    one_pair_finds_what_stands_out(20);
}

/// What a user sees who runs a few benchmarks: the false verdicts of small classes, in one pair of
/// runs, several, and in turns, also on a machine that drifts more than any that was measured.
#[test]
fn a_few_benchmarks_cause_no_false_verdicts() {
    let mut sum = Tally::default();
    for (pairs, screened, drift) in [(1, 0, 0.01), (2, 0, 0.01), (4, 0, 0.04), (14, 2, 0.01)] {
        let m = Machine {
            pairs,
            screened,
            drift,
            ..WALL
        };
        for count in [1, 2, 4, 6, 10] {
            let nothing = tally_of(&m, 40, &vec![1.0; count]);
            assert!(nothing.false_families <= 1, "{count}: {nothing:?}");
            sum.add(&nothing);
        }
    }
    assert!(sum.false_families * 100 <= sum.families, "{sum:?}");
}

#[test]
fn true_changes_are_found() {
    let samples = |samples| Machine { samples, ..GATED };
    let pairs = |pairs, of: Machine| Machine { pairs, ..of };
    for (m, families, effect, every, power) in [
        (samples(10), 10, 1.02, 10, 0.95),
        (pairs(2, GATED), 10, 1.03, 10, 0.95),
        (samples(30), 10, 1.0 / 1.02, 10, 0.95),
        (samples(100), 10, 1.02, 10, 0.95),
        (pairs(4, EVENTS), 10, 1.02, 10, 0.95),
        // Half of all pairs are off by up to a half there.
        (pairs(60, SHARED), 3, 1.10, 10, 0.8),
        // Of a third of the benchmarks.
        (GATED, 10, 1.05, 3, 0.95),
    ] {
        let t = tally(&m, families, effect, every);
        let is_right = t.power() >= power && t.false_rate() <= 0.02;
        assert!(is_right, "{m:?} by {effect}: {t:?}");
        let is_gated = m.clock == GATED.clock && m.pairs == 2;
        assert!(!is_gated || t.same * 100 >= 95 * t.unchanged, "{t:?}");
    }
}

/// Neither more often nor much less than 2.5 % of the time.
#[test]
fn a_change_by_the_threshold_is_called_the_same_as_often_as_is_promised() {
    let m = Machine { pairs: 4, ..GATED };
    let t = tally(&m, 40, 1.0 + THRESHOLD, 1);
    let share = t.missed as f64 / t.changed as f64;
    assert!((0.018..=0.035).contains(&share), "{share}: {t:?}");
}

/// A sample that took 10,000 times as long, such as while the machine was suspended.
#[test]
fn one_absurd_sample_hides_no_change() {
    for samples in [10, 20] {
        let m = Machine { samples, ..EVENTS };
        let mut simulated = Simulated::new(&m, 1, vec![1.0; 40]);
        simulated.run(0, |_| true);
        let mut slower = Random::seeded(9).samples(1.55e5, &m, m.spread.0);
        slower[3] *= 1e4;
        simulated.cases[7].pairs[0].new = Median::of(Location::Median, &slower).unwrap();
        let (judged, _) = simulated.judge();
        assert_eq!(judged[7].verdict, Verdict::Slower, "{samples} samples");
    }
}

#[test]
fn a_benchmark_run_again_is_judged_by_its_second_run() {
    let m = Machine {
        pairs: 8,
        screened: 2,
        ..GATED
    };
    let mut simulated = Simulated::new(&m, 1, vec![1.0; 40]);
    for round in 0..8 {
        // A slow one fits into one of the first pairs alone.
        simulated.run(round, |i| match round {
            0 => true,
            1 => i > 0,
            _ => i < 10,
        });
    }
    // Ten that seemed slower by far when they were chosen, and then do not.
    for case in &mut simulated.cases[..10] {
        for pair in case.pairs.iter_mut().filter(|pair| pair.round < 2) {
            pair.new.ns *= 1.5;
        }
    }
    for (i, judged) in simulated.judge().0.iter().enumerate() {
        assert!(matches!(judged.verdict, Verdict::Same | Verdict::Unsure));
        assert_eq!(judged.confirmed, if i < 10 { 6 } else { 0 });
    }
}

#[test]
fn a_process_that_was_far_off_does_not_turn_a_change_around() {
    let m = Machine { pairs: 12, ..GATED };
    let mut simulated = Simulated::new(&m, 1, vec![1.05; 10]);
    for round in 0..12 {
        simulated.run(round, |_| true);
    }
    for case in &mut simulated.cases {
        case.pairs[3].new.ns *= 0.3;
    }
    for judged in simulated.judge().0 {
        assert_eq!(judged.verdict, Verdict::Slower);
        let [ratio, low, _] = judged.ratio();
        assert!((ratio / 1.05 - 1.0).abs() < 0.01 && low > 1.0);
    }
}

#[test]
fn a_change_in_most_benchmarks_is_named_when_one_pair_cannot_tell() {
    let (_, drifts) = compare(&GATED, 1, |i| if i % 5 == 0 { 1.0 } else { 1.03 });
    let doubt = drifts[0].doubt.as_deref().expect("most moved");
    assert!(doubt.contains("benchmarks became at least 3.0 % slower: either code that they share"));
    // Two pairs can tell.
    let m = Machine { pairs: 2, ..GATED };
    let t = tally(&m, 5, 1.03, 1);
    assert!(t.power() >= 0.95, "{t:?}");
    let (_, drifts) = compare(&m, 1, |_| 1.03);
    assert_eq!(drifts[0].doubt, None);
    // And a machine at the same speed raises no doubt.
    let wall = Machine {
        common: 0.0,
        ..WALL
    };
    for seed in 0..5 {
        for machine in [GATED, wall, EVENTS] {
            let (_, drifts) = compare(&machine, seed, |_| 1.0);
            assert_eq!(drifts[0].doubt, None, "{machine:?}");
        }
    }
}

fn judged(cases: &[Case], tested: &[bool]) -> Vec<Option<Judged>> {
    judge(cases, tested, &Options::default()).0
}

#[test]
fn fewer_than_four_benchmarks_are_not_called_from_one_pair() {
    let judged = |count: usize| {
        let mut simulated = Simulated::new(&GATED, 1, truths(count, 3.0, count));
        simulated.run(0, |_| true);
        simulated.judge().0
    };
    for count in 1..4 {
        for judged in judged(count) {
            assert_eq!(judged.verdict, Verdict::Unsure);
            assert_eq!(judged.reason, Some(TOO_FEW));
            let [ratio, low, high] = judged.ratio();
            assert!(ratio > 0.9 && low == 0.0 && high == f64::INFINITY);
        }
    }
    assert_eq!(judged(4)[0].verdict, Verdict::Slower);
}

/// All benchmarks of one pair of runs moved alike, and some by more: the machine may have done that,
/// or a change in code that they share.
#[test]
fn a_change_shared_by_the_class_gets_no_verdict() {
    let (judged, _) = compare(&GATED, 1, |i| match i {
        0 => 1.08,
        1 => 0.95,
        2 => 1.0,
        _ => 1.03,
    });
    // Beyond what all did, beyond nothing, and in between.
    assert_eq!(judged[0].verdict, Verdict::Slower);
    assert_eq!(judged[1].verdict, Verdict::Faster);
    assert_eq!(judged[2].verdict, Verdict::Unsure);
    let [ratio, low, high] = judged[0].ratio();
    assert!((ratio - 1.08).abs() < 0.002, "{ratio}");
    assert!(low < 1.05 && high < 1.085, "{low} {high}");
    assert!(judged[3..].iter().all(|j| j.verdict == Verdict::Unsure));
    // By less than the threshold beyond what all did.
    let (judged, _) = compare(&GATED, 1, |i| if i == 0 { 1.035 } else { 1.03 });
    assert_eq!(judged[0].verdict, Verdict::Unsure);
}

#[test]
fn benchmarks_that_are_not_asked_about_teach_the_drift_and_cost_nothing() {
    let m = Machine {
        drift: 0.02,
        ..WALL
    };
    let mut simulated = Simulated::new(&m, 3, vec![1.0; 60]);
    simulated.run(0, |_| true);
    let cases = simulated.cases;
    let mut one = [false; 60];
    one[0] = true;
    let judgement = |tested: &[bool]| judged(&cases, tested)[0].as_ref().unwrap().judgement();
    assert!(judgement(&one).resolution < judgement(&[true; 60]).resolution);
}

/// As a damaged file has them, or a clock that is coarser than what it times.
#[test]
fn samples_without_a_finite_spread_or_any_give_no_verdict_and_no_panic() {
    let case = |base: &[f64], new: &[f64], pairs: usize| {
        let [base, new] =
            [base, new].map(|ns| Median::of(Location::Median, ns).expect("sound times"));
        let pairs = (0..pairs).map(|round| RunPair::new(round, base, new));
        let class = Class::of(Some(Device::Cpu), Some(Clock::Wall), 1e3, None);
        Case::new(class, pairs.collect())
    };
    for far in [1e80, 1e160, 1e300] {
        let apart = [1.0, 1.0, 1.0, 1.0, far, far, far];
        assert!(Median::of(Location::Median, &apart).unwrap().variance > 1.0);
        for pairs in [1, 2, 8] {
            let cases = [case(&apart, &apart, pairs), case(&apart, &[1.0; 6], pairs)];
            for judged in judged(&cases, &[true; 2]).into_iter().flatten() {
                assert_ne!(judged.verdict, Verdict::Same, "{far:e}: {judged:?}");
                let [ratio, low, high] = judged.ratio();
                assert!(low <= ratio && ratio <= high);
            }
        }
    }
    let alike = [case(&[1e3; 6], &[1e3; 6], 8)];
    let [ratio, low, high] = judged(&alike, &[true])[0].as_ref().unwrap().ratio();
    assert_eq!(ratio, 1.0);
    assert!(low < 1.0 && high > 1.0);
}
