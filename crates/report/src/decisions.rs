//! The decisions of [`crossover_advice`] on the results of a report, as breakpoints for the page's script.

use serde_json::{Value, json};

use crate::report::Report;
use crate::thresholds;
use crate::thresholds::breakpoints::{Breakpoint, breakpoints};
use crate::thresholds::decision_in_words::{THE_CPU_AND_THE_GPU, choice_words, limit_words};
use crossover_advice::thresholds::{Binding, Operation, Place, Point, Thresholds};
use crossover_advice::{Advice, Choice, Question, Residency};
use crossover_results::analysis::answer::crossover_answer::best_cpu;
use crossover_results::analysis::answer::curve;
use crossover_results::model::role::Threads;
use crossover_results::store::curves::Group;

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
}

/// The decisions for one group.
pub(crate) struct Decision {
    /// The place that a reader most likely means.
    pub(crate) place: Residency,
    /// The size that is shown first.
    pub(crate) size: u64,
    /// The form that the script reads.
    pub(crate) json: Value,
}

impl Decisions {
    /// `None` if the results have no answers.
    pub(crate) fn of(report: &Report) -> Option<Self> {
        let advice = Advice::new(thresholds::thresholds(report)?).ok()?;
        Some(Self { advice })
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

    /// The decisions for a group; `None` if it has no answers.
    pub(crate) fn of_group(&self, group: &Group) -> Option<Decision> {
        let operation = self.advice.operation(&group.name)?;
        let at = |data: &Residency| operation.places.iter().find(|place| place.data == *data);
        let places: Vec<&Place> = PLACES.iter().filter_map(at).collect();
        let plain = places.first()?;
        let size = self.default_size(operation, plain);
        let places = places.iter().map(|place| self.at_place(operation, place));
        let json = json!({
            "place": plain.data.name(),
            "size": size,
            // The factor by which the best code on one thread is slower than the best of all.
            "one_thread": one_thread(group),
            "places": places.collect::<Vec<_>>(),
        });
        Some(Decision {
            place: plain.data,
            size,
            json,
        })
    }

    fn at_place(&self, operation: &Operation, place: &Place) -> Value {
        let uses = |uses: u32| -> Vec<Value> {
            let question = Question::new(&operation.name, 1)
                .data(place.data)
                .reuse(uses);
            let all = breakpoints(&self.advice, &question);
            let short = |at: &Breakpoint| {
                let [speedup, low, high] = at.speedup.map(thresholds::rounded);
                json!({"size": at.size, "choice": at.choice, "speedup": speedup, "low": low, "high": high})
            };
            all.iter().map(short).collect()
        };
        let limit = |binding: &Binding| {
            let words = binding.gpu.as_deref().map(limit_words);
            json!({"from": binding.from, "words": words})
        };
        let end = |point: Option<&Point>| point.map_or(1.0, |point| point.size);
        // Nothing is moved to data on the device, so the number of uses does not matter.
        let counted = if place.data.on_device() {
            &USES[..1]
        } else {
            &USES
        };
        json!({
            "name": place.data.name(),
            "first": end(place.points.first()),
            "last": end(place.points.last()),
            "limits": place.limits.iter().map(limit).collect::<Vec<_>>(),
            // The breakpoints for each of USES, or for any.
            "uses": counted.iter().map(|count| uses(*count)).collect::<Vec<_>>(),
        })
    }

    /// The middle of the measured sizes at which the GPU wins, or if there are none, the CPU.
    fn default_size(&self, operation: &Operation, place: &Place) -> u64 {
        let sizes = place.points.iter().map(|point| point.size as u64);
        let chosen = |choice: Choice| {
            let decide = |size: u64| {
                let question = Question::new(&operation.name, size).data(place.data);
                self.advice.decide(&question).choice
            };
            let sizes: Vec<u64> = sizes
                .clone()
                .filter(|size| decide(*size) == choice)
                .collect();
            sizes.get(sizes.len() / 2).copied()
        };
        let size = chosen(Choice::Gpu).or_else(|| chosen(Choice::Cpu));
        size.or_else(|| sizes.clone().next()).unwrap_or(1)
    }
}

fn one_thread(group: &Group) -> Vec<Value> {
    let (best, _) = best_cpu(group);
    let fastest = |size: f64| {
        let on_one = group
            .series
            .iter()
            .filter(|s| s.role.threads == Some(Threads::One));
        let times = on_one.filter(|s| s.computes());
        let times = times.filter_map(|s| Some(s.at(size as u64)?.median_ns));
        times.reduce(f64::min)
    };
    let factor = |at: &curve::Point| {
        let factor = thresholds::rounded(fastest(at.size)? / at.median);
        Some(json!({"size": at.size, "factor": factor}))
    };
    best.points().iter().filter_map(factor).collect()
}
