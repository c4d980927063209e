//! The crossover search on planted curves.

use proptest::prelude::*;

use crate::analysis::answer::crossing::{Answer, Curve, Gap, Point, gaps, search};

fn curve(sizes: &[u64], noise: f64, time: impl Fn(f64) -> f64) -> Curve {
    Curve::new(sizes.iter().map(|&size| {
        let median = time(size as f64);
        Point {
            size: size as f64,
            median,
            low: median * (1.0 - noise),
            high: median * (1.0 + noise),
            measured: true,
        }
    }))
}

fn powers(n: u32) -> Vec<u64> {
    (0..n).map(|e| 1 << e).collect()
}

/// Times that are straight in log-log cross exactly where planted.
fn planted(at: f64, steeper: f64) -> (impl Fn(f64) -> f64, impl Fn(f64) -> f64) {
    (
        move |s: f64| 1000.0 * (s / at).powf(1.0 + steeper),
        move |s: f64| 1000.0 * (s / at),
    )
}

/// Points at the ends and at some sizes between, a nanosecond to a quarter of an hour.
fn any_curve() -> impl Strategy<Value = Vec<Point>> {
    proptest::collection::vec((any::<bool>(), 0.0f64..12.0, 0.0f64..0.3), 13).prop_map(|points| {
        let point = |(i, &(kept, log10, noise)): (usize, &(bool, f64, f64))| {
            let median = 10f64.powf(log10);
            (kept || i == 0 || i == 12).then_some(Point {
                size: f64::from(1 << i),
                median,
                low: median * (1.0 - noise),
                high: median * (1.0 + noise),
                measured: true,
            })
        };
        points.iter().enumerate().filter_map(point).collect()
    })
}

proptest! {
    #[test]
    fn finds_a_planted_crossing(at in 2.0f64..16000.0, steeper in 0.3f64..3.0, noise in 0.0f64..0.01) {
        let sizes = powers(16);
        let (cpu, gpu) = planted(at, steeper);
        let found = search(&curve(&sizes, noise, cpu), &curve(&sizes, noise, gpu)).unwrap();
        prop_assert_eq!(found.answer, Answer::At);
        let change = found.for_good().unwrap();
        prop_assert!((change.size / at).ln().abs() < 1e-9, "{} for {at}", change.size);
        prop_assert!(change.low <= at * (1.0 + 1e-9) && at <= change.high * (1.0 + 1e-9));
        prop_assert!(change.bracket.0 <= change.low && change.high <= change.bracket.1);
    }

    #[test]
    fn noise_inside_its_interval_is_covered_by_the_answer(
        at in 4.0f64..8000.0,
        steeper in 0.3f64..3.0,
        wobble in proptest::collection::vec(-1.0f64..1.0, 64),
    ) {
        let noise = 0.02;
        // Both at once stay within the interval of their ratio.
        let shaken = |time: f64, w: f64| time * (1.0 + 0.65 * noise * w);
        let sizes = powers(15);
        let (cpu, gpu) = planted(at, steeper);
        let index = |s: f64| s.log2().round() as usize;
        let cpu = curve(&sizes, noise, |s| shaken(cpu(s), wobble[index(s)]));
        let gpu = curve(&sizes, noise, |s| shaken(gpu(s), wobble[32 + index(s)]));
        let found = search(&cpu, &gpu).unwrap();
        prop_assert_eq!(found.answer, Answer::At);
        let change = found.for_good().unwrap();
        prop_assert!(change.low <= at * 1.000001 && at <= change.high * 1.000001,
            "{at} not in {} to {}", change.low, change.high);
    }

    #[test]
    fn crossing_back_is_told_from_winning_for_good(at in 8.0f64..60.0, apart in 3.0f64..100.0) {
        // ln(gpu/cpu) is a parabola in ln(size): the GPU wins between `at` and `back` alone.
        let back = at * apart;
        let sizes = powers(16);
        let bend = |s: f64| 100.0 * ((s / at).ln() * (s / back).ln()).exp();
        let flat = curve(&sizes, 0.001, |_| 100.0);
        let bowl = curve(&sizes, 0.001, bend);
        let found = search(&flat, &bowl).unwrap();
        prop_assert_eq!(found.answer, Answer::CrossesBack);
        prop_assert!(found.for_good().is_none());
        prop_assert_eq!(found.changes.len(), 2);
        prop_assert!(found.changes[0].to_gpu && !found.changes[1].to_gpu);
        // The other way round the GPU wins, loses, and wins for good.
        let found = search(&bowl, &flat).unwrap();
        prop_assert_eq!(found.answer, Answer::CrossesBack);
        let size = found.for_good().unwrap().size;
        prop_assert!(size > back / 2.0 && size < back * 2.0);
    }

    /// Curves that cross wherever they like, at sizes of their own, with noise of any width.
    #[test]
    fn any_curves_give_an_ordered_answer(cpu in any_curve(), gpu in any_curve()) {
        let found = search(&Curve::new(cpu), &Curve::new(gpu));
        let found = found.expect("both curves cover the sizes between their ends");
        prop_assert_eq!(found.range, (1.0, 4096.0));
        let mut before = 0.0;
        for change in &found.changes {
            prop_assert!(change.low <= change.size && change.size <= change.high);
            prop_assert!(change.bracket.0 <= change.size && change.size <= change.bracket.1);
            prop_assert!(before <= change.size);
            before = change.size;
        }
        for pair in found.changes.windows(2) {
            prop_assert_ne!(pair[0].to_gpu, pair[1].to_gpu);
        }
        let last = found.changes.last().map(|change| change.to_gpu);
        let expected = match found.answer {
            Answer::At => last == Some(true) && found.changes.len() == 1,
            Answer::Always | Answer::Never => last.is_none(),
            Answer::CrossesBack => last.is_some(),
            Answer::Undecided => found.for_good().is_none(),
        };
        prop_assert!(expected, "{found:?}");
    }

    /// Whoever wins for good is shown to at the largest size, and who always or never does is ahead at
    /// the smallest too.
    #[test]
    fn an_answer_does_not_contradict_the_speedup(cpu in any_curve(), gpu in any_curve()) {
        let (cpu, gpu) = (Curve::new(cpu), Curve::new(gpu));
        let found = search(&cpu, &gpu).expect("both curves cover the sizes between their ends");
        let at = |size| gaps(&cpu, &gpu).into_iter().find(|gap| gap.size == size).unwrap();
        let (smallest, largest) = (at(found.range.0), at(found.range.1));
        let ends = |of: fn(&Gap) -> bool| of(&smallest) && of(&largest);
        let holds = match found.answer {
            Answer::Always => ends(|gap| gap.median < 0.0) && largest.high < 0.0,
            Answer::Never => ends(|gap| gap.median >= 0.0) && largest.low > 0.0,
            Answer::At => largest.high < 0.0,
            Answer::CrossesBack if found.for_good().is_some() => largest.high < 0.0,
            Answer::CrossesBack => largest.low > 0.0,
            Answer::Undecided => found.open.is_some(),
        };
        prop_assert!(holds, "{found:?}, {} to {}", largest.low, largest.high);
        prop_assert_eq!(found.answer == Answer::Undecided, found.open.is_some());
    }

    /// What no benchmark can give is left out, and never panics.
    #[test]
    fn numbers_that_are_no_times_are_left_out(
        cpu in proptest::collection::vec(any::<(f64, f64, f64, f64)>(), 0..12),
        gpu in any_curve(),
    ) {
        let points = cpu.into_iter().map(|(size, median, low, high)| Point { size, median, low, high, measured: true });
        if let Some(found) = search(&Curve::new(points), &Curve::new(gpu)) {
            let (first, last) = found.range;
            prop_assert!(1.0 <= first && first <= last && last <= 4096.0, "{found:?}");
        }
    }
}

#[test]
fn always_never_and_one_size() {
    let sizes = powers(10);
    let slow = curve(&sizes, 0.01, |s| 10.0 * s);
    let fast = curve(&sizes, 0.01, |s| s);
    assert_eq!(search(&slow, &fast).unwrap().answer, Answer::Always);
    assert_eq!(search(&fast, &slow).unwrap().answer, Answer::Never);
    let one = curve(&[64], 0.01, |s| s);
    let at_one = search(&slow, &one).unwrap();
    assert_eq!(at_one.answer, Answer::Always);
    assert_eq!(at_one.only_size(), Some(64.0));
    assert_eq!(search(&slow, &fast).unwrap().only_size(), None);
    assert_eq!(search(&slow, &Curve::default()), None);
    assert_eq!(
        search(&curve(&[1, 2], 0.0, |s| s), &curve(&[4, 8], 0.0, |s| s)),
        None
    );
}

#[test]
fn a_tie_is_no_win_and_no_crossing_back() {
    let sizes = powers(10);
    let cpu = curve(&sizes, 0.01, |s| 100.0 * s);
    let tied = curve(&sizes, 0.01, |s| 99.5 * s);
    assert_eq!(search(&cpu, &tied).unwrap().answer, Answer::Undecided);
    // Ahead, then within noise on the other side, then ahead: still always.
    let touching = curve(
        &sizes,
        0.01,
        |s| if s == 32.0 { 100.5 * s } else { 50.0 * s },
    );
    assert_eq!(search(&cpu, &touching).unwrap().answer, Answer::Always);
    // However little each of them spreads, two benchmarks of one run drift against each other.
    let ahead = |by: f64| {
        let (cpu, gpu) = (
            curve(&sizes, 0.001, |s| by * s),
            curve(&sizes, 0.001, |s| s),
        );
        search(&cpu, &gpu).unwrap().answer
    };
    assert_eq!(ahead(1.015), Answer::Undecided);
    assert_eq!(ahead(1.03), Answer::Always);
}

#[test]
fn open_sizes_before_the_first_win_reach_down_to_the_smallest() {
    let cpu = curve(&[8, 16, 32], 0.05, |_| 100.0);
    let gpu = curve(&[8, 16, 32], 0.05, |s| if s < 10.0 { 101.0 } else { 40.0 });
    let found = search(&cpu, &gpu).unwrap();
    assert_eq!(found.answer, Answer::At);
    let change = found.for_good().unwrap();
    assert_eq!(change.low, 8.0);
    assert!(change.size > 8.0 && change.size < 16.0);
}

#[test]
fn a_crossing_is_measured_when_its_neighbours_are_a_quarter_apart() {
    let (cpu, gpu) = planted(400.0, 1.5);
    let coarse = [128, 256, 384, 512, 1024];
    let fine = [128, 256, 320, 384, 448, 512, 1024];
    let one = |a: &[u64], b: &[u64]| {
        let found = search(&curve(a, 0.001, &cpu), &curve(b, 0.001, &gpu)).unwrap();
        found.for_good().unwrap().measured
    };
    assert!(one(&fine, &fine));
    assert!(!one(&coarse, &coarse));
    // Measured on one side only, the other is still interpolated.
    assert!(!one(&fine, &coarse));
}
