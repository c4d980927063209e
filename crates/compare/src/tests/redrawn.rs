//! Comparisons of one code with itself, redrawn from real processes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::case::{Case, Pair};
use crate::class::Class;
use crate::comparison::Options;
use crate::judge::{Question, THRESHOLD, judge};
use crate::median::Location;
use crate::tests::simulated::Random;
use crate::verdict::Verdict;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::source::Source;

/// Draws comparisons at random from the processes that `crossover ab` left: in each pair either
/// process may be the new one, and any pairs may be the first. The results are those of an
/// executable against itself, all benchmarks, at least six pairs (`--pairs 6`):
///
/// `CROSSOVER_AB_RESULTS=<folder> cargo test --lib redrawn -- --ignored --nocapture`
///
/// Of results without a sidecar, which short processes left, the fastest samples count. With
/// `CROSSOVER_AB_PLANT=1.05` every third benchmark is slower by that factor.
#[test]
#[ignore = "needs the results of `crossover ab`, in CROSSOVER_AB_RESULTS"]
fn redrawn_from_real_processes_of_one_code() {
    const DRAWN: usize = 500;
    let folder =
        std::env::var("CROSSOVER_AB_RESULTS").expect("CROSSOVER_AB_RESULTS names a folder");
    let read = |side: char, pair: usize| {
        let root = Path::new(&folder).join(format!("{side}{pair}"));
        root.is_dir().then(|| {
            Baseline::read(&Source {
                label: root.display().to_string(),
                baseline: "new".to_owned(),
                root,
            })
        })
    };
    let pairs: Vec<(Baseline, Baseline)> = (1..)
        .map_while(|pair| Some((read('a', pair)?, read('b', pair)?)))
        .collect();
    let sides: [Vec<Baseline>; 2] = pairs.iter().cloned().unzip::<_, _, Vec<_>, Vec<_>>().into();
    let plant: f64 =
        std::env::var("CROSSOVER_AB_PLANT").map_or(1.0, |factor| factor.parse().unwrap());
    let mut results = sides[0][0].results.values();
    let (location, first) = match results.all(|result| result.sidecar.is_none()) {
        true => (Location::Fastest, 8),
        false => (Location::Median, 2),
    };
    let options = Options {
        location,
        on_one_machine: true,
        ..Options::default()
    };
    let (ids, cases): (Vec<String>, Vec<Case>) = crate::rows::rows(&sides[0], &sides[1], &options)
        .into_iter()
        .filter_map(|(row, case)| Some((row.id, case?)))
        .filter(|(_, case)| case.pairs.len() == pairs.len())
        .unzip();
    println!(
        "{} benchmarks in {} pairs of processes",
        cases.len(),
        pairs.len()
    );
    assert!(pairs.len() >= 6 && !cases.is_empty());
    let mut random = Random::seeded(14);
    for (name, of, screened) in [
        (
            "as `ab`: the first pairs and then the others",
            pairs.len(),
            first,
        ),
        ("all pairs at once", pairs.len(), 0),
        ("two pairs", 2, 0),
        ("one pair", 1, 0),
        ("one pair, one after the other", 1, 0),
    ] {
        let mut wrong: BTreeMap<&str, usize> = BTreeMap::new();
        let mut same: BTreeMap<&Class, (usize, usize)> = BTreeMap::new();
        let (mut with_verdict, mut found, mut planted) = (0, 0_u32, 0_u32);
        for _ in 0..DRAWN {
            let mut order: Vec<usize> = (0..pairs.len()).collect();
            for i in (1..order.len()).rev() {
                order.swap(i, (random.uniform() * (i + 1) as f64) as usize);
            }
            let swapped: Vec<bool> = order.iter().map(|_| random.uniform() < 0.5).collect();
            let is_slower = |i: usize| plant != 1.0 && i.is_multiple_of(3);
            let drawn: Vec<Case> = (cases.iter().enumerate())
                .map(|(i, case)| Case {
                    class: case.class.clone(),
                    pairs: (0..of)
                        .map(|round| {
                            let Pair { base, mut new, .. } = case.pairs[order[round]];
                            if name.ends_with("other") {
                                new = case.pairs[order[round + 1]].new;
                            }
                            let (base, mut new) = match swapped[round] {
                                true => (new, base),
                                false => (base, new),
                            };
                            if is_slower(i) {
                                new.ns *= plant;
                            }
                            Pair { round, base, new }
                        })
                        .collect(),
                })
                .collect();
            let question = Question {
                threshold: THRESHOLD,
                screened,
            };
            let (judged, _) = judge(&drawn, &vec![true; drawn.len()], &question);
            let mut any = false;
            for (i, judged) in judged.iter().enumerate() {
                let Some(judged) = judged else { continue };
                let of_class = same.entry(&cases[i].class).or_default();
                of_class.0 += usize::from(judged.verdict == Verdict::Same);
                of_class.1 += 1;
                if is_slower(i) {
                    planted += 1;
                    found += u32::from(judged.verdict == Verdict::Slower);
                } else if matches!(judged.verdict, Verdict::Slower | Verdict::Faster) {
                    *wrong.entry(&ids[i]).or_default() += 1;
                    any = true;
                }
            }
            with_verdict += usize::from(any);
        }
        println!("{name}: {with_verdict} of {DRAWN} with a false verdict: {wrong:?}");
        if planted > 0 {
            println!(
                "    {:.1} % of the slower ones found",
                100.0 * f64::from(found) / f64::from(planted)
            );
        }
        for (class, (same, all)) in same {
            println!(
                "    {class}: {:.0} % the same",
                100.0 * same as f64 / all as f64
            );
        }
    }
}
