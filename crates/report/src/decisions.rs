//! The decisions of [`crossover_advice`] on the results of a report, as breakpoints for the page's script.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};

use crate::group::GroupView;
use crate::report::Report;
use crate::thresholds;
use crate::thresholds::breakpoints::{Breakpoint, breakpoints, of_operation};
use crate::thresholds::decision_in_words::{THE_CPU_AND_THE_GPU, choice_words, limit_words};
use crossover_advice::thresholds::{Binding, Operation, Place, Thresholds};
use crossover_advice::{Advice, Choice, Question, Residency};
use crossover_results::analysis::answer::curve;
use crossover_results::model::role::Threads;
use crossover_results::store::curves::Series;

/// Ordinary memory first, because most data are there.
pub(crate) const PLACES: [Residency; 4] = [
    Residency::Ordinary,
    Residency::Pinned,
    Residency::Awaited,
    Residency::Queued,
];

/// How often the same data are used, as a reader may choose.
pub(crate) const USES: [u32; 4] = [1, 10, 100, 1000];

/// The decisions on the results of a report.
pub(crate) struct Decisions {
    advice: Advice,
    /// By the name of the group.
    of_groups: BTreeMap<String, Decision>,
}

/// The decisions for one group, as the script reads them.
#[derive(Serialize)]
pub(crate) struct Decision {
    /// The place that a reader most likely means.
    pub(crate) place: Residency,
    /// The size that is shown first.
    pub(crate) size: u64,
    /// By how much the best code on one thread is slower than the best of all.
    one_thread: Vec<Value>,
    places: Vec<Value>,
}

impl Decisions {
    /// `None` if the results have no answers.
    pub(crate) fn of(report: &Report, groups: &[GroupView]) -> Option<Self> {
        let advice = Advice::new(thresholds::of_groups(report, groups)?).ok()?;
        let decided = groups.par_iter().filter_map(|group| {
            let decision = Decision::of(&advice, group)?;
            Some((group.name.to_owned(), decision))
        });
        let of_groups = decided.collect();
        Some(Self { advice, of_groups })
    }

    /// The decisions for a group; `None` if it has no answers.
    pub(crate) fn of_group(&self, group: &str) -> Option<&Decision> {
        self.of_groups.get(group)
    }

    pub(crate) fn thresholds(&self) -> &Thresholds {
        self.advice.thresholds()
    }

    /// The words of each choice, before the speedup.
    pub(crate) fn choices(&self) -> Value {
        let words = |choice| choice_words(&self.advice, THE_CPU_AND_THE_GPU, choice);
        json!({
            "cpu": words(Choice::Cpu),
            "gpu": words(Choice::Gpu),
            "unsure": words(Choice::Unsure),
        })
    }
}

impl Decision {
    fn of(advice: &Advice, group: &GroupView) -> Option<Self> {
        let operation = advice.operation(group.name)?;
        let advice = of_operation(operation.clone()).ok()?;
        // Ordinary memory is the last place.
        let places = operation.places.iter().rev();
        let plain = places.clone().next()?;
        Some(Self {
            place: plain.data,
            size: default_size(&advice, operation, plain),
            one_thread: one_thread(group),
            places: places
                .map(|place| at_place(&advice, operation, place))
                .collect(),
        })
    }
}

/// The decisions for data in one place: what limits the GPU from a size on, and for each of [`USES`], or for
/// any, the breakpoints and the ends of the measured sizes.
fn at_place(advice: &Advice, operation: &Operation, place: &Place) -> Value {
    let uses = |uses: &u32| {
        let question = Question::new(&operation.name, 1)
            .data(place.data)
            .reuse(*uses);
        let short = |at: Breakpoint| Breakpoint {
            speedup: thresholds::rounded(at.speedup),
            low: thresholds::rounded(at.low),
            high: thresholds::rounded(at.high),
            ..at
        };
        let breakpoints = breakpoints(advice, &question).into_iter();
        // Of data that are used again, the place on the device must be measured too.
        let is_measured = |size: &f64| {
            let estimate = advice.decide(&question.size(*size)).estimate;
            estimate.is_some_and(|estimate| estimate.nearest.is_none())
        };
        let points = operation.places.iter().flat_map(|place| &place.points);
        let sizes = points.map(|point| point.size).filter(is_measured);
        json!({
            "points": Vec::from_iter(breakpoints.map(short)),
            "first": sizes.clone().reduce(f64::min),
            "last": sizes.reduce(f64::max),
        })
    };
    let limit = |binding: &Binding| {
        let words = binding.gpu.as_deref().map(limit_words);
        json!({"from": binding.from, "words": words})
    };
    // Nothing is moved to data on the device, so the number of uses does not matter.
    let counted = if place.data.on_device() {
        &USES[..1]
    } else {
        &USES
    };
    json!({
        "name": place.data,
        "limits": Vec::from_iter(place.limits.iter().map(limit)),
        "uses": Vec::from_iter(counted.iter().map(uses)),
    })
}

/// The middle of the measured sizes at which the GPU wins, or of all.
fn default_size(advice: &Advice, operation: &Operation, place: &Place) -> u64 {
    let sizes: Vec<u64> = place.points.iter().map(|point| point.size as u64).collect();
    let mut wins = sizes.clone();
    wins.retain(|size| {
        let question = Question::new(&operation.name, *size).data(place.data);
        advice.decide(&question).choice == Choice::Gpu
    });
    let candidates = if wins.is_empty() { sizes } else { wins };
    candidates.get(candidates.len() / 2).copied().unwrap_or(1)
}

fn one_thread(group: &GroupView) -> Vec<Value> {
    let series = group.own.iter().flat_map(|own| &own.series);
    let is_it = |s: &&Series| s.role.threads == Some(Threads::One) && s.computes();
    let on_one: Vec<&Series> = series.filter(is_it).collect();
    let factor = |at: &curve::Point| {
        let times = on_one.iter().filter_map(|s| s.at(at.size as u64));
        let fastest = times.map(|b| b.median_ns).reduce(f64::min)?;
        let factor = thresholds::rounded(fastest / at.median);
        Some(json!({"size": at.size, "factor": factor}))
    };
    group.best_cpu.points().iter().filter_map(factor).collect()
}
