//! The engine on planted curves and on planted times of several processes.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::analysis::answer::confirmations::{next_sizes, of_confirmations};
use crate::analysis::answer::curve::{Curve, Point, gaps};
use crate::analysis::answer::estimate::{Crossing, Samples, estimates, half_width};
use crate::model::record::{Confirmation, PairedTimes};
use crate::model::role::Residency;
use crate::statistics::between_processes::Spread;
use crossover_advice::thresholds::CrossingKind;
use crossover_words::Clock;

const RANGE: (u64, u64) = (8, 4096);

fn point(size: u64, median: f64, noise: f64) -> Point {
    Point {
        size: size as f64,
        median,
        low: median * (1.0 - noise),
        high: median * (1.0 + noise),
        measured: true,
    }
}

fn curve(sizes: &[u64], noise: f64, time: impl Fn(f64) -> f64) -> Curve {
    let point = |&size: &u64| point(size, time(size as f64), noise);
    Curve::new(sizes.iter().map(point))
}

fn powers(n: u32) -> Vec<u64> {
    (0..n).map(|e| 1 << e).collect()
}

/// The estimate of one process.
fn search(a: &Curve, b: &Curve) -> Option<Crossing> {
    let gaps = gaps(a, b);
    let samples = Samples {
        place: Residency::Queued,
        range: (gaps.first()?.size, gaps.last()?.size),
        is_searched: false,
        processes: vec![gaps],
    };
    estimates(&[samples]).pop()?
}

/// The times of several processes, of data on the device.
pub(crate) fn asked(processes: Vec<Vec<PairedTimes>>) -> Confirmation {
    Confirmation {
        group: "a".into(),
        question: Residency::Queued,
        gpu: "b".into(),
        clock: Clock::Events,
        gpu_machine: None,
        gpu_run: None,
        range: RANGE,
        processes,
    }
}

/// The times of one process at a size.
pub(crate) fn pair(size: u64, cpu_ns: f64, gpu_ns: f64) -> PairedTimes {
    PairedTimes {
        size,
        cpu: "best".into(),
        cpu_ns,
        gpu_ns,
    }
}

/// The GPU takes 10 µs at each size, the CPU as long at `at` and `steep` powers of the size.
fn process(sizes: &[u64], at: f64, steep: f64, shift: impl Fn(u64) -> f64) -> Vec<PairedTimes> {
    let cpu_ns = |size| 10_000.0 * (size as f64 / at).powf(steep) * shift(size).exp();
    let pair = |&size: &u64| pair(size, cpu_ns(size), 10_000.0);
    sizes.iter().map(pair).collect()
}

/// The sizes of a first process.
fn around(near: f64) -> Vec<u64> {
    next_sizes(near, RANGE, &[])
}

fn of(processes: &[Vec<PairedTimes>]) -> Crossing {
    of_confirmations(&[asked(processes.to_vec())])
        .remove(0)
        .unwrap()
}

/// Points at the ends and at some sizes between, a nanosecond to a quarter of an hour.
fn any_curve(random: &mut Xoshiro256PlusPlus) -> Curve {
    Curve::new((0..13).filter_map(|i| {
        let is_there = random.random() || i == 0 || i == 12;
        let ns = 10f64.powf(random.random_range(0.0..12.0));
        is_there.then(|| point(1 << i, ns, random.random_range(0.0..0.3)))
    }))
}

/// Sources of random cases. A test that fails shows the number of its last case.
fn random_cases() -> impl Iterator<Item = Xoshiro256PlusPlus> {
    (0..256).map(|case| {
        println!("case {case}");
        Xoshiro256PlusPlus::seed_from_u64(case)
    })
}

/// What any estimate keeps, whatever it is of.
fn is_consistent(found: &Crossing) {
    let (low, high) = found.speedup_interval;
    assert!(low <= found.speedup && found.speedup <= high, "{found:?}");
    for change in &found.changes {
        let (first, last) = found.range;
        let ends = [first, change.low, change.size, change.high, last];
        assert!(ends.is_sorted(), "{found:?}");
    }
    let holds = match found.answer {
        CrossingKind::Undecided => found.for_good().is_none(),
        CrossingKind::Never => high < 1.0 && found.changes.is_empty(),
        CrossingKind::Always => low > 1.0 && found.changes.is_empty(),
        CrossingKind::From => low > 1.0 && found.changes.len() == 1,
        CrossingKind::BothWays => !found.changes.is_empty(),
    };
    assert!(holds, "{found:?}");
}

#[test]
fn a_planted_crossing_is_found() {
    let drawn = |mut random: Xoshiro256PlusPlus| {
        let at = random.random_range(10.0..3000.0);
        (at, random.random_range(0.3..3.0))
    };
    for (at, steep) in random_cases().map(drawn).chain([(10.0_f64, 0.3)]) {
        // Nearer to the end another run may find that the GPU never wins.
        if (4096.0 / at).powf(steep) <= 1.25 {
            continue;
        }
        let several = of(&vec![process(&around(at), at, steep, |_| 0.0); 5]);
        let sizes = &powers(13)[3..];
        let steep_one = curve(sizes, 0.001, |s| 1e4 * (s / at).powf(steep));
        let one = search(&steep_one, &curve(sizes, 0.001, |_| 1e4));
        for found in [several, one.unwrap()] {
            is_consistent(&found);
            assert_eq!(found.answer, CrossingKind::From);
            let size = found.for_good().unwrap().size;
            assert!((size / at).ln().abs() < 1e-6, "{size} for {at}");
            assert!((found.speedup / (4096.0 / at).powf(steep)).ln().abs() < 1e-9);
        }
    }
}

#[test]
fn any_curves_give_a_consistent_answer() {
    for mut random in random_cases() {
        let (a, b) = (any_curve(&mut random), any_curve(&mut random));
        let found = search(&a, &b).expect("both curves cover the sizes between their ends");
        assert_eq!(found.range, (1.0, 4096.0));
        is_consistent(&found);
    }
}

/// Processes on a host that is loud or quiet, each with sizes around where it began.
#[test]
fn an_answer_does_not_contradict_the_speedup() {
    for mut random in random_cases() {
        let noise = random.random_range(0.0..2.0);
        let at = random.random_range(1.0..10_000.0);
        let count = random.random_range(3..9);
        let made_up = (0..count).map(|_| {
            let sizes = around(random.random_range(1.0..5000.0));
            let steep = random.random_range(0.2..2.0);
            let luck: f64 = random.random_range(-1.0..1.0);
            process(&sizes, at, steep, |size| noise * luck * (size as f64).sin())
        });
        let found = of_confirmations(&[asked(made_up.collect())]);
        found.iter().flatten().for_each(is_consistent);
    }
}

#[test]
fn curves_without_a_common_size_have_no_answer() {
    let of = |sizes: &[u64]| curve(sizes, 0.0, |s| s);
    assert_eq!(search(&of(&[1, 2]), &of(&[4, 8])), None);
    assert_eq!(search(&of(&[1, 2]), &Curve::default()), None);
}

#[test]
fn crossings_without_a_common_size_contradict_each_other_whichever_is_asked() {
    let crossing_at = |at: f64| of(&vec![process(&around(at), at, 1.0, |_| 0.0); 5]);
    let (small, large) = (crossing_at(100.0), crossing_at(400.0));
    assert!(small.contradicts(&large) && large.contradicts(&small));
    assert!(!small.contradicts(&crossing_at(101.0)));
    let always = crossing_at(4.0);
    assert!(always.contradicts(&small) && small.contradicts(&always));
}

#[test]
fn sizes_lie_around_the_crossing_and_at_the_end() {
    assert_eq!(around(89.0), [64, 80, 96, 112, 4096]);
    assert_eq!(around(0.0), [8, 10, 4096]);
    assert_eq!(around(f64::NAN), [4096]);
    assert_eq!(around(f64::INFINITY), [3584, 4096]);
    assert_eq!(next_sizes(3.0, (1, 7), &[]), [1, 2, 3, 4, 7]);
    assert_eq!(next_sizes(64.0, (64, 64), &[]), [64]);
    // An end that each process saw clearly is measured alone.
    let never = |by: f64| process(&around(f64::INFINITY), 4096.0 * by, 1.0, |_| 0.0);
    let after = |by: [f64; 2]| next_sizes(f64::INFINITY, RANGE, &by.map(never));
    assert_eq!(after([1.6, 1.6]), [4096]);
    assert_eq!(after([1.6, 1.4]), [3584, 4096]);
}

#[test]
fn a_crossing_outside_the_measured_sizes_is_sought_next() {
    // Above them it lies between there and the largest size.
    let first = process(&around(100.0), 400.0, 2.0, |_| 0.0);
    assert_eq!(next_sizes(100.0, RANGE, &[first]), around(400.0));
    // Below them it may be anywhere.
    let below = process(&around(100.0), 30.0, 2.0, |_| 0.0);
    let change = of(&vec![below.clone(); 5]).changes[0];
    assert_eq!((change.low, change.high), (8.0, 80.0));
    let next = next_sizes(100.0, RANGE, std::slice::from_ref(&below));
    assert_eq!(next, around(40.0));
    let at = |at: f64| process(&around(at), at, 2.0, |_| 0.0);
    // It is the smallest of three, wherever below the others it lies.
    let found = of(&[at(100.0), at(120.0), below.clone()]);
    let size = found.for_good().unwrap().size;
    assert!((size - 100.0).abs() < 1e-6 && found.agree == 3, "{found:?}");
    // Half of them leave it open, and it lies between the sizes that the others measured.
    let found = of(&[at(100.0), at(120.0), below.clone(), below]);
    let answer = (found.answer, found.root.is_some(), found.agree);
    assert_eq!(answer, (CrossingKind::From, false, 4), "{found:?}");
}

/// Each process has its crossing at one of these sizes, of 8 to 4,096.
#[test]
fn processes_that_disagree_give_no_answer() {
    let at = |at: f64| process(&around(at), at, 2.0, |_| 0.0);
    let (always, never) = (4.0, 9e4);
    for (crossings, answer, agree) in [
        (&[always; 5][..], CrossingKind::Always, 5),
        (&[never; 5], CrossingKind::Never, 5),
        (&[always, always, never, never], CrossingKind::Undecided, 0),
        (&[never, never, never, 11.0], CrossingKind::Undecided, 3),
        (&[7.0, 10.0, 11.0, 11.0], CrossingKind::From, 3),
        // One that is far off moves little.
        (&[98.0, 99.0, 100.0, 101.0, 160.0], CrossingKind::From, 5),
    ] {
        let processes: Vec<_> = crossings.iter().map(|size| at(*size)).collect();
        let found = of(&processes);
        let counts = (found.agree, found.processes);
        assert_eq!(found.answer, answer, "{crossings:?}");
        assert_eq!(counts, (agree, crossings.len()), "{crossings:?}");
        if let Some(change) = found.for_good() {
            let near = (10.0..=11.0).contains(&change.size) && found.or_always;
            let same = (change.size - 100.0).abs() < 1e-6 && !found.or_always;
            assert!((near || same) && !found.or_never, "{found:?}");
        }
    }
}

#[test]
fn too_few_processes_and_damaged_times_are_left_out() {
    let sound = process(&around(100.0), 100.0, 2.0, |_| 0.0);
    let mut processes = vec![sound.clone(); 5];
    processes[0][1].cpu_ns = f64::NAN;
    processes[1][0].gpu_ns = 0.0;
    assert_eq!(of(&processes).processes, 3);
    processes[0][1].cpu_ns = f64::INFINITY;
    processes[1][0].gpu_ns = f64::MIN_POSITIVE / 2.0;
    is_consistent(&of(&processes));
    let mut descending = asked(vec![sound.clone(); 5]);
    descending.range = (RANGE.1, RANGE.0);
    let none = [asked(vec![]), asked(vec![sound; 2]), descending];
    assert_eq!(of_confirmations(&none), [None, None, None]);
}

/// Worked by hand: two variances of two medians, and two of how runs differ.
#[test]
fn the_interval_is_that_of_two_runs() {
    let noisy = Spread::known(0.02, 4.0);
    let sum: f64 = 2.0 * 1.45 * 0.02 / 5.0 + 2.0 * 0.25 * 0.02;
    // Student's t with 27.7 degrees of freedom.
    let half = half_width(noisy, [noisy].into_iter(), 5);
    assert!((half / (2.0493 * sum.sqrt()) - 1.0).abs() < 1e-3, "{half}");
    let quiet = half_width(Spread::known(1e-8, 4.0), std::iter::empty(), 5);
    // With 200.
    let ratio = quiet / (1.9719 * 0.005_f64.sqrt());
    assert!((ratio - 1.0).abs() < 1e-3, "{quiet}");
}
