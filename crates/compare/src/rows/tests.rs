use super::*;
use crate::tests::planted;
use crossover_results::model::record::Sidecar;

const ID: &str = "a/cpu/b/1";
const CHOICE: &str = "of what";

/// A run whose median is `ns`, and what its calibration chose.
fn run(ns: f64, chose: Option<&str>) -> Baseline {
    let choices = chose.map(|chose| (CHOICE.to_owned(), chose.to_owned()));
    let sidecar = Sidecar {
        choices: choices.into_iter().collect(),
        ..Sidecar::of(ID, Clock::Wall)
    };
    let ns = (0..20).map(|i| ns + f64::from(i) * 1e-3);
    let mut run = planted([(ID.to_owned(), ns.collect())]);
    let sampled = run.results.get_mut(ID).unwrap();
    (sampled.clock, sampled.sidecar) = (Some(sidecar.clock), Some(sidecar));
    run
}

/// Unless all did. A choice that one side alone made is no difference.
#[test]
fn a_pair_whose_sides_chose_differently_does_not_count() {
    let (none, x, y) = (None, Some("x"), Some("y"));
    for (base, new, rounds, marks) in [
        (
            [x, y],
            [y, y],
            &[1][..],
            &["of what: base chose x, new y in 1 of 2 pairs, which do not count"][..],
        ),
        ([x, x], [y, y], &[0, 1], &["of what: base chose x, new y"]),
        ([none, x], [y, x], &[0, 1], &[]),
    ] {
        let base = [run(10.0, base[0]), run(10.5, base[1])];
        let new = [run(14.0, new[0]), run(10.6, new[1])];
        let (row, case) = rows(&base, &new, &Options::default()).remove(0);
        let counted = case.unwrap().pairs;
        let counted = Vec::from_iter(counted.iter().map(|pair| pair.round));
        assert_eq!(counted, rounds);
        assert_eq!(row.marks, marks);
        // The times are those of the pairs that count.
        let ns = if rounds.len() == 1 { 10.5 } else { 10.25 };
        assert!((row.base_ns.unwrap() - ns).abs() < 0.1, "{row:?}");
    }
}

#[test]
fn two_clocks_are_not_compared_also_without_a_sidecar() {
    let [base, new] =
        [Clock::EventsGated, Clock::Events].map(|clock| [constant(10.0, Some(clock))]);
    let (row, case) = rows(&base, &new, &Options::default()).remove(0);
    assert!(case.is_none());
    let reason = "timed on events and events-gated: different quantities";
    assert_eq!(row.reason.as_deref(), Some(reason));
}

/// A run whose samples are all `ns`.
fn constant(ns: f64, clock: Option<Clock>) -> Baseline {
    let ns = (1..=20).map(|iterations| ns * f64::from(iterations) / f64::from(iterations));
    let mut run = planted([(ID.to_owned(), ns.collect())]);
    run.results.get_mut(ID).unwrap().clock = clock;
    run
}

#[test]
fn counts_that_do_not_vary_need_no_statistics() {
    for (new, verdict) in [
        (100_003.0, Verdict::Same),
        (100_901.0, Verdict::Same),
        (102_007.0, Verdict::Slower),
        (98_003.0, Verdict::Faster),
    ] {
        for on_one_machine in [false, true] {
            let options = Options {
                on_one_machine,
                ..Options::default()
            };
            let [base, new] = [100_003.0, new].map(|count| [constant(count, None)]);
            let (row, case) = rows(&base, &new, &options).remove(0);
            assert!(case.is_none() && row.reason.is_none());
            assert_eq!(row.verdict, verdict, "{row:?}");
        }
    }
}

/// Kernels that CUDA events time one launch at a time, without a sidecar.
#[test]
fn times_of_a_coarse_clock_have_intervals_of_a_tick() {
    for (base, new, verdict, low) in [
        // 6.90 and 7.25 µs.
        (7_168.0, 7_168.0, Verdict::Unsure, 0.857),
        (7_168.0, 8_192.0, Verdict::Unsure, 1.0),
        (7_168.0, 12_288.0, Verdict::Slower, 1.571),
        (1_024_000.0, 1_025_024.0, Verdict::Same, 1.0),
    ] {
        let [base, new] = [base, new].map(|ns| [constant(ns, None)]);
        let (row, _) = rows(&base, &new, &Options::default()).remove(0);
        assert_eq!(row.verdict, verdict, "{row:?}");
        assert!((row.judgement.unwrap().low - low).abs() < 1e-3, "{row:?}");
        let remarks = row.marks.iter().chain(&row.reason);
        let ticks = |text: &String| text.contains("the clock ticks by 1.024 µs");
        assert_eq!(remarks.filter(|text| ticks(text)).count(), 1, "{row:?}");
    }
    // Samples of two values.
    let mut mixed = constant(7_168.0, None);
    for ns in mixed.results.get_mut(ID).unwrap().ns.iter_mut().step_by(3) {
        *ns += 1_024.0;
    }
    let (row, case) = rows(&[constant(7_168.0, None)], &[mixed], &Options::default()).remove(0);
    assert!((case.unwrap().step - 1.0 / 7.0).abs() < 1e-9);
    assert!(row.marks[0].contains("ticks by 1.024 µs"), "{row:?}");
}

#[test]
fn equal_times_on_a_clock_are_below_its_resolution() {
    let side = [constant(1.0, Some(Clock::Wall))];
    let (row, case) = rows(&side, &side, &Options::default()).remove(0);
    assert!(case.is_none() && row.judgement.is_none());
    assert_eq!(row.reason.as_deref(), Some(BELOW_RESOLUTION));
    assert_eq!(row.verdict, Verdict::Unsure);
}

/// Equal samples are within a step of each other, and so is a change by one step.
#[test]
fn a_measured_step_bounds_what_equal_samples_hide() {
    for (new, step, expected) in [
        (7_168.0, 32.0, 32.0),
        (7_168.0, 1_024.0, 1_024.0),
        (8_192.0, 32.0, 32.0),
        // Samples of more than one iteration differ by less than a step of the clock.
        (7_232.0, 1_024.0, 64.0),
    ] {
        let [base, new] = [7_168.0, new].map(|ns| {
            let mut run = constant(ns, Some(Clock::EventsCold));
            run.results.get_mut(ID).unwrap().event_step_ns = Some(step);
            [run]
        });
        let (row, case) = rows(&base, &new, &Options::default()).remove(0);
        let (is, wanted) = (case.unwrap().step, expected / 7_168.0);
        assert!((is - wanted).abs() < 1e-9, "{is} and not {wanted}: {row:?}");
    }
}

#[test]
fn too_few_samples_have_their_remedy() {
    let mut quick = run(10.0, None);
    quick.results.get_mut(ID).unwrap().ns.truncate(4);
    let (row, _) = rows(&[run(10.0, None)], &[quick], &Options::default()).remove(0);
    let remedy = "fewer than 5 samples; measure without `--quick`";
    assert_eq!(row.reason.as_deref(), Some(remedy));
}

#[test]
fn pairs_with_equal_samples_count_where_each_process_wrote_its_own() {
    let [base, new] = [10.1, 10.2].map(|second| [10.0, second].map(|ns| run(ns, None)));
    let reason = |on_one_machine| {
        let options = Options {
            on_one_machine,
            ..Options::default()
        };
        rows(&base, &new, &options).remove(0).0.reason
    };
    assert_eq!(reason(true), None);
    assert!(reason(false).unwrap().contains("saved twice"));
}
