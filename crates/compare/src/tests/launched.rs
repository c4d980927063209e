//! The launch constant in simulated comparisons: no change of it is taken for one of a benchmark, and none is hidden.

use crate::comparison::{FailOn, compare};
use crate::tests::planted;
use crate::tests::simulated::Planted::{self, *};
use crate::tests::simulated::{LAUNCHED, Machine, tally_of, truths};
use crate::verdict::{Location, Options, Verdict};
use crossover_results::statistics::mean;
use crossover_results::statistics::median::median;
use crossover_results::store::baseline::Baseline;
use crossover_words::Clock;
use crossover_words::sidecar::LaunchConstant;

/// As many as were measured.
const BENCHMARKS: usize = 26;

/// The kinds of changes: their names, what is planted, the size of the change of one benchmark in so many.
const KINDS: [(&str, Planted, f64, usize); 7] = [
    ("nothing", Nothing, 1.0, 10),
    ("3 % in one of ten", Nothing, 1.03, 10),
    ("another grid: 20 % in one", Nothing, 1.2, BENCHMARKS),
    ("every kernel but the empty one", EveryRow, 1.0, 10),
    ("two thirds of the kernels", TwoThirds, 1.0, 10),
    ("the empty kernel alone", EmptyKernel, 1.0, 10),
    ("a ninth stream", NinthStream, 1.0, 10),
];

/// No kind of change causes false verdicts after three, six or thirteen pairs.
pub(super) fn launch_constants(comparisons: usize) {
    println!("planted | pairs | any false verdict | false share | found | same");
    let settings = KINDS.map(|kind| [3, 6, 13].map(|pairs| (kind, pairs)));
    for ((name, planted, effect, every), pairs) in settings.into_iter().flatten() {
        let machine = Machine {
            pairs,
            launching: Some(planted),
            ..LAUNCHED
        };
        let tally = tally_of(&machine, comparisons, &truths(BENCHMARKS, effect, every));
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        println!(
            "{name} | {pairs} | {:.2} % | {:.2} % | {:.0} % | {:.0} %",
            percent(tally.false_families, tally.families),
            100.0 * tally.false_rate(),
            percent(tally.found, tally.changed),
            percent(tally.same, tally.unchanged),
        );
        // Of a few comparisons, one weighs much.
        let is_rare = if tally.changed > 0 {
            tally.false_rate() <= 0.02 + 1.0 / comparisons as f64
        } else {
            tally.false_families * 100 <= 3 * comparisons + 100
        };
        assert!(is_rare, "{name}: {tally:?}");
    }
}

#[test]
fn launch_constants_cause_no_false_verdicts() {
    launch_constants(10);
}

/// A run of short gated kernels whose empty kernel took `empty_ns`, in an order of their own in each run.
fn run(empty_ns: f64, kernels: impl Fn(usize) -> Option<f64>, has_graphs: bool) -> Baseline {
    let samples = |i: usize| {
        let ns = 2_000.0 + 500.0 * i as f64 + 1.2 * (empty_ns - 1_640.0);
        // Each run spreads each benchmark by a little.
        let own = 1.0 + 1e-3 * ((i as f64 * empty_ns).sin());
        let samples = (0..20).map(|j| ns * own + f64::from(j) * 0.01);
        (format!("a/gpu/b/{i:02}"), samples.collect())
    };
    let mut run = planted((0..12).map(samples));
    for (i, sampled) in run.results.values_mut().enumerate() {
        sampled.clock = Some(Clock::EventsGated);
        sampled.launches = Some(LaunchConstant {
            kernels: kernels(i),
            has_graphs,
            empty_ns: [empty_ns; 2],
        });
    }
    run
}

/// The empty kernels of pairs: both levels on either side.
const EMPTY_NS: [[f64; 2]; 6] = [
    [1_640.0, 1_871.0],
    [1_872.0, 1_641.0],
    [1_643.0, 1_873.0],
    [1_644.0, 1_645.0],
    [1_646.0, 1_874.0],
    [1_875.0, 1_876.0],
];

fn sides(pairs: usize) -> [Vec<Baseline>; 2] {
    sides_of(false, |_, _| Some(1.0)).map(|side| side[..pairs].to_vec())
}

/// All pairs, with the kernels of a side's benchmark of each number.
fn sides_of(has_graphs: bool, kernels: impl Fn(usize, usize) -> Option<f64>) -> [Vec<Baseline>; 2] {
    [0, 1].map(|side| {
        let empty = EMPTY_NS.iter().map(|pair| pair[side]);
        let run = |ns| run(ns, |i| kernels(side, i), has_graphs);
        empty.map(run).collect()
    })
}

#[test]
fn measured_times_stand_beside_the_correction_and_the_ratio() {
    let [base, new] = sides(6);
    let compared = compare(&base, &new, &Options::default());
    assert_eq!(compared.rows.len(), 12);
    let slope = compared.slopes[&Clock::EventsGated];
    assert!((slope.value - 1.2).abs() < 0.02, "{slope:?}");
    assert!(slope.error < 0.05, "{slope:?}");
    for row in &compared.rows {
        let (before, after) = (row.base_ns.unwrap(), row.new_ns.unwrap());
        let (ratio, correction) = (row.judgement.unwrap().ratio, row.correction_ns.unwrap());
        // Three pairs of six had the higher level on the new side alone, one on the base alone.
        assert!(after > before + 40.0 && correction < -40.0, "{row:?}");
        assert!((ratio - 1.0).abs() < 2e-3, "{row:?}");
        // The slope times the mean difference of the empty kernels.
        assert!((correction + 1.2 * 76.7).abs() < 8.0, "{row:?}");
        assert_eq!(row.verdict, Verdict::Same, "{row:?}");
    }
    let (text, markdown) = (compared.text(true), compared.markdown());
    for shown in [
        "correction",
        "events-gated: of the difference of the empty kernels, 1.20 ± 0.0",
        "is taken off the change of 12 benchmarks",
    ] {
        let is_shown = [&text, &markdown].map(|text| text.contains(shown));
        assert_eq!(is_shown, [true; 2], "{shown}: {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&compared.json(FailOn::Slower)).unwrap();
    assert_eq!(json["launch_constants"][0]["benchmarks"], 12);
    let benchmarks = json["benchmarks"].as_array().unwrap().iter();
    let corrections = benchmarks.filter_map(|it| it["correction_ns"].as_f64());
    assert_eq!(corrections.filter(|ns| *ns < -40.0).count(), 12);
}

/// The new code takes 100 ns more in each launch.
#[test]
fn the_page_shows_how_each_process_follows_the_slope() {
    let [base, mut new] = sides(6);
    let benchmarks = new.iter_mut().flat_map(|run| run.results.values_mut());
    (benchmarks.flat_map(|sampled| &mut sampled.ns)).for_each(|ns| *ns += 100.0);
    let compared = compare(&base, &new, &Options::default());
    let sides = &compared.processes[&Clock::EventsGated];
    let empty = |side: usize| EMPTY_NS.map(|pair| pair[side]);
    let middle = mean([0, 1].into_iter().flat_map(empty));
    for (side, change) in [(0, -50.0), (1, 50.0)] {
        for (process, empty_ns) in sides[side].iter().zip(empty(side)) {
            assert!((process.empty_ns - empty_ns).abs() < 1e-6, "{process:?}");
            let left = process.longer_ns - 1.2 * (empty_ns - middle);
            assert!((left - change).abs() < 4.0, "{process:?}: {left}");
        }
    }
    let figure = |page: &str| {
        let (_, section) = page.split_once("id=\"launches\"")?;
        let (section, _) = section.split_once("</section>")?;
        assert!(section.contains("slope 1.20 ± 0.0"), "{section}");
        Some(section.matches("<circle").count())
    };
    assert_eq!(figure(&compared.page()), Some(12));
    let page = |base: &[Baseline], new: &[Baseline]| compare(base, new, &Options::default()).page();
    assert_eq!(figure(&page(&base[..3], &new[..3])), None);
    let [graphs, more] = sides_of(true, |_, _| None);
    assert_eq!(figure(&page(&graphs, &more)), None);
}

#[test]
fn rows_that_are_not_corrected_have_the_reason() {
    let pairs =
        |kernels: [Option<f64>; 2], has_graphs| sides_of(has_graphs, |side, _| kernels[side]);
    let (one, two) = (Some(1.0), Some(2.0));
    let whole = pairs([one; 2], false);
    let mut untimed = whole.clone();
    for sampled in untimed[0][3].results.values_mut() {
        sampled.launches = None;
    }
    let (median, fastest) = (Location::Median, Location::Fastest);
    for (sides, location, reason) in [
        (pairs([None; 2], true), median, "the nodes of graphs"),
        (pairs([one, two], false), median, "different numbers"),
        (pairs([one, None], false), median, "different numbers"),
        (pairs([None; 2], false), median, "were not counted"),
        (untimed, median, "the empty kernel was not timed"),
        (sides(1), median, "one pair of runs does not show"),
        (whole, fastest, "short processes do not show"),
    ] {
        let options = Options {
            location,
            ..Options::default()
        };
        let compared = compare(&sides[0], &sides[1], &options);
        assert_eq!(compared.rows.len(), 12, "{reason}");
        assert!(compared.rows.iter().all(|row| row.correction_ns.is_none()));
        let text = compared.text(false).replace("\n    ", " ");
        let line = text.split("not corrected: 12 benchmarks: ").nth(1);
        let line = line.expect(&text).lines().next().unwrap();
        assert!(line.contains(reason), "{line}");
    }
}

#[test]
fn a_filter_that_hides_corrected_rows_hides_their_correction() {
    let [base, new] = sides(6);
    for (filter, is_shown) in [("/03$", true), ("nothing", false)] {
        let options = Options {
            filter: Some(regex::Regex::new(filter).unwrap()),
            ..Options::default()
        };
        let compared = compare(&base, &new, &options);
        assert_eq!(compared.text(true).contains("Launch constant"), is_shown);
        assert_eq!(compared.page().contains("id=\"launches\""), is_shown);
    }
}

/// The constant moves benchmarks that cannot be corrected by up to 14 %.
#[test]
fn benchmarks_without_a_correction_hide_nothing_of_corrected_ones() {
    let [base, new] = sides_of(false, |_, i| i.is_multiple_of(3).then_some(1.0));
    let compared = compare(&base, &new, &Options::default());
    for row in compared.rows.iter().filter(|row| row.class.is_some()) {
        let is_corrected = row.correction_ns.is_some();
        assert_eq!(row.verdict == Verdict::Same, is_corrected, "{row:?}");
    }
    let text = compared.text(true).replace("\n    ", " ");
    for class in ["launch, corrected (4 benchmarks", "launch (8 benchmarks"] {
        assert!(text.contains(class), "{class}: {text}");
    }
}

/// After the correction, long and short kernels have the same spread in nanoseconds, a smaller share of long ones.
#[test]
fn the_spread_of_short_kernels_does_not_hide_changes_of_longer_ones() {
    let sides = [0, 1].map(|side| {
        let runs = EMPTY_NS[..3].iter().enumerate().map(|(round, pair)| {
            let mut run = run(pair[side], |_| Some(1.0), false);
            for (i, sampled) in run.results.values_mut().enumerate() {
                // Up to 60 ns, in an order of its own in each run.
                let left = 60.0 * ((7 * i + 3 * side + 5 * round) as f64).sin();
                let longer = if i < 6 { 0.0 } else { 10_000.0 };
                sampled.ns.iter_mut().for_each(|ns| *ns += longer + left);
            }
            run
        });
        runs.collect::<Vec<_>>()
    });
    let compared = compare(&sides[0], &sides[1], &Options::default());
    let rows = compared.rows.iter().filter(|row| row.class.is_some());
    let resolutions = rows.map(|row| (row.base_ns.unwrap(), row.judgement.unwrap().resolution));
    let [short, long] = [0.0..5e3, 10e3..1e9].map(|times| {
        let rows = resolutions.clone().filter(|(ns, _)| times.contains(ns));
        median(rows.map(|(_, resolution)| resolution)).unwrap()
    });
    assert!(long < short / 2.0, "{long} and {short}");
}

#[test]
fn a_constant_that_moved_during_a_benchmark_is_a_mark() {
    let [base, mut new] = sides(6);
    let moved = new[2].results.get_mut("a/gpu/b/04").unwrap();
    moved.launches.as_mut().unwrap().empty_ns = [1_640.0, 1_800.0];
    let compared = compare(&base, &new, &Options::default());
    let marked = compared.rows.iter().filter(|row| !row.marks.is_empty());
    let marks = Vec::from_iter(marked.map(|row| (row.id.as_str(), row.marks.clone())));
    let mark = "new, 1 of 6 runs: the launch constant moved during the samples: the empty kernel took \
        1.640 µs before and 1.800 µs after";
    assert_eq!(marks, [("a/gpu/b/04", vec![mark.to_owned()])]);
}
