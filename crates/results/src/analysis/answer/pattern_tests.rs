//! Every pattern of sizes that are won (`W`), lost (`L`) and unsure (`U`), against the definition of the kinds.

use rayon::prelude::*;

use crate::analysis::answer::confirmations::{of_confirmations, with_own};
use crate::analysis::answer::curve::Gap;
use crate::analysis::answer::estimate::{Crossing, Samples, estimates};
use crate::analysis::answer::kind::WinnerChange;
use crate::analysis::answer::tests::{asked, pair};
use crate::model::record::{Confirmation, PairedTimes};
use crate::model::role::Residency;
use crossover_advice::thresholds::CrossingKind;

/// The definition, in terms of pairs of sizes.
fn defined(pattern: &str) -> CrossingKind {
    let after_a_win = pattern.split_once('W').map_or("", |(_, after)| after);
    if pattern.ends_with('U') {
        CrossingKind::Undecided
    } else if after_a_win.contains('L') {
        CrossingKind::BothWays
    } else if pattern.ends_with('L') {
        CrossingKind::Never
    } else if !pattern.contains(['U', 'L']) {
        CrossingKind::Always
    } else {
        CrossingKind::From
    }
}

/// All patterns of so many sizes.
fn patterns(sizes: u32) -> impl Iterator<Item = String> {
    (0..3usize.pow(sizes)).map(move |mut number| {
        let mut next = || {
            let state = ['W', 'L', 'U'][number % 3];
            number /= 3;
            state
        };
        (0..sizes).map(|_| next()).collect()
    })
}

fn size(at: usize) -> u64 {
    8 << at
}

/// What each of three processes finds: the logarithm of b's time over a's. Unsure sizes lean to one side, or
/// the processes disagree.
fn logs(state: char, unsure: [f64; 3]) -> [f64; 3] {
    match state {
        'W' => [-0.71, -0.7, -0.69],
        'L' => [0.71, 0.7, 0.69],
        _ => unsure,
    }
}

/// The gaps between the sizes of a pattern, as the second of its processes finds them.
fn gaps(pattern: &str, unsure: [f64; 3]) -> Vec<Gap> {
    let gap = |(at, state)| Gap {
        size: size(at) as f64,
        log: logs(state, unsure)[1],
        log_time: 0.0,
        half_width: 0.1,
        measured: true,
    };
    pattern.char_indices().map(gap).collect()
}

fn is_as_defined(pattern: &str, found: &Crossing) {
    assert_eq!(found.answer, defined(pattern), "{pattern} {found:?}");
    let changes = &found.changes;
    assert!(
        changes.is_sorted_by_key(|change| change.size),
        "{pattern} {found:?}"
    );
    if found.answer == CrossingKind::Undecided {
        return assert!(changes.is_empty(), "{pattern} {found:?}");
    }
    // Between the last loss and the wins that nothing interrupts, b begins to win for good.
    let lost = pattern.rfind('L').map_or(0, |at| at + 1);
    let settled = pattern.trim_end_matches('W').len();
    for (at, state) in pattern.char_indices() {
        // A change at a size itself has it on either side.
        let here = size(at) as f64;
        let is_below = |change: &&WinnerChange| {
            change.size < here || change.size == here && change.to_b == (state == 'W')
        };
        let below = changes.iter().rfind(is_below);
        let wins = match (below, changes.first()) {
            (Some(change), _) => change.to_b,
            (None, Some(first)) => !first.to_b,
            (None, None) => found.answer == CrossingKind::Always,
        };
        let is_open = (lost..settled).contains(&at) && pattern.ends_with('W');
        let right = state == 'U' || is_open || wins == (state == 'W');
        assert!(right, "{pattern} at {at}: {found:?}");
    }
}

#[test]
fn one_process_answers_as_the_kinds_are_defined() {
    for pattern in (1..=7).flat_map(patterns) {
        for lean in [-0.05, 0.0, 0.05] {
            let samples = Samples {
                place: Residency::Queued,
                range: (size(0) as f64, size(pattern.len() - 1) as f64),
                is_searched: false,
                processes: vec![gaps(&pattern, [lean; 3])],
            };
            is_as_defined(&pattern, estimates(&[samples])[0].as_ref().unwrap());
        }
    }
}

/// The answer of three processes, which measured the largest size and some others, with the run's own times
/// elsewhere.
fn confirmed(pattern: &str, measured: std::ops::Range<usize>, unsure: [f64; 3]) -> Crossing {
    let last = pattern.len() - 1;
    let process = |process: usize| -> Vec<PairedTimes> {
        let states = pattern.char_indices();
        let asked = states.filter(|(at, _)| measured.contains(at) || *at == last);
        let gpu_ns = |state| 1e4 * logs(state, unsure)[process].exp();
        let pairs = asked.map(|(at, state)| pair(size(at), 1e4, gpu_ns(state)));
        pairs.collect()
    };
    let asked = Confirmation {
        range: (size(0), size(last)),
        ..asked((0..3).map(process).collect())
    };
    let mut found = of_confirmations(std::slice::from_ref(&asked))
        .remove(0)
        .unwrap();
    found.decide(with_own(&gaps(pattern, unsure), &asked.processes));
    found
}

#[test]
fn several_processes_answer_as_the_kinds_are_defined() {
    // They disagree, or lean to one side.
    for unsure in [[-0.7, 0.02, 0.7], [-0.03; 3], [0.03; 3]] {
        // One process has the patterns of seven sizes.
        let up_to_six_sizes = (1..=6).flat_map(patterns).par_bridge();
        up_to_six_sizes.for_each(|pattern| {
            // Of long patterns some windows.
            let step = if pattern.len() > 5 { 3 } else { 1 };
            for from in (0..pattern.len()).step_by(step) {
                for to in (from..=pattern.len()).step_by(step) {
                    is_as_defined(&pattern, &confirmed(&pattern, from..to, unsure));
                }
            }
        });
    }
}
